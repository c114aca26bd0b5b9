package sandbox

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"onsale/internal/payment"
)

// delivery is a webhook to be sent.
type delivery struct {
	seq      int64
	eventID  string
	orderID  string
	body     []byte
	held     bool
	tryCount int64
}

func scanDelivery(rows *sql.Rows) (delivery, error) {
	var d delivery
	err := rows.Scan(&d.seq, &d.eventID, &d.orderID, &d.body, &d.held, &d.tryCount)
	return d, err
}

// tell books the webhooks of what just happened to a payment, in the same transaction. Each change of a payment has its
// own revision, so payment and revision name the event.
func (s *Service) tell(t *tx, p *row, kind string, faults faultSet) error {
	if faults.has(FaultWebhookNever) {
		return occurred(t, FaultWebhookNever)
	}
	now := s.now()
	eventID := fmt.Sprintf("evt_%s_%d_%d", s.books.id, p.seq, p.Revision)
	body, err := json.Marshal(webhook{Format: webhookFormat, EventID: eventID, Kind: kind, Account: s.account,
		Mode: payment.Test, At: now, Payment: p.Payment})
	if err != nil {
		return err
	}
	due := now.UnixMilli()
	held := faults.has(FaultWebhookReorder) && p.State == payment.Pending
	if held {
		due = max(due, p.dueMillis.Int64) + s.delays.HoldBack.Milliseconds()
	}
	const insert = `INSERT INTO deliveries (event_id, order_id, body, held, due_ms, try_count, delivered_ms)
		VALUES (?, ?, ?, ?, ?, 0, 0)`
	if err := t.exec(insert, eventID, p.OrderID, body, held, due); err != nil {
		return err
	}
	if faults.has(FaultWebhookRepeat) {
		return t.exec(insert, eventID, p.OrderID, body, false, due+s.delays.Repeat.Milliseconds())
	}
	return nil
}

func newSender() *http.Client {
	return &http.Client{
		Timeout:       webhookTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     &http.Transport{MaxIdleConnsPerHost: sendersMax, IdleConnTimeout: time.Minute},
	}
}

// deliver sends the webhooks that are due, at most dueMax, those of one order one after the other; it answers how many
// it tried.
func (s *Service) deliver(ctx context.Context) (int, error) {
	target := *s.webhookURL.Load()
	if target == "" {
		return 0, nil
	}
	due, err := scanAll(reader{ctx, s.books.read.QueryContext}, scanDelivery, `SELECT seq, event_id, order_id, body, held, try_count
		FROM deliveries WHERE due_ms <= ? ORDER BY seq LIMIT ?`, s.now().UnixMilli(), dueMax)
	if err != nil || len(due) == 0 {
		return 0, err
	}
	byOrder := map[string][]int{}
	var orders []string
	for i, d := range due {
		if byOrder[d.orderID] == nil {
			orders = append(orders, d.orderID)
		}
		byOrder[d.orderID] = append(byOrder[d.orderID], i)
	}
	arrived := make([]bool, len(due))
	slots := make(chan struct{}, sendersMax)
	var sending sync.WaitGroup
	for _, order := range orders {
		slots <- struct{}{}
		sending.Go(func() {
			defer func() { <-slots }()
			for _, i := range byOrder[order] {
				err := s.send(ctx, target, due[i].body)
				arrived[i] = err == nil
				if err != nil && ctx.Err() == nil {
					s.log.Info("webhook not delivered", "event_id", due[i].eventID, "try", due[i].tryCount+1, "error", err)
				}
			}
		})
	}
	sending.Wait()
	if ctx.Err() != nil {
		// What arrived unrecorded will be sent again, as after a crash.
		return 0, ctx.Err()
	}
	_, err = change(ctx, s.books, func(t *tx) (struct{}, error) {
		for i, d := range due {
			var err error
			if arrived[i] {
				err = s.markDelivered(t, d)
			} else {
				err = s.markFailed(t, d)
			}
			if err != nil {
				return struct{}{}, err
			}
		}
		return struct{}{}, nil
	})
	return len(due), err
}

