package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/ledger/decide"
)

// The bare design writes the rows of a whole sale as ours does, into the same tables with the same indexes and the same
// durability, in three transactions for each batch of parties: hold, begin payment, confirm. Everything that is written
// was made up before the clock started; nothing is decided, nobody waits for an answer, nothing is read. So it is an
// upper bound for every program that keeps these rows, and what is left between it and ours is the price of deciding.

// bareBatch is how many parties one transaction serves: as many as a batch of ours has commands.
const bareBatch = ledger.BatchCommandsMax

// A party is one sale, as it will stand in the rows.
type party struct {
	hold, order, customer id.ID
	payment               string
	seats                 []int32
	lines                 []ledger.Line
	tickets               []id.ID
	amount                int64
	subject               []byte // of the customer's limit

	linesText, claimsText string
	pending, paid         string // bodies of the notices
}

// A bareStore runs the statements of one batch.
type bareStore interface {
	hold(ctx context.Context, parties []party, now ledger.Time) error
	begin(ctx context.Context, parties []party, now ledger.Time) error
	confirm(ctx context.Context, parties []party, now ledger.Time) error
	close(ctx context.Context) error
}

func (p *place) saleBare(ctx context.Context, o SaleOptions, r *Result) (err error) {
	hall, err := newHall(o.Seats, o.Party)
	if err != nil {
		return err
	}
	l, err := p.open(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(hall.open(ctx, l), l.Close()); err != nil {
		return err
	}
	parties := hall.parties(o.Party)
	var s bareStore
	if p.path != "" {
		s, err = openBareSQLite(ctx, p.path, hall)
	} else {
		s, err = openBarePostgres(ctx, p.url, hall)
	}
	if err != nil {
		return err
	}
	var times []time.Duration
	cpu, began := p.host.cpu(), time.Now()
	for from := 0; from < len(parties) && err == nil; from += bareBatch {
		batch := parties[from:min(from+bareBatch, len(parties))]
		for _, step := range []func(context.Context, []party, ledger.Time) error{s.hold, s.begin, s.confirm} {
			start := time.Now()
			if err = step(ctx, batch, ledger.TimeOf(start)); err != nil {
				break
			}
			times = append(times, time.Since(start))
		}
	}
	r.Seconds, r.CPUSeconds = time.Since(began).Seconds(), cpu.seconds()
	if err = errors.Join(err, s.close(ctx)); err != nil {
		return err
	}
	r.Attempts, r.Won = int64(len(parties)), int64(len(parties))
	r.P50MS, r.P99MS = percentiles(times)
	if err := p.claims(ctx, r); err != nil {
		return err
	}
	return p.audit(ctx, nil, r)
}

// parties are as many as the hall has room for, on aligned seats.
func (h *hall) parties(size int) []party {
	parties := make([]party, h.plan.Layout().SeatCount/size)
	for i := range parties {
		p := &parties[i]
		p.hold, p.order, p.customer = h.ids.MustNext(0), h.ids.MustNext(0), h.ids.MustNext(0)
		p.payment = fmt.Sprintf("pay_%d", i)
		p.subject = []byte(decide.CustomerSubject(p.customer))
		claims := decide.Transition{}
		for k := range size {
			seat := int32(i*size + k)
			line := h.event.Price(h.layout.Category[seat])
			line.Seat, line.Epoch = seat, 1
			p.amount += line.Total
			p.seats, p.lines, p.tickets = append(p.seats, seat), append(p.lines, line), append(p.tickets, h.ids.MustNext(0))
			claims.Seats, claims.Epoch = append(claims.Seats, seat), append(claims.Epoch, 1)
		}
		p.linesText, p.claimsText = string(decide.AppendLines(nil, p.lines)), string(claims.AppendClaims(nil))
		p.pending = h.notice(p, ledger.OrderPending, "")
		p.paid = h.notice(p, ledger.OrderPaid, p.payment)
	}
	return parties
}

func (h *hall) notice(p *party, state ledger.OrderState, paid string) string {
	return string(decide.AppendNotice(nil, &ledger.Order{
		ID: p.order, Event: h.event.ID, Customer: p.customer, State: state, Amount: p.amount, Currency: currency, Payment: paid,
	}, 0))
}

// change is the change row's body after a batch.
func (h *hall) change(parties []party, state ledger.Availability, expires ledger.Time) string {
	c := ledger.Change{Event: h.event.ID}
	for i := range parties {
		for _, seat := range parties[i].seats {
			c.Seats = append(c.Seats, ledger.SeatChange{Index: seat, State: state, Expires: expires})
		}
	}
	return string(decide.AppendChange(nil, &c))
}

// expires is when a hold made now runs out.
func (h *hall) expires(now ledger.Time) ledger.Time { return now + ledger.Time(h.event.HoldTTL) }
