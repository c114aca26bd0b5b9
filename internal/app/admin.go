package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"onsale/internal/catalog"
	"onsale/internal/catalog/eventfile"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/venue"
)

// Commands reach a running server over a unix socket in its data folder; with none running they open the folder
// themselves (F1). Both ways lead to the same handler, Admin.

const (
	socketName    = "onsale.sock"
	organizerKey  = "house" // whose everything is until organizers sign in
	organizerName = "House"
	adminTimeout  = 5 * time.Minute
)

// An AdminEvent is an event as commands show it.
type AdminEvent struct {
	ID     string    `json:"event_id"`
	Key    string    `json:"key"`
	Title  string    `json:"title"`
	Venue  string    `json:"venue"`
	Starts time.Time `json:"starts_at"`
	State  string    `json:"state"`
	Seats  int       `json:"seat_count"`
	Action string    `json:"action,omitempty"`
	Warn   string    `json:"warning,omitempty"` // something about it that must be mended before it sells
}

// An AdminError is the body of a refusal.
type AdminError struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

// ImportRequest is an event file, and the plan file that it names by a path.
type ImportRequest struct {
	File      []byte `json:"file"`
	Plan      []byte `json:"plan,omitempty"`
	Organizer string `json:"organizer,omitempty"` // its key. Defaults to the house
}

// Admin is the handler of the socket.
func (a *App) Admin() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /events", a.admin(func(r *http.Request) (any, error) { return a.adminList(r.Context()) }))
	mux.HandleFunc("POST /events", a.admin(func(r *http.Request) (any, error) {
		var in ImportRequest
		if err := json.NewDecoder(io.LimitReader(r.Body, 2*venue.FileBytesMax)).Decode(&in); err != nil {
			return nil, fault.New(fault.BadRequest, "not an import: %v", err)
		}
		return a.ImportEvents(r.Context(), in)
	}))
	mux.HandleFunc("POST /events/{event}/{verb}", a.admin(func(r *http.Request) (any, error) {
		return a.adminVerb(r.Context(), r.PathValue("event"), r.PathValue("verb"))
	}))
	a.peopleRoutes(mux, a.People)
	a.operationsRoutes(mux, a.People)
	a.adminWebhooks(mux)
	a.roomRoutes(mux)
	return mux
}

func (a *App) admin(do func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		answer, err := do(r)
		status := http.StatusOK
		if err != nil {
			var refused *catalog.RefusedError
			f := fault.Of(err)
			detail := f.Detail
			if errors.As(err, &refused) {
				f = fault.New(fault.Invalid, "")
				detail = refused.Error()
			}
			if detail == "" && f.Code == fault.EventUnknown {
				detail = "there is no such event in this data folder; see onsale event list"
			}
			if detail == "" {
				detail = err.Error() // commands are the operator's own: they may see the cause
			}
			status, answer = fault.Lookup(f.Code).Status, AdminError{string(f.Code), detail}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(answer)
	}
}

func (a *App) organizer(ctx context.Context) (catalog.Organizer, error) {
	return a.Catalog.EnsureOrganizer(ctx, organizerKey, organizerName)
}

// ImportEvents reads an event file and makes or changes its events; boards of those on sale are loaded at once.
func (a *App) ImportEvents(ctx context.Context, in ImportRequest) ([]AdminEvent, error) {
	file, err := eventfile.Parse(in.File)
	if err != nil {
		return nil, err
	}
	organizer, err := a.organizerOrHouse(ctx, in.Organizer)
	if err != nil {
		return nil, err
	}
	hash, known := file.PlanHash()
	if !known {
		plan, _, err := venue.Import(in.Plan, venue.ImportOptions{}) // mere notes are for onsale plan check
		if err != nil {
			return nil, fault.New(fault.Invalid, "the plan %s: %v; onsale plan check shows all", file.Plan, err)
		}
		if hash, err = a.Catalog.PutPlan(ctx, organizer.ID, plan); err != nil {
			return nil, err
		}
	}
	done, err := a.Catalog.Import(ctx, organizer.ID, file.Import(hash))
	if err != nil {
		return nil, err
	}
	all := make([]AdminEvent, 0, len(done))
	for i := range done {
		shown, err := a.adminEvent(ctx, &done[i].Event)
		if err != nil {
			return nil, err
		}
		shown.Action = done[i].Action
		if action := importActions[done[i].Action]; action != "" {
			a.logged(ctx, organizer.ID, action, shown.ID)
		}
		all = append(all, shown)
	}
	return all, a.loadIfServing(ctx)
}

