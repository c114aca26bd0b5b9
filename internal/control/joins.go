package control

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/sqlmigrate"
	"onsale/internal/waitingroom"
)

const (
	// JoinsMax is how many records one Append may have.
	JoinsMax = 16_384

	joinRows     = 500 // of one statement
	joinTries    = 5   // of a transaction that others were in the way of
	joinsAgainIn = time.Second
)

// Joins is the port of a waiting room's joins, for houses of several nodes. Its Close leaves the database open.
//
// Two unique keys decide between nodes: a number is given once, and a customer has one at a time. A deadlock between two
// nodes' groups is broken by the database and the loser's group is tried again, a bounded number of times.
func (d *DB) Joins() waitingroom.Log { return joinLog{d} }

type joinLog struct{ *DB }

// errAgain says that a customer's number was given up between two statements.
var errAgain = errors.New("somebody left meanwhile")

func (s joinLog) Close() error { return nil }

func (s joinLog) Append(ctx context.Context, records []waitingroom.Record) ([]waitingroom.Appended, error) {
	if len(records) > JoinsMax {
		return nil, fault.New(fault.Invalid, "%d joins at once; at most %d are taken", len(records), JoinsMax)
	}
	if err := waitingroom.CheckRecords(records); err != nil || len(records) == 0 {
		return []waitingroom.Appended{}, err
	}
	var answers []waitingroom.Appended
	err := s.joinsTx(ctx, "storing joins", func(tx *sql.Tx) error {
		answers = make([]waitingroom.Appended, len(records)) // of this try
		return s.appendAll(ctx, tx, records, answers)
	})
	if err != nil {
		return nil, err
	}
	return answers, nil
}

// joinsTx is a transaction that is tried again when others were in its way. What fails is busy: the same records may be
// appended again.
func (s joinLog) joinsTx(ctx context.Context, what string, f func(*sql.Tx) error) error {
	for try := 1; ; try++ {
		err := s.tx(ctx, f)
		if err == nil {
			return nil
		}
		if try == joinTries || ctx.Err() != nil || !contested(err) && !errors.Is(err, errAgain) {
			busy := fault.Wrap(fault.Busy, wrap(what, err))
			busy.RetryAfter = joinsAgainIn
			return busy
		}
	}
}

// appendAll answers the records in the order given, event by event. Events are taken by number, so that two nodes lock
// alike.
func (s joinLog) appendAll(ctx context.Context, tx *sql.Tx, records []waitingroom.Record, answers []waitingroom.Appended) error {
	places := map[id.ID][]int{}
	var events []id.ID
	for i := range records {
		event := records[i].Event
		if places[event] == nil {
			events = append(events, event)
		}
		places[event] = append(places[event], i)
	}
	slices.Sort(events)
	for _, event := range events {
		e := eventJoins{joinLog: s, tx: tx, event: event, records: records, answers: answers}
		if slices.ContainsFunc(places[event], func(i int) bool { return records[i].Drawn || records[i].Left }) {
			var err error
			if e.sealed, err = s.lockList(ctx, tx, event); err != nil {
				return err
			}
		} // what is added behind the drawn ones has nothing to do with the list, and must not keep it from being sealed
		if err := e.append(ctx, places[event]); err != nil {
			return err
		}
	}
	return nil
}

// lockList locks an event's list against being sealed, and says whether it is.
func (s joinLog) lockList(ctx context.Context, tx *sql.Tx, event id.ID) (sealed bool, err error) {
	query := s.q(`SELECT sealed_ms FROM {join_lists} WHERE event_id = $1`)
	if s.dialect == sqlmigrate.Postgres {
		query += ` FOR SHARE`
	}
	var at int64
	err = tx.QueryRowContext(ctx, query, int64(event)).Scan(&at)
	if errors.Is(err, sql.ErrNoRows) {
		if _, err := tx.ExecContext(ctx, s.q(`INSERT INTO {join_lists} (event_id, sealed_ms) VALUES ($1, 0) ON CONFLICT (event_id) DO NOTHING`), int64(event)); err != nil {
			return false, err
		}
		err = tx.QueryRowContext(ctx, query, int64(event)).Scan(&at)
	}
	return at != 0, err
}

func (s joinLog) Seal(ctx context.Context, event id.ID) error {
	if event <= 0 {
		return fault.New(fault.Invalid, "a list without an event")
	}
	return s.joinsTx(ctx, "sealing a list of joins", func(tx *sql.Tx) error {
		now, err := s.clock(ctx, tx)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, s.q(`INSERT INTO {join_lists} (event_id, sealed_ms) VALUES ($1, $2)
			ON CONFLICT (event_id) DO UPDATE SET sealed_ms = CASE WHEN join_lists.sealed_ms = 0 THEN excluded.sealed_ms ELSE join_lists.sealed_ms END`), int64(event), now)
		return err
	})
}

