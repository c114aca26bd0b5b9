package config

import (
	"fmt"
	"io"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"onsale/internal/waitingroom"
	"onsale/internal/waitingroom/beacon"
)

// Room is how this installation lets people wait; how each event does, the event itself says.
type Room struct {
	ProofDifficulty int    // 0: the gate's own
	PersonCheck     string // "picture", "turnstile", "hcaptcha" or "none"
	PersonSiteKey   string
	PersonSecret    string // secret
	JoinQueueMax    int
	Beacons         []beacon.Source
}

const (
	beaconsMax    = 20
	difficultyMax = 1_000_000
)

func (c *Config) roomSettings() []setting {
	return []setting{
		number(&c.Room.ProofDifficulty, 0, difficultyMax, "room.proof_difficulty", 0,
			"How many tries a browser's proof of work takes at most in quiet times, 0–1000000; 0 is the program's own choice. Always 1 with demo and throwaway_issuer. Defaults to 0."),
		text(&c.Room.PersonCheck, "room.person_check", "picture",
			`What somebody is shown who looks like a machine: "picture" (our own, with an audio form), "turnstile" or "hcaptcha" (the picture while they are away), "none" (nothing). Defaults to "picture".`,
			"picture", "turnstile", "hcaptcha", "none"),
		text(&c.Room.PersonSiteKey, "room.person_site_key", "", `Our site's key with Turnstile or hCaptcha. Defaults to "".`),
		secret(&c.Room.PersonSecret, maskAll, "room.person_secret", `The secret beside it; best given as ONSALE_ROOM_PERSON_SECRET. Defaults to "".`),
		number(&c.Room.JoinQueueMax, 1024, 1_000_000, "room.join_queue_max", waitingroom.JoinQueueMax,
			"Joins that may wait to be written down, 1024–1000000; more are told to come back. Defaults to 65536."),
		{key: "beacons", node: c.readBeacons, get: func() any { return c.Room.Beacons }, set: onlyEmpty,
			doc: `Public randomness that draws may name (draw_source: "beacon: NAME ROUND"); only in a file. Each has name, url (of a round, with {round} in it; answers as drand's HTTP API), genesis (when round 1 was, RFC 3339) and period ("3s"). Defaults to none.`},
	}
}

// readBeacons reads the list of beacons from the file.
func (c *Config) readBeacons(l *loader, source string, n nodeType) {
	c.Room.Beacons = nil
	if n.Kind == yaml.ScalarNode && (n.Tag == "!!null" || n.Value == "") {
		return
	}
	if n.Kind != yaml.SequenceNode || len(n.Content) > beaconsMax {
		l.add("beacons", "must be a list of at most %d beacons", beaconsMax)
		return
	}
	path, _, _ := strings.Cut(source, ":")
	for i, entry := range n.Content {
		var b beacon.Source
		key := fmt.Sprintf("beacons[%d]", i)
		before := len(l.problems)
		rows := []setting{
			text(&b.Name, "name", "", ""), text(&b.URL, "url", "", ""), length(&b.Period, beacon.PeriodMin, beacon.PeriodMax, "period", "", ""),
			{key: "genesis", set: func(text string) (err error) {
				if b.Genesis, err = time.Parse(time.RFC3339, text); err != nil {
					return fmt.Errorf("must be a time such as 2023-08-23T15:09:27Z")
				}
				return nil
			}},
		}
		readKeys(l, path, key, entry, rows)
		if err := b.Check(); err != nil && len(l.problems) == before {
			l.add(key, "%s", err)
		}
		c.Room.Beacons = append(c.Room.Beacons, b)
	}
}

// checkRoom says what does not fit together.
func (l *loader) checkRoom() {
	r := &l.config.Room
	outside := r.PersonCheck == "turnstile" || r.PersonCheck == "hcaptcha"
	switch {
	case outside && (r.PersonSiteKey == "" || r.PersonSecret == ""):
		l.add("room.person_check", "%s needs room.person_site_key and room.person_secret", r.PersonCheck)
	case outside && l.config.PublicURL == "":
		l.add("room.person_check", "%s needs public_url: on which pages its answers are given", r.PersonCheck)
	case !outside && (r.PersonSiteKey != "" || r.PersonSecret != ""):
		l.add("room.person_site_key", "means nothing with room.person_check %s: take it away", r.PersonCheck)
	}
	seen := map[string]bool{}
	for i, b := range r.Beacons {
		if seen[b.Name] {
			l.add(fmt.Sprintf("beacons[%d].name", i), "%.60q is there twice", b.Name)
		}
		seen[b.Name] = true
	}
}

func printBeacons(w io.Writer, indent, name string, all []beacon.Source) {
	if len(all) == 0 {
		fmt.Fprintf(w, "%s%s: []\n", indent, name)
		return
	}
	fmt.Fprintf(w, "%s%s:\n", indent, name)
	for _, b := range all {
		fmt.Fprintf(w, "%s  - name: %s\n", indent, scalar(b.Name))
		for _, row := range [][2]string{{"url", b.URL}, {"genesis", b.Genesis.UTC().Format(time.RFC3339)}, {"period", short(b.Period)}} {
			fmt.Fprintf(w, "%s    %s: %s\n", indent, row[0], scalar(row[1]))
		}
	}
}
