package audit

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"onsale/internal/draw"
	"onsale/internal/id"
	"onsale/internal/ledger/decide"
	"onsale/internal/waitingroom"
)

const (
	drawDocBytesMax  = 1 << 20
	drawLineBytesMax = 128 // of the list of joins
	drawFaultsMax    = 10  // of one kind that are told
)

// ErrNoDraw says that an event has no waiting room, or that it never opened.
var ErrNoDraw = errors.New("this event has no waiting room that has opened")

// A DrawReport is what was recomputed of an event's draw.
type DrawReport struct {
	Doc    waitingroom.DrawDoc
	Checks []waitingroom.DrawCheck
}

// OK says whether nothing differs.
func (r *DrawReport) OK() bool { return waitingroom.DrawOK(r.Checks) }

// Render writes a line for each check.
func (r *DrawReport) Render(w io.Writer) error {
	fmt.Fprintf(w, "event %s, opening order %s, draw %s\n", r.Doc.EventID, r.Doc.OpeningOrder, r.Doc.State)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range r.Checks {
		word, text := "ok", c.Found
		switch {
		case c.Fault != "":
			word, text = "WRONG", c.Fault
		case c.Later:
			word = "not yet"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", word, c.What, text)
	}
	return t.Flush()
}

// DrawOfHouse recomputes a draw from what a house has stored: the room in the shard, the joins, and the positions of all who
// entered. It only reads, also while a server runs.
func DrawOfHouse(ctx context.Context, s *Source, joins Joins, event id.ID) (_ *DrawReport, err error) {
	snapshot, err := s.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, snapshot.close()) }()
	var body string
	err = snapshot.tx.QueryRowContext(ctx, snapshot.text(`SELECT body FROM #rooms WHERE event_id = `+number(event))).Scan(&body)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("%s: %w", event.Text(id.Event), ErrNoDraw)
	}
	if err != nil {
		return nil, fmt.Errorf("audit: reading the room: %w", err)
	}
	room, err := decide.DecodeRoom(body, event)
	if err != nil {
		return nil, err
	}
	doc, err := waitingroom.NewDrawDoc(room)
	if err != nil {
		return nil, err
	}
	r := &DrawReport{Doc: doc}
	err = r.withList(func(to io.Writer) error { return houseList(ctx, joins, &doc, event, to) })
	if err != nil {
		return nil, err
	}
	return r, r.sessions(ctx, snapshot, event)
}

// houseList writes the list from the stored joins.
func houseList(ctx context.Context, joins Joins, doc *waitingroom.DrawDoc, event id.ID, to io.Writer) error {
	keys := make([]string, len(doc.Lanes))
	for i, l := range doc.Lanes {
		keys[i] = l.Key
	}
	list, err := draw.NewListWriter(to, keys)
	if err != nil {
		return err
	}
	err = joins.Replay(ctx, event, true, func(r waitingroom.Record) error { return list.Add(r.Lane, r.Number, r.Entry) })
	_, _, closing := list.Close()
	return errors.Join(err, closing)
}

// DrawOfServer recomputes a draw from what a server publishes, and believes nothing else.
func DrawOfServer(ctx context.Context, client *http.Client, base string, event id.ID) (*DrawReport, error) {
	at, err := url.Parse(strings.TrimSuffix(base, "/") + "/v1/events/" + event.Text(id.Event) + "/draw")
	if err != nil {
		return nil, err
	}
	r := &DrawReport{}
	err = get(ctx, client, at, func(body io.Reader) error {
		return json.NewDecoder(io.LimitReader(body, drawDocBytesMax)).Decode(&r.Doc)
	})
	if err != nil {
		return nil, err
	}
	if r.Doc.EventID != event.Text(id.Event) {
		return nil, fmt.Errorf("%s answers with the draw of %.80q", at, r.Doc.EventID)
	}
	list, err := at.Parse(r.Doc.ListURL)
	if err != nil || r.Doc.ListURL == "" {
		return r, r.withList(nil)
	}
	return r, r.withList(func(to io.Writer) error {
		most := (min(max(r.Doc.N, 0), draw.NMax) + 1) * drawLineBytesMax
		return get(ctx, client, list, func(body io.Reader) error {
			_, err := io.Copy(to, io.LimitReader(body, most))
			return err
		})
	})
}