// eventJoins appends the records of one event in a transaction.
type eventJoins struct {
	joinLog
	tx      *sql.Tx
	event   id.ID
	sealed  bool
	records []waitingroom.Record
	answers []waitingroom.Appended
}

// append takes the records in runs that may be stored at once: joins whose customers and numbers all differ.
func (e *eventJoins) append(ctx context.Context, places []int) error {
	var run []int
	customers, numbers := map[id.ID]bool{}, map[[2]int64]bool{}
	flush := func() error {
		if len(run) == 0 {
			return nil
		}
		err := e.joinRun(ctx, run)
		run = run[:0]
		clear(customers)
		clear(numbers)
		return err
	}
	for _, i := range places {
		r := &e.records[i]
		number := [2]int64{int64(r.Lane), r.Number}
		if r.Left || len(run) == joinRows || customers[r.Customer] || numbers[number] {
			if err := flush(); err != nil {
				return err
			}
		}
		if r.Left {
			if err := e.leave(ctx, i); err != nil {
				return err
			}
			continue
		}
		run = append(run, i)
		customers[r.Customer], numbers[number] = true, true
	}
	return flush()
}

// joinRun stores what is new and answers all with what counts then.
func (e *eventJoins) joinRun(ctx context.Context, run []int) error {
	run = slices.Clone(run)
	slices.SortFunc(run, func(a, b int) int { return int(min(1, max(-1, e.records[a].Customer-e.records[b].Customer))) }) // nodes lock alike
	stored, err := e.insert(ctx, run)
	if err != nil {
		return err
	}
	for _, i := range run {
		r := e.records[i]
		if stored[r.Customer] {
			e.answers[i] = waitingroom.Appended{Record: r}
			continue
		}
		is, found, err := e.of(ctx, e.tx, e.event, r.Customer)
		if err != nil {
			return err
		}
		if found {
			e.answers[i] = waitingroom.Appended{Record: is}
			continue
		}
		taken, err := e.taken(ctx, &r)
		switch {
		case err != nil:
			return err
		case taken:
			e.answers[i] = waitingroom.Appended{Record: r, Err: waitingroom.ErrNumberTaken}
		case r.Drawn && e.sealed:
			e.answers[i] = waitingroom.Appended{Record: r, Err: waitingroom.ErrSealed}
		default:
			return errAgain // the customer had another number, and gave it up since
		}
	}
	return nil
}

// insert answers whose join is new. The others are looked at one by one, each by its unique key, so that no plan depends on
// what the database thinks of the table's size: it grows from nothing to millions in minutes.
func (e *eventJoins) insert(ctx context.Context, run []int) (stored map[id.ID]bool, err error) {
	const columns = 8
	args := make([]any, 0, len(run)*columns)
	var values strings.Builder
	for _, i := range run {
		r := &e.records[i]
		if r.Drawn && e.sealed {
			continue
		}
		if len(args) > 0 {
			values.WriteString(", ")
		}
		values.WriteString("(" + e.places(len(args)+1, columns) + ", 1, 0, 1)")
		identity := r.Identity[:]
		if r.Identity == (waitingroom.Identity{}) {
			identity = []byte{}
		}
		args = append(args, int64(r.Event), r.Lane, r.Number, int64(r.Customer), r.At, yes(r.Drawn), identity, r.Entry[:])
	}
	if len(args) == 0 {
		return nil, nil
	}
	new, err := rowsIn(ctx, e.DB, e.tx, func(scan func(...any) error) (customer id.ID, err error) {
		err = scan((*int64)(&customer))
		return customer, err
	}, `INSERT INTO {joins} (event_id, lane, number, customer_id, at_ms, drawn, identity, entry, present, left_ms, listed) VALUES `+
		values.String()+` ON CONFLICT DO NOTHING RETURNING customer_id`, args...)
	stored = make(map[id.ID]bool, len(new))
	for _, customer := range new {
		stored[customer] = true
	}
	return stored, err
}

const joinColumns = `event_id, customer_id, lane, number, at_ms, drawn, identity, entry`

func scanJoin(scan func(...any) error) (r waitingroom.Record, err error) {
	var drawn int64
	var identity, entry []byte
	err = scan((*int64)(&r.Event), (*int64)(&r.Customer), &r.Lane, &r.Number, &r.At, &drawn, &identity, &entry)
	r.Drawn = drawn == 1
	copy(r.Identity[:], identity)
	copy(r.Entry[:], entry)
	return r, err
}

