package eventfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"

	"go.yaml.in/yaml/v3"

	"onsale/internal/catalog"
)

// parse turns YAML or JSON into one tree of nodes that know their lines. JSON has a reader of its own: YAML's knows
// neither tabs between tokens nor surrogate pairs.
func parse(data []byte) (*yaml.Node, error) {
	if first := bytes.TrimLeft(data, " \t\r\n\ufeff"); len(first) > 0 && first[0] == '{' {
		return parseJSON(data)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, errors.New("the file is empty")
	case err != nil:
		return nil, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	case document.Kind != yaml.DocumentNode || len(document.Content) != 1:
		return nil, errors.New("the file is empty")
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("the file has more than one document (a line of ---): keep one")
	}
	return document.Content[0], nil
}

func parseJSON(data []byte) (*yaml.Node, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	var newlines []int
	for i, b := range data {
		if b == '\n' {
			newlines = append(newlines, i)
		}
	}
	line := func(offset int64) int { return 1 + sort.SearchInts(newlines, int(offset)) }
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	j := jsonReader{decoder: decoder, line: line}
	node, err := j.value(0)
	if err != nil {
		return nil, fmt.Errorf("line %d: %w", line(decoder.InputOffset()), err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("line %d: something follows the closing brace", line(decoder.InputOffset()))
	}
	return node, nil
}

type jsonReader struct {
	decoder *json.Decoder
	line    func(offset int64) int
}

func (j jsonReader) value(depth int) (*yaml.Node, error) {
	if depth > depthMax {
		return nil, fmt.Errorf("is nested deeper than %d levels", depthMax)
	}
	token, err := j.decoder.Token()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("the file ends too early")
	}
	if err != nil {
		return nil, err
	}
	node := &yaml.Node{Kind: yaml.ScalarNode, Line: j.line(j.decoder.InputOffset() - 1)}
	switch t := token.(type) {
	case json.Delim:
		node.Kind = yaml.SequenceNode
		if t == '{' {
			node.Kind = yaml.MappingNode
		}
		for j.decoder.More() { // in an object, a key and its value are two turns
			child, err := j.value(depth + 1)
			if err != nil {
				return nil, err
			}
			node.Content = append(node.Content, child)
		}
		_, err := j.decoder.Token()
		return node, err
	case string:
		node.Tag, node.Value = "!!str", t
	case json.Number:
		node.Tag, node.Value = "!!float", t.String()
	case bool:
		node.Tag, node.Value = "!!bool", fmt.Sprint(t)
	case nil:
		node.Tag, node.Value = "!!null", "null"
	}
	return node, nil
}

// An object reads the keys of one mapping. Whatever was not asked for when end comes is an unknown key.
type object struct {
	report *catalog.Report
	path   string // "" or ends in a dot
	line   int
	keys   map[string]*yaml.Node
	lines  map[string]int
	order  []string
	asked  map[string]bool
}

// newObject is the mapping at a node; a node that is none gives a problem and an empty object. nil gives an empty one.
func newObject(r *catalog.Report, path string, n *yaml.Node) *object {
	o := &object{report: r, path: path, keys: map[string]*yaml.Node{}, lines: map[string]int{}, asked: map[string]bool{}}
	if n == nil {
		return o
	}
	o.line = n.Line
	if n.Kind != yaml.MappingNode {
		r.Add(n.Line, strings.TrimSuffix(path, "."), "must have keys and values, and is %s", kindName(n))
		return o
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch _, twice := o.keys[key.Value]; {
		case key.Kind != yaml.ScalarNode:
			r.Add(key.Line, strings.TrimSuffix(path, "."), "a key must be a plain word")
		case twice:
			r.Add(key.Line, path+short(key.Value), "is there twice: keep one")
		default:
			o.keys[key.Value] = n.Content[i+1]
			o.lines[key.Value] = key.Line
			o.order = append(o.order, key.Value)
		}
	}
	return o
}

// end reports the keys that nobody asked for.
func (o *object) end() {
	var known []string
	for key := range o.asked {
		known = append(known, key)
	}
	sort.Strings(known)
	for _, key := range o.order {
		if !o.asked[key] {
			o.report.Add(o.lines[key], o.path+short(key), "is not a known key here; known are %s", strings.Join(known, ", "))
		}
	}
}

func (o *object) get(key string) *yaml.Node {
	o.asked[key] = true
	n := o.keys[key]
	if n != nil && n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return nil
	}
	return n
}

func (o *object) has(key string) bool { return o.get(key) != nil }

// object is the mapping under a key, an empty one where the key is not there.
func (o *object) object(key string) *object { return newObject(o.report, o.path+key+".", o.get(key)) }

// text is the plain value under a key.
func (o *object) text(key string) (text string, line int, ok bool) {
	n := o.get(key)
	if n == nil {
		return "", o.line, false
	}
	if n.Kind != yaml.ScalarNode {
		o.report.Add(n.Line, o.path+key, "must be a plain value, and is %s", kindName(n))
		return "", n.Line, false
	}
	return n.Value, n.Line, true
}

// list is what stands under a key, with each one's path.
func (o *object) list(key string, countMax int) (nodes []*yaml.Node, path func(i int) string) {
	path = func(i int) string { return fmt.Sprintf("%s%s[%d].", o.path, key, i) }
	n := o.get(key)
	switch {
	case n == nil:
		return nil, path
	case n.Kind != yaml.SequenceNode:
		o.report.Add(n.Line, o.path+key, "must be a list, and is %s", kindName(n))
		return nil, path
	case len(n.Content) > countMax:
		o.report.Add(n.Line, o.path+key, "has %d entries; at most %d are possible", len(n.Content), countMax)
		return nil, path
	}
	return n.Content, path
}

func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a group of keys"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias (*name): write it out"
	}
	return fmt.Sprintf("%.40q", n.Value)
}

// short keeps what is shown of a hostile key small.
func short(key string) string {
	if len(key) > 60 {
		key = key[:60] + "…"
	}
	return strings.ToValidUTF8(key, "?")
}
