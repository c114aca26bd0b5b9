package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"onsale/internal/fault"
	"onsale/internal/guard"
)

//go:generate go run ./gen ../../docs/openapi.json ../../docs/FAULTS.md

// describe makes the OpenAPI document and the readable page from the table of routes.
func (a *api) describe() error {
	registry := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	problem := huma.SchemaFromType(registry, reflect.TypeFor[Problem]())
	registry.Map()["Problem"] = problem
	doc := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{Title: "Onsale", Version: a.Version, Description: "Sells tickets at the minute when everyone wants them. " +
			"Refusals are RFC 9457 problems with a stable code; each is listed at /docs.",
			License: &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"}},
		Components: &huma.Components{
			Schemas: registry,
			SecuritySchemes: map[string]*huma.SecurityScheme{
				"customer": {Type: "http", Scheme: "bearer", BearerFormat: "JWT"},
				"sign_in":  {Type: "apiKey", In: "cookie", Name: hostPrefix + signInCookie, Description: "set by POST /v1/sign-in/code"},
			},
		},
		Paths: map[string]*huma.PathItem{},
	}
	for _, r := range a.routes {
		if r.Hidden {
			continue
		}
		doc.AddOperation(operation(registry, r))
	}
	text, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return fmt.Errorf("httpapi: the OpenAPI document: %w", err)
	}
	a.doc = append(text, '\n')
	var page bytes.Buffer
	if err := docsPage.Execute(&page, docsOf(a.routes, a.Version)); err != nil {
		return fmt.Errorf("httpapi: the readable document: %w", err)
	}
	a.docs = page.Bytes()
	return nil
}

var pathParameter = regexp.MustCompile(`\{([a-z_]+)\}`)

// operation is a route as the document describes it.
func operation(registry huma.Registry, r route) *huma.Operation {
	text := &huma.Schema{Type: huma.TypeString}
	op := &huma.Operation{
		Method: r.Method, Path: r.Path, OperationID: r.ID, Summary: r.Summary, Description: r.Notes, Tags: []string{r.Tag},
		Responses: map[string]*huma.Response{},
	}
	for _, m := range pathParameter.FindAllStringSubmatch(r.Path, -1) {
		op.Parameters = append(op.Parameters, &huma.Param{Name: m[1], In: "path", Required: true, Schema: text})
	}
	for _, q := range r.Query {
		schema := &huma.Schema{Type: huma.TypeString}
		switch q.Kind {
		case "integer":
			schema.Type = huma.TypeInteger
		case "date-time":
			schema.Format = "date-time"
		}
		op.Parameters = append(op.Parameters, &huma.Param{Name: q.Name, In: "query", Description: q.Doc, Schema: schema})
	}
	if r.Key != keyNone {
		op.Parameters = append(op.Parameters, &huma.Param{Name: "Idempotency-Key", In: "header", Required: r.Key == keyRequired, Schema: text,
			Description: "a new random value for each new request; the same one when it is repeated"})
	}
	if r.Who.signedIn() {
		op.Security = []map[string][]string{{"customer": {}}, {"sign_in": {}}}
	}
	op.Extensions = map[string]any{"x-onsale-who": r.Who.String()}
	if r.Body != nil {
		op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
			"application/json": {Schema: registry.Schema(reflect.TypeOf(r.Body), true, "")}}}
	}
	if r.AlsoBody != "" {
		op.RequestBody.Content[r.AlsoBody] = &huma.MediaType{Schema: text}
	}
	if r.BodyType != "" {
		op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
			r.BodyType: {Schema: &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}}}}
	}
	for _, status := range r.statuses() {
		op.Responses[strconv.Itoa(status)] = &huma.Response{Description: http.StatusText(status), Content: answer(registry, r)}
	}
	byStatus := map[int][]string{}
	for _, code := range r.faults() {
		status := fault.Lookup(code).Status
		byStatus[status] = append(byStatus[status], "`"+string(code)+"`")
	}
	for status, codes := range byStatus {
		op.Responses[strconv.Itoa(status)] = &huma.Response{
			Description: strings.Join(codes, ", "),
			Content:     map[string]*huma.MediaType{problemType: {Schema: &huma.Schema{Ref: "#/components/schemas/Problem"}}},
		}
	}
	return op
}

