package sandbox

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"time"

	"onsale/internal/payment"
)

// settled is a result or a final no. The no is kept in the books, so it is committed and answered by value, not as an error (which would
// undo it).
type settled[T any] struct {
	result  T
	refused *payment.Refused
}

func (r settled[T]) answer() (T, error) {
	if r.refused != nil {
		var none T
		return none, r.refused
	}
	return r.result, nil
}

func (s *Service) paymentID(seq int64) string {
	return fmt.Sprintf("pay_%s_%d", s.books.id, seq)
}

func (s *Service) paymentSeq(id string) (int64, error) {
	if err := payment.ValidateID("payment id", id); err != nil {
		return 0, err
	}
	digits, ok := strings.CutPrefix(id, "pay_"+s.books.id+"_")
	seq, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || s.paymentID(seq) != id {
		return 0, payment.ErrNotFound
	}
	return seq, nil
}

func (s *Service) findPayment(q querier, seq int64) (row, error) {
	p, found, err := scanOne(q, s.scanRow, "SELECT "+rowColumns+" FROM payments WHERE seq = ?", seq)
	if err == nil && !found {
		err = payment.ErrNotFound
	}
	return p, err
}

// withPayment finds a payment and its faults inside a transaction and runs f on them.
func withPayment[T any](ctx context.Context, s *Service, paymentID string, f func(*tx, *row, faultSet) (settled[T], error)) (T, error) {
	seq, err := s.paymentSeq(paymentID)
	if err != nil {
		var none T
		return none, err
	}
	r, err := change(ctx, s.books, func(t *tx) (settled[T], error) {
		p, err := s.findPayment(t, seq)
		if err != nil {
			return settled[T]{}, err
		}
		att, _, err := findAttempt(t, p.OrderID)
		if err != nil {
			return settled[T]{}, err
		}
		return f(t, &p, att.faults)
	})
	if err != nil {
		return r.result, err
	}
	return r.answer()
}

func (s *Service) capture(ctx context.Context, paymentID string, amountMinor int64) (payment.Payment, error) {
	if err := payment.ValidateAmount(amountMinor); err != nil {
		return payment.Payment{}, err
	}
	return withPayment(ctx, s, paymentID, func(t *tx, p *row, faults faultSet) (settled[payment.Payment], error) {
		refuse := func(code string) (settled[payment.Payment], error) {
			return settled[payment.Payment]{refused: &payment.Refused{Op: "capture", Code: code}}, nil
		}
		switch {
		case p.State == payment.Captured && p.CapturedMinor == amountMinor:
			return settled[payment.Payment]{result: p.Payment}, nil
		case p.State == payment.Captured:
			return settled[payment.Payment]{}, fmt.Errorf("%w: captured with %d", payment.ErrConflict, p.CapturedMinor)
		case p.State == payment.Pending:
			return settled[payment.Payment]{}, fmt.Errorf("%w: still pending", payment.ErrInvalid)
		case p.refusal != "":
			return refuse(p.refusal)
		case p.State != payment.Authorized:
			return refuse("not_authorized")
		case amountMinor > p.AuthorizedMinor:
			return settled[payment.Payment]{}, fmt.Errorf("%w: %d is more than the %d authorized", payment.ErrInvalid, amountMinor, p.AuthorizedMinor)
		case faults.has(FaultCaptureRefused):
			p.State, p.refusal = payment.Voided, refusalCapture
			if err := s.updateAndTell(t, p, faults); err != nil {
				return settled[payment.Payment]{}, err
			}
			if err := occurred(t, FaultCaptureRefused); err != nil {
				return settled[payment.Payment]{}, err
			}
			return refuse(refusalCapture)
		}
		p.State, p.CapturedMinor = payment.Captured, amountMinor
		if err := s.updateAndTell(t, p, faults); err != nil {
			return settled[payment.Payment]{}, err
		}
		return settled[payment.Payment]{result: p.Payment}, nil
	})
}

func (s *Service) void(ctx context.Context, paymentID string) (payment.Payment, error) {
	return withPayment(ctx, s, paymentID, func(t *tx, p *row, faults faultSet) (settled[payment.Payment], error) {
		switch p.State {
		case payment.Voided:
			return settled[payment.Payment]{result: p.Payment}, nil
		case payment.Pending:
			return settled[payment.Payment]{}, fmt.Errorf("%w: still pending", payment.ErrInvalid)
		case payment.Captured:
			return settled[payment.Payment]{refused: &payment.Refused{Op: "void", Code: "captured"}}, nil
		case payment.Authorized:
			p.State = payment.Voided
			if err := s.updateAndTell(t, p, faults); err != nil {
				return settled[payment.Payment]{}, err
			}
			return settled[payment.Payment]{result: p.Payment}, nil
		}
		return settled[payment.Payment]{refused: &payment.Refused{Op: "void", Code: "not_authorized"}}, nil
	})
}