func (s *Service) send(ctx context.Context, target string, body []byte) error {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return err
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set(SignatureHeader, sign(s.secret, s.now(), body))
	r, err := s.sender.Do(q)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(r.Body, requestBytesMax)); err != nil {
		return err
	}
	if r.StatusCode < 200 || r.StatusCode > 299 {
		return fmt.Errorf("status %d", r.StatusCode)
	}
	return nil
}

func (s *Service) markDelivered(t *tx, d delivery) error {
	before, _, err := scanOne(t, scanInt, "SELECT count(*) FROM deliveries WHERE order_id = ? AND event_id = ? AND delivered_ms > 0",
		d.orderID, d.eventID)
	if err != nil {
		return err
	}
	if before > 0 {
		if err := occurred(t, FaultWebhookRepeat); err != nil {
			return err
		}
	}
	if d.held {
		later, _, err := scanOne(t, scanInt, "SELECT count(*) FROM deliveries WHERE order_id = ? AND seq > ? AND event_id <> ? AND delivered_ms > 0",
			d.orderID, d.seq, d.eventID)
		if err != nil {
			return err
		}
		if later > 0 {
			if err := occurred(t, FaultWebhookReorder); err != nil {
				return err
			}
		}
	}
	now := s.now().UnixMilli()
	if err := t.exec("UPDATE deliveries SET due_ms = NULL, delivered_ms = ? WHERE seq = ?", now, d.seq); err != nil {
		return err
	}
	// Those that waited for this one to overtake them go now.
	return t.exec("UPDATE deliveries SET due_ms = min(due_ms, ?) WHERE order_id = ? AND held AND seq < ? AND event_id <> ? AND due_ms IS NOT NULL",
		now, d.orderID, d.seq, d.eventID)
}

func (s *Service) markFailed(t *tx, d delivery) error {
	tries := d.tryCount + 1
	due := sql.NullInt64{}
	if tries < deliveryTriesMax {
		delay := retryDelayMax
		if tries < 20 { // beyond it the shift would overflow
			delay = min(delay, s.delays.Retry<<(tries-1))
		}
		due = sql.NullInt64{Int64: s.now().Add(delay).UnixMilli(), Valid: true}
	}
	return t.exec("UPDATE deliveries SET due_ms = ?, try_count = ? WHERE seq = ?", due, tries, d.seq)
}

// wake tells Run that something may be due.
func (s *Service) wake() {
	for _, c := range []chan struct{}{s.completeWake, s.deliverWake} {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// RunDue does once what is due by the service's clock: ends pending payments, then sends webhooks. It answers how many
// things it did; call it until 0. For tests that own the clock; otherwise see Run.
func (s *Service) RunDue(ctx context.Context) (int, error) {
	completed, err := s.complete(ctx)
	if err != nil {
		return completed, err
	}
	sent, err := s.deliver(ctx)
	return completed + sent, err
}

// Run does what is due until ctx ends.
func (s *Service) Run(ctx context.Context) {
	var both sync.WaitGroup
	both.Go(func() {
		s.repeat(ctx, "pending payments", s.completeWake, s.complete, "SELECT min(due_ms) FROM payments WHERE due_ms IS NOT NULL")
	})
	both.Go(func() {
		s.repeat(ctx, "webhooks", s.deliverWake, s.deliver, "SELECT min(due_ms) FROM deliveries WHERE due_ms IS NOT NULL")
	})
	both.Wait()
}

func (s *Service) repeat(ctx context.Context, what string, wake <-chan struct{}, step func(context.Context) (int, error), nextDue string) {
	const idle = time.Minute // a wake comes with every commit, so this is only for clocks that jump
	for ctx.Err() == nil {
		count, err := step(ctx)
		wait := idle
		switch {
		case err == nil && count > 0:
			continue
		case err == nil:
			var next sql.NullInt64
			if err = s.books.read.QueryRowContext(ctx, nextDue).Scan(&next); err == nil && next.Valid {
				wait = min(idle, time.UnixMilli(next.Int64).Sub(s.now()))
				if wait <= 0 && *s.webhookURL.Load() == "" {
					wait = idle // due, but there is nowhere to send it yet
				}
			}
		}
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, errClosed) {
				return
			}
			s.log.Error("sandbox step failed", "step", what, "error", err)
			wait = time.Second
		}
		timer := time.NewTimer(max(wait, 0))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-wake:
		}
		timer.Stop()
	}
}