func (r route) statuses() []int {
	if len(r.Status) == 0 {
		return []int{http.StatusOK}
	}
	return r.Status
}

// faults are those of the route's own and of what it has in common with others.
func (r route) faults() []fault.Code {
	all := append(slices.Clone(r.Faults), fault.BadRequest, fault.Busy, fault.Internal)
	if r.class() != guard.Free {
		all = append(all, fault.TooManyRequests)
	}
	if !r.Foreign && r.Method != http.MethodGet {
		all = append(all, fault.CrossOrigin)
	}
	all = append(all, r.Who.faults()...)
	if r.Body != nil {
		all = append(all, fault.BodyTooLarge, fault.Unsupported)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// answer is what the document says of a route's success.
func answer(registry huma.Registry, r route) map[string]*huma.MediaType {
	content := map[string]*huma.MediaType{}
	switch {
	case r.Answer == nil && r.AnswerType == "": // it says nothing
	case r.Answer != nil && r.Or != nil:
		content["application/json"] = &huma.MediaType{Schema: &huma.Schema{AnyOf: []*huma.Schema{
			registry.Schema(reflect.TypeOf(r.Answer), true, ""), registry.Schema(reflect.TypeOf(r.Or), true, "")}}}
	case r.Answer != nil:
		content["application/json"] = &huma.MediaType{Schema: registry.Schema(reflect.TypeOf(r.Answer), true, "")}
	case r.AnswerType == "application/json":
		content[r.AnswerType] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}}
	default:
		content[r.AnswerType] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
	}
	for _, kind := range r.AlsoTypes {
		content[kind] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}
	}
	return content
}

func (a *api) openapi(w http.ResponseWriter, r *request) error {
	w.Header().Set("Cache-Control", "public, max-age=60")
	send(w, http.StatusOK, "application/json", a.doc)
	return nil
}

func (a *api) readable(w http.ResponseWriter, r *request) error { return html(w, a.docs) }

// html answers with a page of ours: it loads nothing and runs nothing.
func html(w http.ResponseWriter, page []byte) error {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	h.Set("Cache-Control", "no-cache")
	send(w, http.StatusOK, "text/html; charset=utf-8", page)
	return nil
}

// docsData is what the readable page shows.
type docsData struct {
	Version string
	Tags    []docsTag
	Codes   []fault.Entry
}

type docsTag struct {
	Name   string
	Routes []docsRoute
}

type docsRoute struct {
	route
	Codes   []fault.Code
	Example string
}

func docsOf(routes []route, version string) docsData {
	d := docsData{Version: version, Codes: fault.Catalogue}
	for _, r := range routes {
		if r.Hidden {
			continue
		}
		i := slices.IndexFunc(d.Tags, func(t docsTag) bool { return t.Name == r.Tag })
		if i < 0 {
			i = len(d.Tags)
			d.Tags = append(d.Tags, docsTag{Name: r.Tag})
		}
		shown := docsRoute{route: r, Codes: r.faults()}
		if r.Body != nil {
			if text, err := json.MarshalIndent(bodyFields(reflect.TypeOf(r.Body)), "", "  "); err == nil {
				shown.Example = string(text)
			}
		}
		d.Tags[i].Routes = append(d.Tags[i].Routes, shown)
	}
	return d
}

// nestedMax is how deep bodyFields looks into types: no body of ours is deeper.
const nestedMax = 5

// bodyFields is a request's type as an object of field → what it is, in the words of JSON.
func bodyFields(t reflect.Type) map[string]any { return fieldsOf(t, nestedMax) }

func fieldsOf(t reflect.Type, deep int) map[string]any {
	fields := map[string]any{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() {
			continue
		}
		what, doc := whatIs(f.Type, deep), f.Tag.Get("doc")
		list, several := what.([]any)
		switch word, plain := what.(string); {
		case doc == "":
		case plain:
			what = word + ": " + doc
		case several:
			if word, plain := list[0].(string); plain {
				list[0] = word + ": " + doc
			}
		}
		fields[name] = what
	}
	return fields
}

