package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/ledger/postgres"
	"onsale/internal/redisserver"
)

// The parts of the bench, as they are told to nodes.
const (
	partJoin  = "join"
	partPoll  = "poll"
	partEnter = "enter"
)

// An order tells a node of another process to do a part.
type order struct {
	Part   string        `json:"part"`
	Length time.Duration `json:"length"`
}

// A worker does parts of the bench: a node here, or in another process.
type worker interface {
	do(ctx context.Context, o order) (queuePart, error)
	close() error
}

func (n *queueNode) do(ctx context.Context, o order) (queuePart, error) {
	switch o.Part {
	case partJoin:
		return n.join(ctx)
	case partPoll:
		return n.poll(o.Length)
	case partEnter:
		return n.enter(ctx, o.Length)
	}
	return queuePart{}, fmt.Errorf("there is no part %q", o.Part)
}

// queueOnsale measures our own design.
func (p *place) queueOnsale(ctx context.Context, server *redisserver.Server, o QueueOptions, r *QueueResult) (err error) {
	hall, err := newHall(2000, PartyMax)
	if err != nil {
		return err
	}
	now := ledger.TimeOf(time.Now())
	hall.event.SaleOpens = now + 3_600_000
	hall.event.Room = ledger.RoomRule{
		Mode: ledger.RoomOn, Opens: now - 1000, Rate: queueRate, ActiveMax: queueRoom, Turn: 120_000, Stay: 600_000,
		Lanes: []ledger.LaneRule{{Key: "general", Weight: 1}},
	}
	shard, err := p.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shard.Close()) }()
	if err := hall.open(ctx, shard); err != nil {
		return err
	}
	workers, err := p.workers(ctx, hall.event.ID, server, o, shard)
	defer func() {
		for _, w := range workers {
			err = errors.Join(err, w.close())
		}
	}()
	if err != nil {
		return err
	}
	if err := p.joinAndPoll(ctx, workers, server, o, r); err != nil {
		return err
	}
	hall.event.Version, hall.event.SaleOpens = 2, ledger.TimeOf(time.Now())
	if err := hall.open(ctx, shard); err != nil {
		return err
	}
	entered, err := all(ctx, workers, order{partEnter, o.SaleFor})
	if err != nil {
		return err
	}
	r.Errors += entered.Errors
	r.SaleSeconds = entered.Seconds
	return judgeQueue(ctx, shard, hall.event.ID, r)
}

func (p *place) joinAndPoll(ctx context.Context, workers []worker, server *redisserver.Server, o QueueOptions, r *QueueResult) error {
	var before int64
	var err error
	if server != nil {
		if before, err = usedMemory(ctx, server); err != nil {
			return err
		}
	}
	joined, err := all(ctx, workers, order{Part: partJoin})
	if err != nil {
		return err
	}
	bytes := joined.HeapBytes
	if server != nil {
		after, err := usedMemory(ctx, server)
		if err != nil {
			return err
		}
		bytes = after - before
	}
	r.JoinsPerS, r.BytesPerFan = float64(joined.Joins)/joined.Seconds, float64(bytes)/float64(o.Fans)
	polled, err := all(ctx, workers, order{partPoll, o.PollFor})
	if err != nil {
		return err
	}
	r.PollsPerS, r.StoreOpsPerPoll = float64(polled.Polls)/polled.Seconds, thousandth(float64(polled.StoreOps)/float64(polled.Polls))
	r.Errors += joined.Errors + polled.Errors
	return nil
}

// all lets every worker do a part at once, and adds up; the time is the longest.
func all(ctx context.Context, workers []worker, o order) (sum queuePart, err error) {
	parts, errs := make([]queuePart, len(workers)), make([]error, len(workers))
	var crowd sync.WaitGroup
	for i, w := range workers {
		crowd.Go(func() { parts[i], errs[i] = w.do(ctx, o) })
	}
	crowd.Wait()
	for _, p := range parts {
		sum.Seconds = max(sum.Seconds, p.Seconds)
		sum.Joins += p.Joins
		sum.Polls += p.Polls
		sum.StoreOps += p.StoreOps
		sum.HeapBytes += p.HeapBytes
		sum.Errors += p.Errors
	}
	return sum, errors.Join(errs...)
}

// workers are this process's node, or one in each of several processes.
func (p *place) workers(ctx context.Context, event id.ID, server *redisserver.Server, o QueueOptions, shard store) ([]worker, error) {
	task := queueTask{Event: event, To: o.Fans, LedgerURL: p.url}
	if p.path != "" {
		task.Dir = filepath.Dir(p.path)
	}
	if server != nil {
		task.Redis = server.Address()
	}
	if o.Processes == 1 {
		n, err := openQueueNode(ctx, task, shard)
		if err != nil {
			return nil, err
		}
		return []worker{n}, nil
	}
	var workers []worker
	for i := range o.Processes {
		task.Node, task.From, task.To = i, o.Fans*i/o.Processes, o.Fans*(i+1)/o.Processes
		w, err := startQueueProcess(task, o.Node)
		if err != nil {
			return workers, err
		}
		workers = append(workers, w)
	}
	return workers, nil
}

