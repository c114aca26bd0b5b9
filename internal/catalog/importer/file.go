package importer

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// File is the draft as an event file (docs/EVENT_FILE.md), for a person to read and finish. What is not known is left open,
// and the questions stand in it, so that it is not imported before they are answered.
func (d *Draft) File() ([]byte, error) {
	root := mapping()
	root.put("format", number(1))
	if len(d.Questions) > 0 {
		root.put("questions", d.questions()).HeadComment = "Answer each question in its field, then take it out."
	}
	venue := mapping()
	venue.put("name", text(d.Venue.Name))
	venue.put("city", text(d.Venue.City))
	venue.put("country", text(d.Venue.Country))
	venue.put("zone", text(d.Venue.Zone))
	venue.put("plan", text(d.Plan))
	root.put("venue", venue.Node)
	show := mapping()
	show.put("key", text(d.Show.Key))
	show.put("title", text(d.Show.Title))
	if d.Show.Description != "" {
		show.put("description", text(d.Show.Description))
	}
	if len(d.Show.Performers) > 0 {
		show.put("performers", texts(d.Show.Performers))
	}
	root.put("show", show.Node)
	root.put("currency", text(d.Currency))
	d.putSale(root)
	root.put("state", text("draft")).HeadComment = "Not shown before this says scheduled, and sale.opens is there."
	performances := sequence()
	for _, p := range d.Performances {
		performances.Content = append(performances.Content, p.node())
	}
	root.put("performances", performances)

	root.HeadComment = d.comment()
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{root.Node}}); err != nil {
		return nil, err
	}
	return out.Bytes(), encoder.Close()
}

// comment says where the draft is from.
func (d *Draft) comment() string {
	comment := "Converted from " + counted(line(d.Path))
	if d.Path == "" {
		comment = "Converted"
	}
	for _, one := range []struct{ name, value string }{{"id", d.ID}, {"url", d.URL}, {"image", d.Image}} {
		if one.value != "" {
			comment += "\n" + one.name + ": " + line(one.value)
		}
	}
	return comment
}

var indexes = regexp.MustCompile(`\[(\d{1,9})\]`)

// counted is a place in the data for people, who count from one.
func counted(path string) string {
	return strings.TrimSpace(indexes.ReplaceAllStringFunc(path, func(index string) string {
		n, _ := strconv.Atoi(index[1 : len(index)-1])
		return " number " + strconv.Itoa(n+1)
	}))
}

// putSale puts prices, limits and quotas.
func (d *Draft) putSale(root *group) {
	tiers, quotas := sequence(), sequence()
	for _, t := range d.Tiers {
		tier := mapping()
		tier.put("category", text(t.Category))
		tier.put("face", text(t.Face))
		tiers.Content = append(tiers.Content, tier.Node)
		if t.Total > 0 && t.Category != "" {
			quota := mapping()
			quota.put("category", text(t.Category))
			quota.put("on_sale_max", number(t.Total))
			quotas.Content = append(quotas.Content, quota.Node)
		}
	}
	root.put("tiers", tiers)
	if d.PerCustomer > 0 {
		limits := mapping()
		limits.put("event", number(d.PerCustomer))
		root.put("limits", limits.Node)
	}
	if d.PerHold > 0 {
		root.put("seats_per_hold_max", number(d.PerHold))
	}
	if d.Documents {
		root.put("documents", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"})
	}
	if len(quotas.Content) > 0 {
		root.put("quotas", quotas)
	}
}

func (p *Performance) node() *yaml.Node {
	one := mapping()
	one.put("key", text(p.Key))
	one.put("starts", text(p.Starts))
	if p.Doors != "" {
		one.put("doors", text(p.Doors))
	}
	if p.SaleOpens+p.SaleCloses != "" {
		sale := mapping()
		if p.SaleOpens != "" {
			sale.put("opens", text(p.SaleOpens))
		}
		if p.SaleCloses != "" {
			sale.put("closes", text(p.SaleCloses))
		}
		one.put("sale", sale.Node)
	}
	return one.Node
}

func (d *Draft) questions() *yaml.Node {
	all := sequence()
	for _, q := range d.Questions {
		one := mapping()
		one.put("field", text(q.Field))
		one.put("ask", text(q.Text))
		if len(q.Options) > 0 {
			one.put("options", texts(q.Options))
		}
		all.Content = append(all.Content, one.Node)
	}
	return all
}

// A group is a mapping that is being filled.
type group struct{ *yaml.Node }

func mapping() *group { return &group{&yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}} }

func sequence() *yaml.Node { return &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"} }

// put adds a key, and answers its node.
func (g *group) put(key string, value *yaml.Node) *yaml.Node {
	k := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}
	g.Content = append(g.Content, k, value)
	return k
}

// text is a plain text; an open field where there is none.
func text(value string) *yaml.Node {
	if value == "" {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", LineComment: "?"}
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
}

func texts(values []string) *yaml.Node {
	all := sequence()
	for _, value := range values {
		all.Content = append(all.Content, text(value))
	}
	return all
}

func number(n int) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.Itoa(n)}
}

// A File is a draft as an event file.
type File struct {
	Name      string // of its own among the result's
	Data      []byte
	Title     string
	Questions []Question
}

// Files are the event files of all drafts.
func (r *Result) Files() ([]File, error) {
	var all []File
	names := taken{}
	for i := range r.Drafts {
		d := &r.Drafts[i]
		data, err := d.File()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.Path, err)
		}
		name := names.unique(strings.ToLower(cmp.Or(d.Show.Key, fmt.Sprint("event-", i+1)))) // some file systems tell no case apart
		all = append(all, File{Name: name + ".yaml", Data: data, Title: d.Show.Title, Questions: d.Questions})
	}
	return all, nil
}