// refundRow is a refund as the books keep it, given or refused.
type refundRow struct {
	payment.Refund
	seq     int64
	refusal string
}

func (s *Service) scanRefund(rows *sql.Rows) (refundRow, error) {
	var r refundRow
	var createdMillis int64
	err := rows.Scan(&r.ID, &r.seq, &r.AmountMinor, &r.refusal, &createdMillis)
	r.PaymentID = s.paymentID(r.seq)
	r.CreatedAt = time.UnixMilli(createdMillis).UTC()
	r.State = refundState(r.refusal)
	return r, err
}

// refundState: a refund of the sandbox is done or refused at once.
func refundState(refusal string) payment.RefundState {
	if refusal != "" {
		return payment.RefundFailed
	}
	return payment.RefundDone
}

const refundColumns = "refund_id, payment_seq, amount_minor, refusal, created_ms"

func (s *Service) refund(ctx context.Context, paymentID, refundID string, amountMinor int64) (payment.Refund, error) {
	if err := payment.ValidateID("refund id", refundID); err != nil {
		return payment.Refund{}, err
	}
	if err := payment.ValidateAmount(amountMinor); err != nil {
		return payment.Refund{}, err
	}
	return withPayment(ctx, s, paymentID, func(t *tx, p *row, faults faultSet) (settled[payment.Refund], error) {
		answer := func(r refundRow) settled[payment.Refund] {
			if r.refusal != "" {
				return settled[payment.Refund]{refused: &payment.Refused{Op: "refund", Code: r.refusal}}
			}
			return settled[payment.Refund]{result: r.Refund}
		}
		known, found, err := scanOne(t, s.scanRefund, "SELECT "+refundColumns+" FROM refunds WHERE refund_id = ?", refundID)
		switch {
		case err != nil:
			return settled[payment.Refund]{}, err
		case found && known.seq != p.seq:
			return settled[payment.Refund]{}, fmt.Errorf("%w: refund %s: payment_id differs", payment.ErrConflict, refundID)
		case found && known.AmountMinor != amountMinor:
			return settled[payment.Refund]{}, fmt.Errorf("%w: refund %s: amount_minor differs", payment.ErrConflict, refundID)
		case found:
			return answer(known), nil
		case p.State == payment.Pending || p.State == payment.Authorized:
			return settled[payment.Refund]{}, fmt.Errorf("%w: payment is %s", payment.ErrInvalid, p.State)
		}

		r := refundRow{seq: p.seq, Refund: payment.Refund{ID: refundID, PaymentID: p.ID, AmountMinor: amountMinor, CreatedAt: s.now()}}
		refundCount, _, err := scanOne(t, scanInt, "SELECT count(*) FROM refunds WHERE payment_seq = ?", p.seq)
		switch {
		case err != nil:
			return settled[payment.Refund]{}, err
		case p.State != payment.Captured:
			r.refusal = "not_captured"
		case amountMinor > p.CapturedMinor-p.RefundedMinor:
			r.refusal = "more_than_left"
		case refundCount >= refundsOfPaymentMax:
			r.refusal = "too_many_refunds"
		case faults.has(FaultRefundRefused):
			r.refusal = refusalRefund
			if err := occurred(t, FaultRefundRefused); err != nil {
				return settled[payment.Refund]{}, err
			}
		}
		r.State = refundState(r.refusal)
		err = t.exec("INSERT INTO refunds ("+refundColumns+") VALUES (?, ?, ?, ?, ?)",
			r.ID, r.seq, r.AmountMinor, r.refusal, r.CreatedAt.UnixMilli())
		if err != nil || r.refusal != "" {
			return answer(r), err
		}
		p.RefundedMinor += amountMinor
		if err := s.update(t, p); err != nil {
			return settled[payment.Refund]{}, err
		}
		return answer(r), s.tell(t, p, "payment.refunded", faults)
	})
}

func scanInt(rows *sql.Rows) (int64, error) {
	var n int64
	err := rows.Scan(&n)
	return n, err
}