// A queueProcess is a node in another process, which ends when its standard input does, so also with this one.
type queueProcess struct {
	cmd *exec.Cmd
	to  io.WriteCloser
	in  *json.Encoder
	out *json.Decoder
}

func startQueueProcess(task queueTask, command []string) (*queueProcess, error) {
	w := &queueProcess{cmd: exec.Command(command[0], command[1:]...)}
	w.cmd.Stderr = os.Stderr
	to, err := w.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	from, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	w.to, w.in, w.out = to, json.NewEncoder(to), json.NewDecoder(from)
	var ready queuePart
	if err := errors.Join(w.in.Encode(task), w.out.Decode(&ready)); err != nil || ready.Err != "" {
		return nil, errors.Join(err, errors.New("a node did not start: "+ready.Err), w.close())
	}
	return w, nil
}

func (w *queueProcess) do(_ context.Context, o order) (p queuePart, err error) {
	if err := errors.Join(w.in.Encode(o), w.out.Decode(&p)); err != nil {
		return p, fmt.Errorf("a node does not answer: %w", err)
	}
	if p.Err != "" {
		return p, errors.New(p.Err)
	}
	return p, nil
}

func (w *queueProcess) close() error { return errors.Join(w.to.Close(), w.cmd.Wait()) }

// QueueNode is what one of several processes does: it reads what it is part of and then orders, each a line of JSON, and answers
// each with one. It ends with its input.
func QueueNode(ctx context.Context, in io.Reader, out io.Writer) (err error) {
	orders, answers := json.NewDecoder(in), json.NewEncoder(out)
	var task queueTask
	if err := orders.Decode(&task); err != nil {
		return err
	}
	shard, err := postgres.Open(ctx, postgres.Options{URL: task.LedgerURL})
	if err != nil {
		return errors.Join(err, answers.Encode(queuePart{Err: err.Error()}))
	}
	defer func() { err = errors.Join(err, shard.Close()) }()
	n, err := openQueueNode(ctx, task, shard)
	if err != nil {
		return errors.Join(err, answers.Encode(queuePart{Err: err.Error()}))
	}
	defer func() { err = errors.Join(err, n.close()) }()
	if err := answers.Encode(queuePart{}); err != nil {
		return err
	}
	for {
		var o order
		if err := orders.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		part, err := n.do(ctx, o)
		if err != nil {
			part.Err = err.Error()
		}
		if err := answers.Encode(part); err != nil {
			return err
		}
	}
}

// What judgeQueue reads at once.
const (
	sessionsPage = 10_000
	callsRead    = 100_000
)

// judgeQueue recomputes what happened, over all nodes, from the ledger's rows.
func judgeQueue(ctx context.Context, shard store, event id.ID, r *QueueResult) error {
	reader, ok := shard.(ledger.Reader)
	if !ok {
		return errors.New("the ledger cannot be read")
	}
	calls, err := reader.Calls(ctx, event, "general", 0, callsRead)
	if err != nil {
		return err
	}
	for i := 1; i < len(calls); i++ {
		if calls[i].Watermark < calls[i-1].Watermark || calls[i].At < calls[i-1].At {
			r.Overtakes++
		}
	}
	type step struct {
		at   ledger.Time
		more int
	}
	var steps []step
	perSecond, positions := map[ledger.Time]int{}, map[int64]bool{}
	for after := id.ID(0); ; {
		page, err := reader.Sessions(ctx, event, after, sessionsPage)
		if err != nil {
			return err
		}
		for i := range page {
			s := &page[i]
			after = s.ID
			r.Admitted++
			perSecond[s.Entered/1000]++
			r.AdmittedMax = max(r.AdmittedMax, perSecond[s.Entered/1000])
			steps = append(steps, step{s.Entered, 1})
			if s.Ended != 0 {
				steps = append(steps, step{s.Ended, -1})
			}
			called, _ := slices.BinarySearchFunc(calls, s.Position, func(c ledger.Call, position int64) int {
				if c.Watermark > position {
					return 1
				}
				return -1
			})
			if called == len(calls) || calls[called].At > s.Entered || positions[s.Position] {
				r.Overtakes++
			}
			positions[s.Position] = true
		}
		if len(page) < sessionsPage {
			break
		}
	}
	slices.SortFunc(steps, func(a, b step) int {
		if a.at != b.at {
			return int(a.at - b.at)
		}
		return a.more - b.more // who leaves makes room within the same millisecond
	})
	inside := 0
	for _, s := range steps {
		inside += s.more
		r.MaxActiveSeen = max(r.MaxActiveSeen, inside)
	}
	return nil
}
