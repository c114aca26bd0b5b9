package bench

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"onsale/internal/control"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/keys"
	"onsale/internal/ledger"
	"onsale/internal/redisclient"
	"onsale/internal/waitingroom"
	"onsale/internal/waitingroom/joinlog"
	roomredis "onsale/internal/waitingroom/redis"
)

const (
	askAgain     = 10 * time.Millisecond
	ticketMax    = 512              // bytes of a queue ticket, more than it has
	readyTime    = 30 * time.Second // for the room to be open for joining
	customerBase = id.ID(1) << 50
)

// A queueTask says what a node is part of. It goes to other processes as JSON.
type queueTask struct {
	Event     id.ID  `json:"event"`
	Node      int    `json:"node"`
	From, To  int    // which fans are its own
	Redis     string `json:"redis"`      // "": the store is in process
	LedgerURL string `json:"ledger_url"` // of PostgreSQL
	Dir       string `json:"dir"`        // of the control database and the log of joins, where the ledger is not PostgreSQL
}

// A queueNode is our own waiting room as `serve` has it, with the fans who come to it.
type queueNode struct {
	task    queueTask
	shard   store
	batcher *ledger.Batcher
	service *waitingroom.Service
	store   *countingStore
	made    *id.Generator
	ended   chan error
	closers []func() error

	arena   []byte   // tickets, ticketMax for each fan, before
	tickets []string // they are in here
	errs    atomic.Int64
}

// openQueueNode opens the parts around a ledger, which stays the caller's.
func openQueueNode(ctx context.Context, task queueTask, shard store) (n *queueNode, err error) {
	n = &queueNode{task: task, shard: shard, made: id.NewGenerator(task.Node, time.Now, 0, nil), ended: make(chan error, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.close())
		}
	}()
	reader, ok := shard.(waitingroom.Reader)
	if !ok {
		return n, errors.New("the ledger cannot be read")
	}
	db, log, err := n.durable(ctx)
	if err != nil {
		return n, err
	}
	ring, err := queueKeys(ctx, db)
	if err != nil {
		return n, err
	}
	var joins waitingroom.Store = waitingroom.NewMemory()
	if task.Redis != "" {
		client, err := redisclient.New(redisclient.Options{Addresses: []string{task.Redis}})
		if err != nil {
			return n, err
		}
		if joins, err = roomredis.New(client, roomredis.Options{}); err != nil {
			return n, err
		}
	}
	n.closers = append(n.closers, joins.Close)
	n.store = &countingStore{Store: joins}
	n.batcher = ledger.NewBatcher(shard, ledger.BatcherOptions{})
	n.closers = append(n.closers, func() error { return n.batcher.Close(context.WithoutCancel(ctx)) })
	n.service, err = waitingroom.New(waitingroom.Options{
		Store: n.store, Log: log, Ledger: n.batcher, Reader: reader, Keys: ring, ListKey: []byte("the key of the bench's lists"), Node: task.Node,
		Draw:  func(context.Context, id.ID) ([32]byte, error) { return [32]byte{1}, nil },
		NewID: func(event id.ID) (id.ID, error) { return n.made.Next(event.Shard()) }, Issuer: "https://bench.example",
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		return n, err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	go func() { n.ended <- n.service.Run(running) }()
	n.closers = append(n.closers, func() error { stop(); n.service.Close(); return <-n.ended })
	return n, n.waitReady(ctx)
}

// durable opens what has the keys and the joins.
func (n *queueNode) durable(ctx context.Context) (db *control.DB, log waitingroom.Log, err error) {
	if n.task.LedgerURL != "" {
		if db, err = control.OpenPostgres(ctx, control.PostgresOptions{URL: n.task.LedgerURL}); err != nil {
			return nil, nil, err
		}
		n.closers = append(n.closers, db.Close)
		return db, db.Joins(), nil
	}
	if db, err = control.OpenSQLite(ctx, filepath.Join(n.task.Dir, "control.db")); err != nil {
		return nil, nil, err
	}
	n.closers = append(n.closers, db.Close)
	files, err := joinlog.Open(filepath.Join(n.task.Dir, "joins"))
	if err != nil {
		return nil, nil, err
	}
	n.closers = append(n.closers, files.Close)
	return db, files, nil
}

// queueKeys are the same for all nodes of one control database.
func queueKeys(ctx context.Context, db *control.DB) (*keys.Ring, error) {
	master, err := keys.NewMaster(bytes.Repeat([]byte{1}, keys.MasterBytes))
	if err != nil {
		return nil, err
	}
	ring, err := keys.Load(ctx, db.Keys(), master, keys.Options{})
	if err != nil {
		return nil, err
	}
	for _, purpose := range []keys.Purpose{keys.Queue, keys.Admission} {
		if _, err := ring.EnsureActive(ctx, purpose); err != nil {
			return nil, err
		}
	}
	return ring, nil
}

func (n *queueNode) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	return untilSo(ctx, "the waiting room opens", n.service.Ready)
}

func untilSo(ctx context.Context, what string, so func() bool) error {
	tick := time.NewTicker(askAgain)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("waited in vain: %s", what)
		}
	}
	return nil
}

// close ends the parts in the other order.
func (n *queueNode) close() error {
	var err error
	for _, c := range slices.Backward(n.closers) {
		err = errors.Join(err, c())
	}
	n.closers = nil
	return err
}

func (n *queueNode) fans() int { return n.task.To - n.task.From }

func (n *queueNode) customer(i int) id.ID { return customerBase + id.ID(n.task.From+i) }

