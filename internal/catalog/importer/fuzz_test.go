package importer

import (
	"encoding/json"
	"strings"
	"testing"
)

// Whatever comes, the answer is an error or drafts whose files are good or refused, as their questions say.
func fuzz(f *testing.F, format Format, name string) {
	whole := sample(f, name)
	f.Add(whole, "Asia/Shanghai", "hall.json")
	f.Add(whole, "", "")
	// Parts make better seeds than the whole.
	if value, err := decode(whole); err == nil {
		parts, ok := value.([]any)
		for _, at := range [][]string{{"@graph"}, {"_embedded", "events"}} {
			if v := object(value); v != nil && !ok {
				for _, key := range at {
					parts, _ = v[key].([]any)
					v = object(v[key])
				}
				ok = len(parts) > 0
			}
		}
		for _, part := range parts {
			if one, err := json.Marshal(part); err == nil {
				f.Add([]byte("["+string(one)+"]"), "Europe/Berlin", "hall.json")
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, zone, plan string) {
		if strings.ContainsRune(plan, 0) {
			plan = ""
		}
		r, err := Convert(data, Options{Format: format, Zone: zone, Plan: line(plan), Country: "DE", City: "Hamburg", Currency: "EUR"})
		if err == nil {
			files(t, r)
		}
	})
}

func FuzzJSONLD(f *testing.F)     { fuzz(f, JSONLD, "event.jsonld") }
func FuzzDiscovery(f *testing.F)  { fuzz(f, Discovery, "discovery.json") }
func FuzzProgrammes(f *testing.F) { fuzz(f, Programmes, "programmes.json") }
