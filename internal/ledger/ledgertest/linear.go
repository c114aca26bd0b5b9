package ledgertest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

const (
	linearSeats    = 6
	linearClients  = 8
	linearSteps    = 30               // of each client, in the short form
	linearPatience = 20 * time.Second // for the checker
)

// A seatOp is an operation on one seat: hold it, release the hold, or sell it.
type seatOp struct {
	kind string // "hold", "release", "sell"
	seat int32
	hold id.ID
}

// A seatAnswer is what was heard of it. Unknown: the answer was lost, so it may have happened or not.
type seatAnswer struct {
	unknown bool
	done    bool
}

// A seatRegister is a seat as one who only sees answers must believe it to be.
type seatRegister struct {
	hold id.ID // 0: free
	sold bool
}

var seatModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		bySeat := make([][]porcupine.Operation, linearSeats)
		for _, o := range history {
			seat := o.Input.(seatOp).seat
			bySeat[seat] = append(bySeat[seat], o)
		}
		return bySeat
	},
	Init: func() any { return seatRegister{} },
	Step: func(state, input, output any) (bool, any) {
		s, op, answer := state.(seatRegister), input.(seatOp), output.(seatAnswer)
		possible, next := false, s
		switch op.kind {
		case "hold":
			possible, next = s.hold == 0, seatRegister{hold: op.hold}
		case "release":
			possible, next = s.hold == op.hold && !s.sold, seatRegister{}
		case "sell":
			possible, next = s.hold == op.hold && !s.sold, seatRegister{hold: op.hold, sold: true}
		}
		switch {
		case answer.unknown && possible, answer.done && possible:
			return true, next
		case answer.unknown:
			return true, s
		}
		return answer.done == possible, s
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v → %+v", input, output) },
}

// exerciseLinearizable lets clients fight over few seats, some of them losing answers, and asks whether there is an order
// in which the seats could have answered so.
func exerciseLinearizable(t *testing.T, open Open) {
	c := newCrowd(t, open, linearSeats)
	var clock atomic.Int64
	var mu sync.Mutex
	var history []porcupine.Operation
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	c.atOnce(linearClients, func(client int, door ledger.Ledger) error {
		p := &linearClient{client: client, door: door, random: rand.New(rand.NewPCG(seed, uint64(client)))}
		p.record = func(op seatOp, do func() (seatAnswer, error)) (bool, error) {
			call := clock.Add(1)
			answer, err := do()
			returned := clock.Add(1)
			if p.random.IntN(10) == 0 {
				answer, returned = seatAnswer{unknown: true}, math.MaxInt64
			}
			mu.Lock()
			defer mu.Unlock()
			history = append(history, porcupine.Operation{ClientId: client, Input: op, Call: call, Output: answer, Return: returned})
			return answer.done, err
		}
		for range times(linearSteps) {
			if err := p.step(); err != nil {
				return err
			}
		}
		return nil
	})
	switch porcupine.CheckOperationsTimeout(seatModel, history, linearPatience) {
	case porcupine.Illegal:
		t.Errorf("the answers about seats fit no order (seed %d)", seed)
		for _, o := range history {
			t.Logf("client %d, %d–%d: %s", o.ClientId, o.Call, o.Return, seatModel.DescribeOperation(o.Input, o.Output))
		}
	case porcupine.Unknown:
		t.Log("the checker ran out of patience")
	}
}

// A linearClient is one who holds, releases and buys single seats.
type linearClient struct {
	client int
	door   ledger.Ledger
	random *rand.Rand
	lastID int
	record func(op seatOp, do func() (seatAnswer, error)) (bool, error)
}

func (p *linearClient) id() id.ID {
	p.lastID++
	return id.ID(1_000_000*(p.client+1) + p.lastID)
}

// step is one hold and perhaps what follows it. Seats are rarely bought, since that ends their story.
func (p *linearClient) step() error {
	seat := int32(p.random.IntN(linearSeats))
	hold := p.id()
	customer := id.ID(200 + p.client)
	got, err := p.record(seatOp{"hold", seat, hold}, func() (seatAnswer, error) {
		return p.ask(ledger.HoldSeats{ID: hold, Event: 3, Customer: customer, Seats: []int32{seat}}, fault.SeatsTaken)
	})
	if err != nil {
		return err
	}
	if !got && p.random.IntN(2) == 0 {
		return nil
	}
	if p.random.IntN(60) == 0 {
		_, err = p.record(seatOp{"sell", seat, hold}, func() (seatAnswer, error) { return p.buy(hold, customer) })
		return err
	}
	_, err = p.record(seatOp{"release", seat, hold}, func() (seatAnswer, error) {
		return p.ask(ledger.Release{Hold: hold, Customer: customer}, fault.HoldUnknown, fault.Conflict)
	})
	return err
}

// ask is done where the command had its effect now, not done where it was refused by one of the codes or had been done.
func (p *linearClient) ask(c ledger.Command, codes ...fault.Code) (seatAnswer, error) {
	r, err := applyOne(p.door, c)
	if err != nil || r.Fault == nil {
		return seatAnswer{done: err == nil && !r.Repeat}, err
	}
	for _, code := range codes {
		if r.Fault.Code == code {
			return seatAnswer{}, nil
		}
	}
	return seatAnswer{}, r.Fault
}

func (p *linearClient) buy(hold, customer id.ID) (seatAnswer, error) {
	order := p.id()
	begun, err := applyOne(p.door, ledger.BeginPayment{Order: order, Hold: hold, Customer: customer, Provider: "sandbox"})
	if err != nil || begun.Fault != nil {
		return seatAnswer{}, err
	}
	return p.ask(ledger.Confirm{
		Order: order, Payment: "p", Amount: begun.Order.Amount, Currency: "EUR", Captured: true,
		Tickets: []id.ID{p.id()}, Refund: p.id(), RescueHold: p.id(),
	})
}
