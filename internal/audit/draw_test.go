package audit

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onsale/internal/control"
	"onsale/internal/draw"
	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/ledger/decide"
	"onsale/internal/ledger/postgres"
	"onsale/internal/ledger/sqlite"
	"onsale/internal/pgserver"
	"onsale/internal/waitingroom"
	"onsale/internal/waitingroom/joinlog"
)

const drawEvent = id.ID(77)

// A drawHouse has one event whose line was drawn.
type drawHouse struct {
	t     *testing.T
	dir   string
	room  ledger.Room
	doc   waitingroom.DrawDoc
	list  []byte
	shard *sql.DB
}

func newDrawHouse(t *testing.T) *drawHouse {
	t.Helper()
	h := &drawHouse{t: t, dir: t.TempDir()}
	l, err := sqlite.Open(t.Context(), h.path(), sqlite.Options{})
	h.must(err)
	h.must(l.Close())
	h.shard, err = sql.Open("sqlite", sqlite.DSN(h.path()))
	h.must(err)
	t.Cleanup(func() { _ = h.shard.Close() })
	h.join()
	return h
}

func (h *drawHouse) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *drawHouse) path() string { return filepath.Join(h.dir, "shard.db") }

// join fills the log with two lanes, of which some numbers are nobody's, and draws.
func (h *drawHouse) join() {
	h.t.Helper()
	log, err := joinlog.Open(filepath.Join(h.dir, "joins"))
	h.must(err)
	defer log.Close()
	var list bytes.Buffer
	w, err := draw.NewListWriter(&list, []string{"general", "presale"})
	h.must(err)
	for lane, n := range []int64{5000, 30} {
		var records []waitingroom.Record
		for number := range n {
			if number%10 == 9 {
				continue
			}
			entry := draw.Entry([]byte("k"), id.ID(1+number+int64(lane)*10_000))
			records = append(records, waitingroom.Record{Event: drawEvent, Customer: id.ID(1 + number + int64(lane)*10_000), Lane: lane, Number: number, Drawn: true, Entry: entry})
			h.must(w.Add(lane, number, entry))
		}
		_, err := log.Append(h.t.Context(), records)
		h.must(err)
	}
	h.must(log.Seal(h.t.Context(), drawEvent))
	_, err = log.Append(h.t.Context(), []waitingroom.Record{{Event: drawEvent, Customer: 1 << 40, Number: 5001}}) // of the tail
	h.must(err)
	hash, _, err := w.Close()
	h.must(err)
	h.list = list.Bytes()
	k := sha256.Sum256([]byte("K"))
	h.room = ledger.Room{Event: drawEvent, Phase: ledger.RoomOpen, Commitment: draw.Commitment(k), Source: "a lottery", Value: "1 2 3", Provable: true, Frozen: 5,
		K: hex.EncodeToString(k[:]), ListHash: hex.EncodeToString(hash[:]), Lanes: []ledger.Lane{{Key: "general", N: 5000, HighWater: 6000}, {Key: "presale", N: 30, HighWater: 100}}}
	h.doc, err = waitingroom.NewDrawDoc(&h.room)
	h.must(err)
	h.put()
}

// put stores the room, and entries by the draw.
func (h *drawHouse) put() {
	h.t.Helper()
	body, err := decide.EncodeRoom(&h.room)
	h.must(err)
	_, err = h.shard.Exec(`DELETE FROM rooms`)
	h.must(err)
	_, err = h.shard.Exec(`INSERT INTO rooms (event_id, version, body) VALUES (?, 1, ?)`, int64(drawEvent), body)
	h.must(err)
	_, err = h.shard.Exec(`DELETE FROM sessions`)
	h.must(err)
	for i, number := range []int64{0, 17, 4999, 5001} {
		o, err := h.doc.Order("general")
		h.must(err)
		h.enter(i+1, "general", number, o.Position(number))
	}
}

func (h *drawHouse) enter(session int, lane string, number, position int64) {
	h.t.Helper()
	_, err := h.shard.Exec(`INSERT INTO sessions (session_id, event_id, customer_id, lane, number, position, entered_at, expires_at) VALUES (?, ?, 1, ?, ?, ?, 1, 2)`,
		session, int64(drawEvent), lane, number, position)
	h.must(err)
}

func (h *drawHouse) audit() *DrawReport {
	h.t.Helper()
	s, err := OpenSQLite(h.path())
	h.must(err)
	defer s.Close()
	log := joinlog.OpenRead(filepath.Join(h.dir, "joins"))
	defer log.Close()
	r, err := DrawOfHouse(h.t.Context(), s, log, drawEvent)
	h.must(err)
	return r
}

// wrong are the names of the checks that failed.
func wrong(r *DrawReport) (names []string) {
	for _, c := range r.Checks {
		if c.Fault != "" {
			names = append(names, c.What)
		}
	}
	return names
}

func TestDrawOfHouse(t *testing.T) {
	h := newDrawHouse(t)
	r := h.audit()
	var text strings.Builder
	h.must(r.Render(&text))
	if !r.OK() || !strings.Contains(text.String(), "4527 people, each with a position of their own") || !strings.Contains(text.String(), "4 people entered") {
		t.Errorf("%s", text.String())
	}
	good := h.room
	for name, change := range map[string]func(){
		"K":            func() { h.room.K = strings.Repeat("ab", 32) },
		"commitment":   func() { h.room.Commitment = strings.Repeat("ab", 32) },
		"list hash":    func() { h.room.ListHash = strings.Repeat("ab", 32) },
		"N":            func() { h.room.Lanes[0].N = 4000 },
		"value":        func() { h.room.Value = "1 2 4" }, // the positions of who entered are others then
		"an entry":     func() { h.enter(9, "general", 18, 18) },
		"another lane": func() { h.enter(9, "vip", 18, 18) },
	} {
		h.room = good
		h.room.Lanes = slices.Clone(good.Lanes)
		h.put()
		if found := wrong(h.audit()); found != nil {
			t.Fatalf("before %s: %v", name, found)
		}
		change()
		entered := strings.HasPrefix(name, "an")
		if !entered {
			body, err := decide.EncodeRoom(&h.room)
			h.must(err)
			_, err = h.shard.Exec(`UPDATE rooms SET body = ?`, body)
			h.must(err)
		}
		r := h.audit()
		text.Reset()
		h.must(r.Render(&text))
		if r.OK() || !strings.Contains(text.String(), "WRONG") {
			t.Errorf("%s: nothing is found:\n%s", name, text.String())
		}
	}
}