// places are the places of count arguments, from the n-th on. SQLite's have no numbers: its driver looks each numbered one up
// among all the others.
func (s joinLog) places(n, count int) string {
	if s.dialect == sqlmigrate.SQLite {
		return strings.TrimSuffix(strings.Repeat("?, ", count), ", ")
	}
	var b strings.Builder
	for i := range count {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "$%d", n+i)
	}
	return b.String()
}

// taken says whether a number was ever given.
func (e *eventJoins) taken(ctx context.Context, r *waitingroom.Record) (bool, error) {
	var n int64
	err := e.tx.QueryRowContext(ctx, e.q(`SELECT count(*) FROM {joins} WHERE event_id = $1 AND lane = $2 AND number = $3`), int64(r.Event), r.Lane, r.Number).Scan(&n)
	return n > 0, err
}

// leave ends a number. Before the list is sealed it goes from it.
func (e *eventJoins) leave(ctx context.Context, i int) error {
	r := e.records[i]
	ended, err := rowsIn(ctx, e.DB, e.tx, scanJoin, `UPDATE {joins} SET present = 0, left_ms = $1, listed = CASE WHEN $2 = 1 THEN listed ELSE 0 END
		WHERE event_id = $3 AND lane = $4 AND number = $5 AND customer_id = $6 AND present = 1 RETURNING `+joinColumns,
		r.At, yes(e.sealed), int64(r.Event), r.Lane, r.Number, int64(r.Customer))
	if err != nil {
		return err
	}
	if len(ended) == 0 {
		is, found, err := e.of(ctx, e.tx, e.event, r.Customer)
		if found {
			r = is
		}
		e.answers[i] = waitingroom.Appended{Record: r}
		return err
	}
	ended[0].Left, ended[0].At = true, r.At
	e.answers[i] = waitingroom.Appended{Record: ended[0]}
	return nil
}

// Replay reads one picture of the table. Ends go first, so that who came again is present at the end.
func (s joinLog) Replay(ctx context.Context, event id.ID, sorted bool, each func(waitingroom.Record) error) error {
	join := func(r waitingroom.Record, _ int64) error { return each(r) }
	if sorted {
		return wrap("reading a list of joins", s.replay(ctx, s.read, event, `drawn = 1 AND listed = 1 ORDER BY lane, number`, join))
	}
	options := &sql.TxOptions{}
	if s.dialect == sqlmigrate.Postgres {
		options.Isolation, options.ReadOnly = sql.LevelRepeatableRead, true
	}
	tx, err := s.read.BeginTx(ctx, options)
	if err != nil {
		return wrap("reading joins", err)
	}
	defer tx.Rollback() //nolint:errcheck // it only reads
	if err := s.replay(ctx, tx, event, `present = 0`, func(r waitingroom.Record, left int64) error {
		if err := each(r); err != nil {
			return err
		}
		r.Left, r.At = true, left
		return each(r)
	}); err != nil {
		return wrap("reading joins", err)
	}
	return wrap("reading joins", s.replay(ctx, tx, event, `present = 1`, join))
}

// A reader is a database or a transaction.
type reader interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// replay reads rows, each with the instant at which it ended.
func (s joinLog) replay(ctx context.Context, from reader, event id.ID, where string, each func(r waitingroom.Record, left int64) error) error {
	rows, err := from.QueryContext(ctx, s.q(`SELECT `+joinColumns+`, left_ms FROM {joins} WHERE event_id = $1 AND `+where), int64(event))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var left int64
		r, err := scanJoin(func(to ...any) error { return rows.Scan(append(to, &left)...) })
		if err != nil {
			return err
		}
		if err := each(r, left); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (s joinLog) Of(ctx context.Context, event, customer id.ID) (waitingroom.Record, bool, error) {
	r, ok, err := s.of(ctx, s.read, event, customer)
	return r, ok, wrap("reading a join", err)
}

func (s joinLog) of(ctx context.Context, from reader, event, customer id.ID) (r waitingroom.Record, ok bool, err error) {
	r, err = scanJoin(from.QueryRowContext(ctx, s.q(`SELECT `+joinColumns+` FROM {joins} WHERE event_id = $1 AND customer_id = $2 AND present = 1`),
		int64(event), int64(customer)).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return waitingroom.Record{}, false, nil
	}
	return r, err == nil, err
}

func (s joinLog) Next(ctx context.Context, event id.ID) ([]waitingroom.Count, error) {
	all, err := rows(ctx, s.DB, func(scan func(...any) error) (c waitingroom.Count, err error) {
		err = scan(&c.Lane, &c.Count)
		return c, err
	}, `SELECT lane, max(number) + 1 FROM {joins} WHERE event_id = $1 GROUP BY lane ORDER BY lane`, int64(event))
	return all, wrap("reading the numbers of a line", err)
}