// unpaid says what is wrong with an event that costs something where nobody takes the money, "" where nothing is.
func (a *App) unpaid(e *catalog.Event) string {
	name := a.Settings.Payment.Provider
	if a.Provider != nil {
		name = a.Provider.Name()
	}
	priced := slices.ContainsFunc(e.Tiers, func(t catalog.Tier) bool { return t.Face+t.Fee > 0 })
	if name != noProvider || !priced || e.State != catalog.OnSale && e.State != catalog.Paused {
		return ""
	}
	return "it has prices and there is no payment provider, so nobody can buy: set payment.provider, and start again"
}

// importActions are the audit log's words for what an import did with an event.
var importActions = map[string]string{"created": "event.make", "updated": "event.change"}

func (a *App) loadIfServing(ctx context.Context) error {
	if a.Inventory == nil {
		return nil
	}
	return a.loadEvents(ctx)
}

func (a *App) adminEvent(ctx context.Context, e *catalog.Event) (AdminEvent, error) {
	row, err := a.Store.Event(ctx, e.ID)
	shown := AdminEvent{
		ID: e.ID.Text(id.Event), Key: e.Key, Title: e.Title, Venue: e.Venue.Name, Starts: e.Starts.In(e.Venue.Location()),
		State: string(e.StateAt(time.Now(), row.State, err == nil)), Warn: a.unpaid(e),
	}
	plan, err := a.Catalog.Plan(ctx, e.PlanHash)
	if ctx.Err() != nil {
		return shown, err
	}
	if err != nil { // an event whose plan is damaged can still be listed and cancelled
		a.Log.ErrorContext(ctx, "the plan of an event cannot be read", "event", shown.ID, "error", err)
		return shown, nil
	}
	shown.Seats = len(plan.Seats)
	return shown, nil
}

func (a *App) adminList(ctx context.Context) ([]AdminEvent, error) {
	all := []AdminEvent{}
	q := catalog.Query{Drafts: true, Max: catalog.QueryMax}
	for {
		page, err := a.Catalog.Events(ctx, q)
		if err != nil {
			return nil, err
		}
		for i := range page.Events {
			shown, err := a.adminEvent(ctx, &page.Events[i])
			if err != nil {
				return nil, err
			}
			all = append(all, shown)
		}
		if page.Next == (catalog.Cursor{}) {
			return all, nil
		}
		q.After = page.Next
	}
}

func (a *App) adminVerb(ctx context.Context, event, verb string) (AdminEvent, error) {
	number, err := id.Parse(id.Event, event)
	if err != nil {
		return AdminEvent{}, fault.New(fault.EventUnknown, "%q is not an event's id; see onsale event list", event)
	}
	if verb == verbRestart {
		if err := a.restart(ctx, number); err != nil {
			return AdminEvent{}, err
		}
		e, err := a.Catalog.Event(ctx, number)
		if err != nil {
			return AdminEvent{}, err
		}
		a.logged(ctx, e.Organizer, "event.restart", event)
		return a.adminEvent(ctx, e)
	}
	e, err := a.Catalog.Change(catalog.WithActor(ctx, catalog.Actor{Action: "event." + verb}), number, catalog.Verb(verb))
	if err != nil {
		return AdminEvent{}, err
	}
	a.logged(ctx, e.Organizer, "event."+verb, event)
	shown, err := a.adminEvent(ctx, &e)
	if err != nil {
		return shown, err
	}
	return shown, a.loadIfServing(ctx)
}

