package httpapi

import (
	"bytes"
	"html/template"
	"net/http"
	"strconv"
	"strings"

	"onsale/internal/catalog"
)

const plainText = "text/plain; charset=utf-8"

func (a *api) health(w http.ResponseWriter, _ *request) error {
	w.Header().Set("Cache-Control", "no-store")
	send(w, http.StatusOK, plainText, []byte("ok\n"))
	return nil
}

func (a *api) jwks(w http.ResponseWriter, _ *request) error {
	body, err := a.JWKS()
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "public, max-age=300")
	send(w, http.StatusOK, "application/json", body)
	return nil
}

// homeData is what the plain page shows.
type homeData struct {
	Version string
	Demo    bool
	Data    string
	Events  []Event
	Host    string
	First   *Event
}

const homeEvents = 20

// home is one plain page: what runs here, which events there are, and how to buy seats from a terminal.
func (a *api) home(w http.ResponseWriter, r *request) error {
	page, err := a.Catalog.Events(r.Context(), catalog.Query{Max: homeEvents})
	if err != nil {
		return err
	}
	d := homeData{Version: a.Version, Demo: a.Demo, Data: a.Data, Host: r.Host}
	for i := range page.Events {
		e := a.event(&page.Events[i])
		d.Events = append(d.Events, e)
		if d.First == nil && e.State == string(catalog.OnSale) {
			d.First = &e
		}
	}
	if d.First == nil && len(d.Events) > 0 {
		d.First = &d.Events[0]
	}
	var text bytes.Buffer
	if err := homePage.Execute(&text, d); err != nil {
		return err
	}
	return html(w, text.Bytes())
}

// words is a state for people: "on sale".
func words(state string) string { return strings.ReplaceAll(state, "_", " ") }

// count is a number for people: 50,000.
func count(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

var homePage = template.Must(template.New("home").Funcs(template.FuncMap{"words": words, "count": count}).Parse(`<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1"><title>Onsale</title><style>` + pageStyle + `</style></head><body><main>
<h1>Onsale</h1><p class="quiet">Version {{.Version}}. Sells tickets at the minute when everyone wants them.</p>
{{if .Demo}}<p><strong>This is a demo.</strong> Money is not real, and tickets are marked TEST.
Mails, sign-in codes among them, end in the <a href="/dev/mailbox">demo mailbox</a> unless a mail server is configured.</p>{{end}}
<h2>Events</h2>{{if .Events}}<div class="scroll"><table><thead><tr><th>Event</th><th>When and where</th><th>State</th><th>Left</th></tr></thead><tbody>
{{range .Events}}<tr><td>{{.Title}}<br><code><a href="/v1/events/{{.ID}}">{{.ID}}</a></code></td>
<td>{{.Starts.Format "Mon 2 Jan 2006, 15:04 MST"}}<br><span class="quiet">{{.Venue.Name}}, {{.Venue.City}}</span></td><td>{{words .State}}</td>
<td>{{with .Left}}{{count .Seats}} seats{{if .Places}}, {{count .Places}} places{{end}}{{else}}–{{end}}</td></tr>
{{end}}</tbody></table></div>{{else}}<p>No events yet. <code>onsale event import FILE</code> brings some.</p>{{end}}
{{with .First}}<h2>Buy two seats from a terminal</h2><pre>{{if $.Demo}}TOKEN=$(bin/onsale token --data {{$.Data}})
{{else}}TOKEN=…   # of a configured issuer; or sign in by mail, see /docs
{{end}}
HOLD=$(curl -s http://{{$.Host}}/v1/holds \
  -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \
  -d '{"event_id":"{{.ID}}","best_available":{"quantity":2}}' \
  | tee /dev/stderr | grep -o 'hold_[0-9A-Z]\{8,\}')

curl -s http://{{$.Host}}/v1/bookings \
  -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \
  -H "Idempotency-Key: $(date +%s)-$RANDOM" \
  -d "{\"hold_id\":\"$HOLD\",\"payment_token\":\"{{if $.Demo}}tok_ok{{else}}…{{end}}\"}"
</pre>
{{if $.Demo}}<p><code>tok_ok</code> pays, <code>tok_declined</code> is declined, <code>tok_pending</code> pays after a while.</p>
{{end}}<p>Watch seats change: <code>curl -N http://{{$.Host}}/v1/events/{{.ID}}/seats/stream</code></p>{{end}}
<h2>More</h2><p><a href="/docs">API</a> · <a href="/openapi.json">OpenAPI</a> · <a href="/.well-known/jwks.json">Ticket keys</a></p>
</main></body></html>`))