// What a node answers about a part of the bench.
type queuePart struct {
	Seconds   float64 `json:"seconds"`
	Joins     int     `json:"joins"`
	Polls     int64   `json:"polls"`
	StoreOps  int64   `json:"store_ops"`
	HeapBytes int64   `json:"heap_bytes"` // that joining has left in memory; 0 where the store is elsewhere
	Errors    int64   `json:"errors"`
	Err       string  `json:"err,omitempty"`
}

// join lets the node's fans join. Their tickets lie where nothing has to be allocated for them.
func (n *queueNode) join(ctx context.Context) (p queuePart, err error) {
	n.arena = make([]byte, n.fans()*ticketMax)
	lengths := make([]int, n.fans())
	before := heap()
	failed, took := together(n.fans(), func(i int) error {
		place, err := untilFree(ctx, func() (waitingroom.Place, error) {
			return n.service.Join(ctx, waitingroom.JoinRequest{Event: n.task.Event, Customer: n.customer(i)})
		})
		if err == nil && len(place.QueueID) > ticketMax {
			err = errors.New("a ticket is longer than was thought")
		}
		lengths[i] = copy(n.arena[i*ticketMax:(i+1)*ticketMax], place.QueueID)
		return err
	})
	p = queuePart{Seconds: took.Seconds(), Joins: n.fans(), Errors: failed, HeapBytes: heap() - before}
	all := string(n.arena)
	n.arena, n.tickets = nil, make([]string, n.fans())
	for i := range n.tickets {
		n.tickets[i] = all[i*ticketMax : i*ticketMax+lengths[i]]
	}
	return p, nil
}

func heap() int64 {
	runtime.GC()
	runtime.GC() // what the first one only marked as free
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// untilFree asks again where it is told to.
func untilFree[T any](ctx context.Context, ask func() (T, error)) (T, error) {
	tick := time.NewTicker(askAgain)
	defer tick.Stop()
	for {
		answer, err := ask()
		if c := fault.CodeOf(err); c != fault.Busy && c != fault.NextIn {
			return answer, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return answer, err
		}
	}
}

// poll lets the fans ask where they stand.
func (n *queueNode) poll(length time.Duration) (p queuePart, err error) {
	ops := n.store.ops.Load()
	polls, failed, took := polling(n.fans(), length, func(i int) error {
		_, err := n.service.Place(n.tickets[i])
		return err
	})
	return queuePart{Seconds: took.Seconds(), Polls: polls, Errors: failed, StoreOps: n.store.ops.Load() - ops}, nil
}

// enter lets those who are called enter, in the order in which they are, and leave after a while.
func (n *queueNode) enter(ctx context.Context, length time.Duration) (p queuePart, err error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	if err := untilSo(ctx, "the draw", func() bool { st, err := n.service.Place(n.tickets[0]); return err == nil && st.Known }); err != nil {
		return p, err
	}
	type waiter struct {
		fan      int
		position int64
	}
	line := make([]waiter, n.fans())
	for i := range line {
		st, err := n.service.Place(n.tickets[i])
		if err != nil {
			return p, err
		}
		line[i] = waiter{i, st.Position}
	}
	slices.SortFunc(line, func(a, b waiter) int { return cmp.Compare(a.position, b.position) })
	var inside sync.WaitGroup
	for _, w := range line {
		if untilSo(ctx, "a turn", func() bool { st, err := n.service.Place(n.tickets[w.fan]); return err == nil && st.Called }) != nil {
			break // the time is over
		}
		inside.Go(func() { n.visit(ctx, w.fan) })
	}
	inside.Wait()
	return queuePart{Seconds: time.Since(began).Seconds(), Errors: n.errs.Load()}, nil
}

// visit is one fan's time inside.
func (n *queueNode) visit(ctx context.Context, i int) {
	admission, err := untilFree(ctx, func() (waitingroom.Admission, error) {
		return n.service.Claim(ctx, n.tickets[i], n.customer(i))
	})
	if err != nil {
		if ctx.Err() == nil {
			n.errs.Add(1)
		}
		return
	}
	select {
	case <-time.After(stays):
	case <-ctx.Done():
		return
	}
	_, err = untilFree(ctx, func() (struct{}, error) {
		return struct{}{}, n.service.Leave(ctx, admission.Session, n.customer(i))
	})
	if err != nil && ctx.Err() == nil {
		n.errs.Add(1)
	}
}

// A countingStore counts how often the store is asked.
type countingStore struct {
	waitingroom.Store
	ops atomic.Int64
}

func (s *countingStore) Join(ctx context.Context, j waitingroom.Join) (waitingroom.Joined, error) {
	s.ops.Add(1)
	return s.Store.Join(ctx, j)
}

func (s *countingStore) Freeze(ctx context.Context, event id.ID) ([]waitingroom.Count, error) {
	s.ops.Add(1)
	return s.Store.Freeze(ctx, event)
}

func (s *countingStore) Restore(ctx context.Context, event id.ID, state waitingroom.State) error {
	s.ops.Add(1)
	return s.Store.Restore(ctx, event, state)
}

func (s *countingStore) Remember(ctx context.Context, records []waitingroom.Record) error {
	s.ops.Add(1)
	return s.Store.Remember(ctx, records)
}

func (s *countingStore) Counts(ctx context.Context, event id.ID) ([]waitingroom.Count, error) {
	s.ops.Add(1)
	return s.Store.Counts(ctx, event)
}

func (s *countingStore) Leave(ctx context.Context, event, customer id.ID, number int64) error {
	s.ops.Add(1)
	return s.Store.Leave(ctx, event, customer, number)
}

func (s *countingStore) Run(ctx context.Context) (string, error) {
	s.ops.Add(1)
	return s.Store.Run(ctx)
}