// whatIs is a type as somebody who writes JSON sees it: a word, or what is in it.
func whatIs(t reflect.Type, deep int) any {
	switch t.Kind() {
	case reflect.Pointer:
		return whatIs(t.Elem(), deep)
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "text"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Slice, reflect.Array:
		return []any{whatIs(t.Elem(), deep)}
	case reflect.Map:
		return map[string]any{"…": whatIs(t.Elem(), deep)}
	case reflect.Struct:
		switch {
		case t == reflect.TypeFor[time.Time]():
			return "time"
		case deep > 0:
			return fieldsOf(t, deep-1)
		}
		return "object"
	case reflect.Interface:
		return "any"
	}
	return "whole number"
}

// KeyRequired and KeyOptional are for the readable page.
func (r route) KeyRequired() bool { return r.Key == keyRequired }

// KeyOptional says that a key may come.
func (r route) KeyOptional() bool { return r.Key == keyOptional }

// Anchor names the route on the readable page.
func (r route) Anchor() string { return r.ID }

const pageStyle = `
:root{color-scheme:light dark;--ink:#17202a;--quiet:#5b6672;--line:#d8dee5;--paper:#fff;--soft:#f4f6f8;--mark:#0b57b0}
@media(prefers-color-scheme:dark){:root{--ink:#e8ecf0;--quiet:#9aa6b2;--line:#34404c;--paper:#12181e;--soft:#1b232b;--mark:#7db5f5}}
*{box-sizing:border-box}body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI","PingFang SC","Noto Sans CJK SC",sans-serif}
main{max-width:56rem;margin:0 auto;padding:2.5rem 1.25rem 4rem}h1{font-size:1.9rem;line-height:1.2;margin:0 0 .4rem}h2{font-size:1.25rem;margin:2.5rem 0 .75rem}
h3{font-size:1rem;margin:1.6rem 0 .3rem;overflow-wrap:anywhere}p{margin:.4rem 0}.quiet{color:var(--quiet)}a{color:var(--mark)}
code,pre{font:.875rem/1.5 ui-monospace,"SF Mono",Menlo,Consolas,monospace}pre{background:var(--soft);border:1px solid var(--line);border-radius:6px;padding:.9rem 1rem;overflow-x:auto}
table{width:100%;border-collapse:collapse;font-size:.94rem}th,td{text-align:left;padding:.5rem .75rem .5rem 0;border-bottom:1px solid var(--line);vertical-align:top}
.verb{font-weight:650}.scroll{overflow-x:auto}`

var docsPage = template.Must(template.New("docs").Parse(`<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1"><title>Onsale API</title><style>` + pageStyle + `</style></head><body><main>
<h1>Onsale API</h1><p class="quiet">Version {{.Version}}. The same as a document for machines: <a href="/openapi.json">/openapi.json</a>.</p>
<p>Times are RFC 3339, money is in minor units. Requests of a customer carry <code>Authorization: Bearer</code>. A refusal is
<code>application/problem+json</code> with one of the <a href="#codes">codes</a> below.</p>
{{range .Tags}}<h2>{{.Name}}</h2>{{range .Routes}}
<h3 id="{{.Anchor}}"><code><span class="verb">{{.Method}}</span> {{.Path}}</code></h3><p>{{.Summary}}. For {{.Who}}.{{if .KeyRequired}} Needs an Idempotency-Key.{{end}}{{if .KeyOptional}} Takes an Idempotency-Key.{{end}}</p>
{{if .Notes}}<p class="quiet">{{.Notes}}</p>{{end}}{{range .Query}}<p><code>?{{.Name}}=</code> {{.Doc}}</p>{{end}}{{if .Example}}<pre>{{.Example}}</pre>{{end}}
<p class="quiet">Codes: {{range $i, $c := .Codes}}{{if $i}}, {{end}}<a href="#{{$c}}"><code>{{$c}}</code></a>{{end}}</p>{{end}}{{end}}
<h2 id="codes">Codes</h2><div class="scroll"><table><thead><tr><th>Code</th><th>Status</th><th>Repeat?</th><th>Meaning</th></tr></thead><tbody>
{{range .Codes}}<tr id="{{.Code}}"><td><code>{{.Code}}</code></td><td>{{.Status}}</td><td>{{if .Retry}}yes{{else}}no{{end}}</td><td>{{.En}}<br><span class="quiet" lang="zh-CN">{{.Zh}}</span></td></tr>
{{end}}</tbody></table></div></main></body></html>`))