// With PostgreSQL the joins are in the control database, beside the shard.
func TestDrawOfHouseInPostgres(t *testing.T) {
	lite := newDrawHouse(t)
	url := pgserver.DatabaseForTest(t)
	l, err := postgres.Open(t.Context(), postgres.Options{URL: url})
	lite.must(err)
	lite.must(l.Close())
	d, err := control.OpenPostgres(t.Context(), control.PostgresOptions{URL: url, ConnectionsMax: 2})
	lite.must(err)
	defer d.Close()
	log := joinlog.OpenRead(filepath.Join(lite.dir, "joins"))
	defer log.Close()
	var records []waitingroom.Record
	lite.must(log.Replay(t.Context(), drawEvent, false, func(r waitingroom.Record) error { records = append(records, r); return nil }))
	_, err = d.Joins().Append(t.Context(), records)
	lite.must(err)
	body, err := decide.EncodeRoom(&lite.room)
	lite.must(err)
	db, err := sql.Open("pgx", url)
	lite.must(err)
	defer db.Close()
	_, err = db.Exec(`INSERT INTO shard.rooms (event_id, version, body) VALUES ($1, 1, $2)`, int64(drawEvent), body)
	lite.must(err)
	s, err := OpenPostgres(url)
	lite.must(err)
	defer s.Close()
	ask := func() *DrawReport {
		t.Helper()
		r, err := DrawOfHouse(t.Context(), s, s.JoinsTable(), drawEvent)
		lite.must(err)
		return r
	}
	if r := ask(); !r.OK() {
		t.Errorf("%+v", r.Checks)
	}
	_, err = db.Exec(`UPDATE control.joins SET entry = '\x00112233445566778899aabbccddeeff' WHERE event_id = $1 AND number = 17`, int64(drawEvent))
	lite.must(err)
	if ask().OK() {
		t.Error("another entry is not found")
	}
}

func TestDrawOfHouseWithoutOne(t *testing.T) {
	h := newDrawHouse(t)
	s, err := OpenSQLite(h.path())
	h.must(err)
	defer s.Close()
	if _, err := DrawOfHouse(t.Context(), s, nil, 5); !errors.Is(err, ErrNoDraw) {
		t.Errorf("%v", err)
	}
	h.room.Phase, h.room.K, h.room.Frozen, h.room.ListHash, h.room.Value, h.room.Provable = ledger.RoomWaiting, "", 0, "", "", false
	h.room.Lanes[0].N, h.room.Lanes[1].N = 0, 0
	h.put()
	if r := h.audit(); !r.OK() || len(r.Checks) < 3 {
		t.Errorf("before the draw: %+v", r.Checks)
	}
}

func TestDrawOfServer(t *testing.T) {
	h := newDrawHouse(t)
	doc, list, status := h.doc, h.list, http.StatusOK
	doc.ListURL = "/v1/the/list"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		switch r.URL.Path {
		case fmt.Sprintf("/v1/events/%s/draw", drawEvent.Text(id.Event)):
			h.must(json.NewEncoder(w).Encode(doc))
		case "/v1/the/list":
			_, _ = w.Write(list)
		}
	}))
	defer server.Close()
	client := server.Client()
	defer client.CloseIdleConnections()
	ask := func() (*DrawReport, error) { return DrawOfServer(t.Context(), client, server.URL+"/", drawEvent) }
	r, err := ask()
	h.must(err)
	if !r.OK() || r.Checks[len(r.Checks)-1].What != "positions" {
		t.Errorf("%+v", r.Checks)
	}
	list = list[:len(list)-50]
	if r, err := ask(); err != nil || r.OK() {
		t.Errorf("a list that was cut off: %+v, %v", r, err)
	}
	list = append(slices.Clone(h.list), make([]byte, 10<<20)...)
	if r, err := ask(); err != nil || r.OK() {
		t.Errorf("a list that does not end: %v", err)
	}
	list = h.list
	doc.Lanes = slices.Clone(doc.Lanes)
	doc.Lanes[0].N += draw.NMax / 2 // nothing is allocated for what a stranger says
	doc.N += draw.NMax / 2
	if r, err := ask(); err != nil || r.OK() {
		t.Errorf("a huge N: %v", err)
	}
	doc = h.doc
	if r, err := ask(); err != nil || !r.OK() { // no list: the rest is checked
		t.Errorf("without a list: %+v, %v", r, err)
	}
	doc.EventID = "evt_another"
	if _, err := ask(); err == nil {
		t.Error("another event's draw is taken")
	}
	status = http.StatusNotFound
	if _, err := ask(); err == nil {
		t.Error("404 is taken")
	}
}

func TestPositionSet(t *testing.T) {
	for _, n := range []int64{100, drawBitsMax + 1} {
		var s positionSet
		if !s.add(63, n) || !s.add(64, n) || s.add(63, n) || !s.add(99, n) {
			t.Errorf("of %d", n)
		}
	}
}