func get(ctx context.Context, client *http.Client, at *url.URL, read func(io.Reader) error) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", at, answer.Status)
	}
	if err := read(answer.Body); err != nil {
		return fmt.Errorf("reading %s: %w", at, err)
	}
	return nil
}

// withList checks the document, with the list that write writes: into a file, since it is read twice and may be large.
func (r *DrawReport) withList(write func(io.Writer) error) (err error) {
	if write == nil || r.Doc.ListHash == "" {
		r.Checks, err = r.Doc.Verify(nil)
		return err
	}
	dir, err := os.MkdirTemp("", "onsale-draw-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	f, err := os.OpenFile(filepath.Join(dir, "list.txt"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	out := bufio.NewWriterSize(f, 1<<20)
	if err := errors.Join(write(out), out.Flush()); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if r.Checks, err = r.Doc.Verify(f); err != nil || !r.OK() || (r.Doc.K == "" && r.Doc.OpeningOrder != waitingroom.OrderArrival) {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return r.positions(f)
}

// positions computes the position of everybody in the list: each is inside, and nobody else's.
func (r *DrawReport) positions(list io.Reader) error {
	type lane struct {
		order *draw.Order
		n     int64
		taken positionSet
	}
	lanes := map[string]*lane{}
	for _, l := range r.Doc.Lanes {
		o, err := r.Doc.Order(l.Key)
		if err != nil {
			return err
		}
		lanes[l.Key] = &lane{order: o, n: l.N}
	}
	count, fault := int64(0), ""
	_, err := draw.ReadList(list, func(key string, number int64, _ [draw.EntryBytes]byte) error {
		l := lanes[key]
		if p := l.order.Position(number); p < 0 || p >= l.n || !l.taken.add(p, l.n) {
			fault = fmt.Sprintf("number %d of lane %s has position %d, which is outside or somebody else's", number, key, p)
		}
		count++
		return nil
	})
	r.Checks = append(r.Checks, waitingroom.DrawCheck{What: "positions", Found: fmt.Sprintf("%d people, each with a position of their own", count), Fault: fault})
	return err
}

// A positionSet has a bit for each position, or, where a stranger says that there are very many, an entry for each that is taken.
type positionSet struct {
	bits []uint64
	few  map[int64]struct{}
}

const drawBitsMax = 1 << 28 // 32 MB

// add says whether a position of n was free.
func (s *positionSet) add(p, n int64) bool {
	if n > drawBitsMax {
		if s.few == nil {
			s.few = map[int64]struct{}{}
		}
		count := len(s.few)
		s.few[p] = struct{}{}
		return len(s.few) > count
	}
	if s.bits == nil {
		s.bits = make([]uint64, n/64+1)
	}
	free := s.bits[p/64]>>(p%64)&1 == 0
	s.bits[p/64] |= 1 << (p % 64)
	return free
}

// sessions compares the positions by which people entered with those that the draw gives.
func (r *DrawReport) sessions(ctx context.Context, s *snapshot, event id.ID) error {
	if !r.OK() || r.Doc.K == "" && r.Doc.OpeningOrder != waitingroom.OrderArrival {
		return nil
	}
	orders := map[string]*draw.Order{}
	for _, l := range r.Doc.Lanes {
		var err error
		if orders[l.Key], err = r.Doc.Order(l.Key); err != nil {
			return err
		}
	}
	rows, err := s.tx.QueryContext(ctx, s.text(`SELECT session_id, lane, number, position FROM #sessions WHERE event_id = `+number(event)+` ORDER BY session_id`))
	if err != nil {
		return fmt.Errorf("audit: reading the sessions: %w", err)
	}
	defer rows.Close()
	var faults []string
	count := 0
	for rows.Next() {
		var session id.ID
		var lane string
		var n, position int64
		if err := rows.Scan((*int64)(&session), &lane, &n, &position); err != nil {
			return err
		}
		count++
		if o := orders[lane]; (o == nil || o.Position(n) != position) && len(faults) < drawFaultsMax {
			faults = append(faults, fmt.Sprintf("%s entered with number %d of lane %s at position %d", session.Text(id.Session), n, lane, position))
		}
	}
	r.Checks = append(r.Checks, waitingroom.DrawCheck{What: "entries", Found: fmt.Sprintf("%d people entered by the positions of the draw", count), Fault: strings.Join(faults, "; ")})
	return rows.Err()
}