// verbRestart lets an event sell again that was stopped because an invariant was found broken: somebody has looked.
const verbRestart = "restart"

func (a *App) restart(ctx context.Context, event id.ID) error {
	e, err := a.Catalog.Event(ctx, event)
	if err != nil {
		return err
	}
	plan, err := a.Catalog.Plan(ctx, e.PlanHash)
	if err != nil {
		return err
	}
	row, err := e.LedgerEvent(plan)
	if err != nil {
		return err
	}
	was, err := a.Store.Event(ctx, event)
	if err != nil {
		return err
	}
	if was.State != ledger.Stopped {
		return fault.New(fault.Conflict, "the event is not stopped; it is %s", was.State)
	}
	_, err = a.Batcher.Do(ctx, ledger.SetEvent{Event: row, Looked: true})
	return err
}

// socketPath is short enough for the kernel (108 bytes) even where the data folder is deep.
func socketPath(data string) string { return shortPath(filepath.Join(data, socketName)) }

// shortPath is the path as seen from the working folder, where that is shorter.
func shortPath(path string) string {
	if cwd, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(cwd, path); err == nil && len(rel) < len(path) {
			return rel
		}
	}
	return path
}

// listenAdmin makes the socket; one that a killed server left behind is replaced, since the folder's lock is ours.
func (a *App) listenAdmin() (net.Listener, error) {
	path := socketPath(a.Settings.Data)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("the socket for commands: %w (a shorter --data helps where the path is too long)", err)
	}
	return l, os.Chmod(path, 0o600)
}

// A Client gives commands to a data folder: to the server that runs on it, else by opening it.
type Client struct {
	do    func(*http.Request) (*http.Response, error)
	close func() error
}

// Dial finds the server of a data folder, or opens the folder with the settings.
func Dial(ctx context.Context, s Settings) (*Client, error) {
	path := socketPath(s.Data)
	if conn, err := net.Dial("unix", path); err == nil {
		if err := conn.Close(); err != nil {
			return nil, err
		}
		h := &http.Client{Timeout: adminTimeout, Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "unix", path)
			},
		}}
		return &Client{do: h.Do, close: func() error { h.CloseIdleConnections(); return nil }}, nil
	}
	a, err := Open(ctx, s)
	if err != nil {
		return nil, err
	}
	handler := a.Admin()
	return &Client{
		do: func(r *http.Request) (*http.Response, error) {
			w := &memoryWriter{header: http.Header{}, status: http.StatusOK}
			handler.ServeHTTP(w, r)
			return &http.Response{StatusCode: w.status, Header: w.header, Body: io.NopCloser(&w.body)}, nil
		},
		close: func() error { return a.Close(context.WithoutCancel(ctx)) },
	}, nil
}

// memoryWriter is a response that stays in the process.
type memoryWriter struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *memoryWriter) Header() http.Header         { return w.header }
func (w *memoryWriter) WriteHeader(status int)      { w.status = status }
func (w *memoryWriter) Write(b []byte) (int, error) { return w.body.Write(b) }

// Close ends the client.
func (c *Client) Close() error { return c.close() }

// Call asks for a path and reads the answer into out.
func (c *Client) Call(ctx context.Context, method, path string, in, out any) error {
	var body bytes.Buffer
	if in != nil {
		if err := json.NewEncoder(&body).Encode(in); err != nil {
			return err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://onsale"+path, &body)
	if err != nil {
		return err
	}
	answer, err := c.do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		var refused AdminError
		if err := json.NewDecoder(answer.Body).Decode(&refused); err != nil {
			return fmt.Errorf("the server answered %s", answer.Status)
		}
		return errors.New(strings.TrimSpace(refused.Detail))
	}
	return json.NewDecoder(answer.Body).Decode(out)
}
