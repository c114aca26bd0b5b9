package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/payment"
)

// What happened to money between a backup and its restoring stands in the provider's books alone. Three things can be:
//
//   - A payment of a booking that the backup has, and that was not paid then: the booking is settled as after any crash. Its
//     seats are given where they are still free or held; else the money goes back (booking.Service.Recover).
//   - A payment of a booking that the backup does not have: which seats it was for is nowhere any more. It is kept as a dead
//     letter and given back an hour later by the same job as every dead letter (A20), unless the operator says otherwise.
//   - Money that was given back since. A refund that the backup has as requested is asked for again under its own id, which
//     changes nothing at the provider. One that it does not have, of all that was paid, is made again under that id: all of
//     the tickets were given back. One of a part is listed: which tickets it was for stands nowhere, they are all still
//     valid, and somebody must decide.

// unknownSkew is how much earlier than the backup, by the provider's clock, a payment may have been made for a booking that
// the backup does not have.
const unknownSkew = 5 * time.Minute

// recoverRoundsMax bounds the rounds of recovery in a restore; what they leave the server settles.
const recoverRoundsMax = 1000

// listedMax is how many of a kind a report lists. All are counted and dealt with.
const listedMax = 1000

// A MoneyReport says what the provider's books have that the backup does not.
type MoneyReport struct {
	Provider string `json:"provider"`
	// Listed says whether the provider can show its books. If not, nothing could be compared.
	Listed   bool `json:"listed"`
	Payments int  `json:"payment_count"`
	// Settled were bookings whose payment the backup did not know: they were asked about and are settled, or will be by the
	// server.
	Settled []MoneyRow `json:"settled"`
	// Unknown are payments of bookings that the backup does not have.
	Unknown []MoneyRow `json:"unknown"`
	// Rebuilt are bookings that got all of their money back after the backup: they are refunded here, too.
	Rebuilt []MoneyRow `json:"rebuilt"`
	// Refunded are bookings that got a part of it back: their tickets are valid still.
	Refunded []MoneyRow `json:"refunded_since"`
	// Strange is how many payments are not ours, as far as can be told: of another shard, another house, or older than the
	// backup.
	Strange int `json:"strange_count"`
	// GivenBackFrom is when Unknown are given back; zero: they are left alone.
	GivenBackFrom time.Time      `json:"given_back_from,omitzero"`
	Counts        map[string]int `json:"counts"` // of the lists, all of it
}

// A MoneyRow is one payment.
type MoneyRow struct {
	Booking string    `json:"booking_id"`
	Payment string    `json:"payment_id"`
	Amount  int64     `json:"amount_minor"` // that is there, or went back
	Money   string    `json:"currency"`
	At      time.Time `json:"at"`
	State   string    `json:"state,omitempty"` // of the booking, afterwards
}

// compareMoney walks the provider's books.
func (a *App) compareMoney(ctx context.Context, report *RestoreReport, o RestoreOptions) error {
	m := &report.Money
	m.Provider, m.Counts = a.Provider.Name(), map[string]int{}
	lister, ok := a.Provider.(payment.Lister)
	if !ok {
		return a.recoverAll(ctx)
	}
	m.Listed = true
	c := comparison{App: a, report: report, o: o}
	for cursor := ""; ; {
		page, err := lister.List(ctx, cursor)
		if err != nil {
			return fmt.Errorf("the provider's books: %w", err)
		}
		for i := range page.Payments {
			if err := c.payment(ctx, &page.Payments[i]); err != nil {
				return err
			}
		}
		if page.Next == "" {
			break
		}
		cursor = page.Next
	}
	if len(m.Unknown) > 0 && !o.KeepUnknown {
		m.GivenBackFrom = time.Now().Add(deadAfter).UTC().Truncate(time.Second)
	}
	if err := a.recoverAll(ctx); err != nil {
		return err
	}
	if err := c.rebuild(ctx); err != nil {
		return err
	}
	return c.outcomes(ctx)
}

// deadAfter is booking's default wait before the payment of an unknown booking is given back (A20).
const deadAfter = time.Hour

type comparison struct {
	*App
	report  *RestoreReport
	o       RestoreOptions
	settled []id.ID
	back    []backSince
}

// A backSince is money that went back by refunds which the backup does not have.
type backSince struct {
	payment payment.Payment
	amount  int64
	refunds []payment.Refund
}

func (c *comparison) payment(ctx context.Context, p *payment.Payment) error {
	m := &c.report.Money
	m.Payments++
	order, err := id.Parse(id.Order, p.OrderID)
	if err != nil || order.Shard() != shardNumber {
		m.Strange++
		return nil
	}
	o, err := c.Store.Order(ctx, order)
	if errors.Is(err, ledger.ErrNotFound) || err == nil && o.Provider != c.Provider.Name() {
		return c.unknown(ctx, order, p)
	}
	if err != nil {
		return err
	}
	known, err := c.Store.Payments(ctx, order)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(known, func(k ledger.Payment) bool { return k.ID == p.ID && k.Provider == c.Provider.Name() })
	if at < 0 {
		if left := leftOf(p); left > 0 {
			c.settled = append(c.settled, order)
			m.add("settled", &m.Settled, p, left)
		}
		return nil
	}
	return c.refunds(ctx, &o, p)
}