// cancel is payment.Provider's Cancel as the service does it.
func (s *Service) cancel(ctx context.Context, orderID string) (payment.Ending, error) {
	if err := payment.ValidateID("order id", orderID); err != nil {
		return payment.Ending{}, err
	}
	return change(ctx, s.books, func(t *tx) (payment.Ending, error) {
		err := t.exec(`INSERT INTO attempts VALUES (?, 0, '', x'', 0, '', 0, 0, ?)
			ON CONFLICT (order_id) DO UPDATE SET cancelled_ms = excluded.cancelled_ms WHERE cancelled_ms = 0`,
			orderID, s.now().UnixMilli())
		if err != nil {
			return payment.Ending{}, err
		}
		att, _, err := findAttempt(t, orderID)
		if err != nil {
			return payment.Ending{}, err
		}
		rows, err := s.paymentsOfOrder(t, orderID)
		if err != nil {
			return payment.Ending{}, err
		}
		for i := range rows {
			p := &rows[i]
			switch {
			case p.State == payment.Pending && p.stoppable:
				p.State, p.dueMillis = payment.Cancelled, sql.NullInt64{}
			case p.State == payment.Declined && !p.Decline.Final:
				p.Decline.Final = true
			default:
				continue
			}
			if err := s.updateAndTell(t, p, att.faults); err != nil {
				return payment.Ending{}, err
			}
		}
		if err := s.attachRefunds(t, rows); err != nil {
			return payment.Ending{}, err
		}
		return payment.Ending{Result: endingOf(rows), Payments: portable(rows)}, nil
	})
}

// endingOf is how an order ended whose attempts have been cancelled.
func endingOf(rows []row) payment.EndingResult {
	result := payment.EndingCancelled
	for _, p := range rows {
		switch {
		case p.State.Paid() || p.State == payment.Voided:
			return payment.EndingPaid
		case p.State == payment.Pending:
			result = payment.EndingPending
		case p.State == payment.Declined && result != payment.EndingPending:
			result = payment.EndingDeclined
		}
	}
	return result
}

func (s *Service) lookup(ctx context.Context, orderID string) ([]payment.Payment, error) {
	if err := payment.ValidateID("order id", orderID); err != nil {
		return nil, err
	}
	var rows []row
	err := s.books.snapshot(ctx, func(q querier) (err error) {
		if rows, err = s.paymentsOfOrder(q, orderID); err != nil {
			return err
		}
		return s.attachRefunds(q, rows)
	})
	return portable(rows), err
}

// list is one page of all payments; cursors are the number of the last payment seen.
func (s *Service) list(ctx context.Context, cursor string, limit int) (payment.Page, error) {
	after := int64(0)
	if cursor != "" {
		var err error
		if after, err = strconv.ParseInt(cursor, 10, 64); err != nil || after <= 0 {
			return payment.Page{}, fmt.Errorf("%w: cursor", payment.ErrInvalid)
		}
	}
	if limit <= 0 || limit > payment.PageMax {
		return payment.Page{}, fmt.Errorf("%w: limit must be 1 to %d", payment.ErrInvalid, payment.PageMax)
	}
	var rows []row
	next := ""
	err := s.books.snapshot(ctx, func(q querier) (err error) {
		rows, err = scanAll(q, s.scanRow, "SELECT "+rowColumns+" FROM payments WHERE seq > ? ORDER BY seq LIMIT ?", after, limit+1)
		if err != nil {
			return err
		}
		if len(rows) > limit {
			rows = rows[:limit]
			next = strconv.FormatInt(rows[limit-1].seq, 10)
		}
		return s.attachRefunds(q, rows)
	})
	return payment.Page{Payments: portable(rows), Next: next}, err
}

// attachRefunds fills in what was given back, of those payments that had anything given back.
func (s *Service) attachRefunds(q querier, rows []row) error {
	for i := range rows {
		if rows[i].RefundedMinor == 0 {
			continue
		}
		refunds, err := scanAll(q, s.scanRefund, "SELECT "+refundColumns+
			" FROM refunds WHERE payment_seq = ? AND refusal = '' ORDER BY created_ms, refund_id", rows[i].seq)
		if err != nil {
			return err
		}
		for _, r := range refunds {
			rows[i].Refunds = append(rows[i].Refunds, r.Refund)
		}
	}
	return nil
}

func portable(rows []row) []payment.Payment {
	all := make([]payment.Payment, len(rows))
	for i, r := range rows {
		all[i] = r.Payment
	}
	return all
}