// leftOf is the money that is there by a payment.
func leftOf(p *payment.Payment) int64 {
	switch p.State {
	case payment.Authorized:
		return p.AuthorizedMinor
	case payment.Captured:
		return p.CapturedMinor - p.RefundedMinor
	}
	return 0
}

func (m *MoneyReport) add(kind string, list *[]MoneyRow, p *payment.Payment, amount int64) {
	m.Counts[kind]++
	if len(*list) < listedMax {
		*list = append(*list, MoneyRow{Booking: p.OrderID, Payment: p.ID, Amount: amount, Money: p.Currency, At: p.CreatedAt.UTC().Truncate(time.Second)})
	}
}

// unknown deals with a payment whose order is not in the backup. One that is older than the backup was never ours, or its
// order would be there.
func (c *comparison) unknown(ctx context.Context, order id.ID, p *payment.Payment) error {
	m := &c.report.Money
	after := c.report.Began.Add(-unknownSkew)
	if p.CreatedAt.Before(after) || order.Time().Before(after) {
		m.Strange++
		return nil
	}
	next, err := c.NewID(shardNumber)
	if err != nil {
		return err
	}
	if order >= next {
		return fmt.Errorf("booking %s was made at %s, and this machine's clock is behind that: set it right, empty the folder (or database) and restore again", p.OrderID, order.Time().Format(time.RFC3339))
	}
	left := leftOf(p)
	if left <= 0 {
		return nil
	}
	m.add("unknown", &m.Unknown, p, left)
	if c.o.KeepUnknown {
		return nil
	}
	return c.Store.WebhookKeep(ctx, ledger.Webhook{
		Provider: c.Provider.Name(), Event: "restore-" + p.ID, Order: p.OrderID, Payment: p.ID, Amount: left, Currency: p.Currency, Dead: true,
	})
}

// refunds lists what went back by refunds that the backup does not have.
func (c *comparison) refunds(ctx context.Context, o *ledger.Order, p *payment.Payment) error {
	if p.RefundedMinor == 0 {
		return nil
	}
	known, err := c.Store.RefundsOf(ctx, o.ID)
	if err != nil {
		return err
	}
	since := backSince{payment: *p}
	for _, r := range p.Refunds {
		if !slices.ContainsFunc(known, func(k ledger.Refund) bool { return k.Key() == r.ID || k.ID.Text(id.Refund) == r.ID }) {
			since.refunds = append(since.refunds, r)
			since.amount += r.AmountMinor
		}
	}
	if since.amount > 0 {
		c.back = append(c.back, since)
	}
	return nil
}

// rebuild makes refunds again, where it is certain what they were.
func (c *comparison) rebuild(ctx context.Context) error {
	m := &c.report.Money
	for i := range c.back {
		b := &c.back[i]
		done, err := c.rebuildOne(ctx, b)
		if err != nil {
			return err
		}
		if done {
			m.add("rebuilt", &m.Rebuilt, &b.payment, b.amount)
		} else {
			m.add("refunded_since", &m.Refunded, &b.payment, b.amount)
		}
	}
	return c.recoverAll(ctx)
}

func (c *comparison) rebuildOne(ctx context.Context, b *backSince) (bool, error) {
	order, err := id.Parse(id.Order, b.payment.OrderID)
	if err != nil {
		return false, err
	}
	o, err := c.Store.Order(ctx, order)
	if err != nil {
		return false, err
	}
	if len(b.refunds) != 1 || b.amount != b.payment.CapturedMinor || b.amount != o.Amount || o.State != ledger.OrderPaid || o.Exchange != 0 {
		return false, nil
	}
	first, err := id.Parse(id.Refund, b.refunds[0].ID)
	if err != nil {
		return false, nil // made by hand at the provider: somebody knows why
	}
	refund := ledger.BeginRefund{IDs: []id.ID{first}, Order: order, Customer: o.Customer, By: ledger.ByOrganizer, Reason: "restored", Used: true}
	for len(refund.IDs) < ledger.RefundPartsMax {
		number, err := c.NewID(shardNumber)
		if err != nil {
			return false, err
		}
		refund.IDs = append(refund.IDs, number)
	}
	result, err := c.Batcher.Do(ctx, refund)
	if result.Fault != nil { // a refusal is for the operator to see: it is listed
		return false, nil
	}
	return err == nil, err
}

// recoverAll settles what is open, as the server's recovery job does.
func (a *App) recoverAll(ctx context.Context) error {
	for range recoverRoundsMax {
		done, err := a.Booking.Recover(ctx)
		if err != nil {
			return err
		}
		if done.Ended+done.Captured+done.Returned == 0 {
			return nil
		}
	}
	return nil
}

// outcomes says what became of the bookings that had to be settled.
func (c *comparison) outcomes(ctx context.Context) error {
	for i, order := range c.settled {
		if i == len(c.report.Money.Settled) {
			break
		}
		o, err := c.Store.Order(ctx, order)
		if err != nil {
			return err
		}
		c.report.Money.Settled[i].State = o.State.String()
	}
	return nil
}
