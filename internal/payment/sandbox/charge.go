package sandbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"time"

	"onsale/internal/payment"
)

// row is a payment as the books keep it.
type row struct {
	payment.Payment
	seq           int64
	authorizeOnly bool
	refusal       string
	dueMillis     sql.NullInt64
	stoppable     bool
}

const rowColumns = `seq, order_id, state, currency, amount_minor, authorize_only, authorized_minor, captured_minor,
	refunded_minor, decline_code, decline_final, refusal, revision, created_ms, due_ms, stoppable`

func (s *Service) scanRow(rows *sql.Rows) (row, error) {
	var r row
	var createdMillis int64
	err := rows.Scan(&r.seq, &r.OrderID, &r.State, &r.Currency, &r.AmountMinor, &r.authorizeOnly, &r.AuthorizedMinor,
		&r.CapturedMinor, &r.RefundedMinor, &r.Decline.Code, &r.Decline.Final, &r.refusal, &r.Revision, &createdMillis,
		&r.dueMillis, &r.stoppable)
	r.ID = s.paymentID(r.seq)
	r.CreatedAt = time.UnixMilli(createdMillis).UTC()
	return r, err
}

// attempt is what the books keep of an order id.
type attempt struct {
	orderID       string
	amountMinor   int64
	currency      string
	tokenHash     []byte
	authorizeOnly bool
	faults        faultSet
	tryCount      int64
	answerLost    bool
	cancelled     bool
}

func scanAttempt(rows *sql.Rows) (attempt, error) {
	var a attempt
	var faults string
	var cancelledMillis int64
	err := rows.Scan(&a.orderID, &a.amountMinor, &a.currency, &a.tokenHash, &a.authorizeOnly, &faults, &a.tryCount,
		&a.answerLost, &cancelledMillis)
	a.cancelled = cancelledMillis > 0
	if err != nil {
		return a, err
	}
	set, ok := parseFaults(faults)
	if !ok {
		return a, fmt.Errorf("sandbox: books: faults %q of order %s cannot be read", faults, a.orderID)
	}
	a.faults = set
	return a, nil
}

func findAttempt(q querier, orderID string) (attempt, bool, error) {
	return scanOne(q, scanAttempt, `SELECT order_id, amount_minor, currency, token_hash, authorize_only, faults, try_count,
		answer_lost, cancelled_ms FROM attempts WHERE order_id = ?`, orderID)
}

func (s *Service) paymentsOfOrder(q querier, orderID string) ([]row, error) {
	return scanAll(q, s.scanRow, "SELECT "+rowColumns+" FROM payments WHERE order_id = ? ORDER BY seq LIMIT ?",
		orderID, payment.PaymentsOfOrderMax)
}

// charged is the answer to a charge: the payment, unless a fault keeps it from the caller.
type charged struct {
	payment     payment.Payment
	serverError bool // answer 500; nothing was charged
	lost        bool // drop the connection; the charge is in the books
}

// charge is payment.Provider's Charge and Authorize as the service does it.
func (s *Service) charge(ctx context.Context, a payment.Attempt) (charged, error) {
	if err := a.Validate(); err != nil {
		return charged{}, err
	}
	return change(ctx, s.books, func(t *tx) (charged, error) {
		att, err := s.recordAttempt(t, a)
		if err != nil {
			return charged{}, err
		}
		if att.faults.has(FaultServerError) && att.tryCount == 1 {
			return charged{serverError: true}, occurred(t, FaultServerError)
		}
		p, err := s.decide(t, att, a)
		if err != nil {
			return charged{}, err
		}
		if att.faults.has(FaultLostAnswer) && !att.answerLost {
			if err := t.exec("UPDATE attempts SET answer_lost = 1 WHERE order_id = ?", a.OrderID); err != nil {
				return charged{}, err
			}
			return charged{lost: true}, occurred(t, FaultLostAnswer)
		}
		return charged{payment: p.Payment}, nil
	})
}

// recordAttempt counts the try and answers what is known of the order id, which must be of the same content.
func (s *Service) recordAttempt(t *tx, a payment.Attempt) (attempt, error) {
	hash := sha256.Sum256([]byte(a.Token))
	att, known, err := findAttempt(t, a.OrderID)
	if err != nil {
		return att, err
	}
	if !known || att.amountMinor == 0 {
		faults, _ := s.plan.faultsOf(a.Token, a.OrderID) // an unknown token is declined by decide
		err := t.exec(`INSERT INTO attempts VALUES (?, ?, ?, ?, ?, ?, 1, 0, 0) ON CONFLICT (order_id) DO UPDATE SET
			amount_minor = excluded.amount_minor, currency = excluded.currency, token_hash = excluded.token_hash,
			authorize_only = excluded.authorize_only, faults = excluded.faults, try_count = 1`,
			a.OrderID, a.AmountMinor, a.Currency, hash[:], a.AuthorizeOnly, faults.String())
		return attempt{orderID: a.OrderID, amountMinor: a.AmountMinor, currency: a.Currency, tokenHash: hash[:],
			authorizeOnly: a.AuthorizeOnly, faults: faults, tryCount: 1, cancelled: att.cancelled}, err
	}
	if field := difference(att, a, hash[:]); field != "" {
		return att, fmt.Errorf("%w: order %s: %s differs", payment.ErrConflict, a.OrderID, field)
	}
	att.tryCount++
	return att, t.exec("UPDATE attempts SET try_count = try_count + 1 WHERE order_id = ?", a.OrderID)
}

func difference(att attempt, a payment.Attempt, tokenHash []byte) string {
	switch {
	case att.amountMinor != a.AmountMinor:
		return "amount_minor"
	case att.currency != a.Currency:
		return "currency"
	case !bytes.Equal(att.tokenHash, tokenHash):
		return "token"
	case att.authorizeOnly != a.AuthorizeOnly:
		return "authorize_only"
	}
	return ""
}

// decide answers the order's payment as it stands, or makes it.
func (s *Service) decide(t *tx, att attempt, a payment.Attempt) (*row, error) {
	existing, err := s.paymentsOfOrder(t, a.OrderID)
	if err != nil {
		return nil, err
	}
	if len(existing) > 0 {
		first := &existing[0]
		if first.State == payment.Declined && !first.Decline.Final && !att.cancelled {
			first.Decline = payment.Decline{}
			return first, s.succeed(t, first, att.faults)
		}
		return first, s.attachRefunds(t, existing[:1])
	}

	p := &row{authorizeOnly: a.AuthorizeOnly}
	p.OrderID, p.State, p.AmountMinor, p.Currency = a.OrderID, payment.Pending, a.AmountMinor, a.Currency
	p.CreatedAt = s.now()
	if att.cancelled {
		p.State = payment.Cancelled
		return p, s.insertPayment(t, p)
	}
	if _, known := s.plan.faultsOf(a.Token, a.OrderID); !known {
		p.State, p.Decline = payment.Declined, payment.Decline{Code: declineTokenUnknown, Final: true}
		return p, s.insertAndTell(t, p, att.faults)
	}

	tellFirst := true
	outcome := att.faults.outcome()
	switch outcome {
	case FaultDeclined:
		p.State, p.Decline = payment.Declined, payment.Decline{Code: declineCard, Final: true}
	case FaultDeclinedSoft:
		p.State, p.Decline = payment.Declined, payment.Decline{Code: declineTryAgain}
		tellFirst = false
	case FaultPending, FaultPendingDeclined:
		p.dueMillis = sql.NullInt64{Int64: s.now().Add(s.delays.Pending).UnixMilli(), Valid: true}
		p.stoppable = true
	case FaultPayLate:
		p.dueMillis = sql.NullInt64{Int64: s.now().Add(s.delays.Late).UnixMilli(), Valid: true}
	case "":
		// Passes visibly through pending only where there must be two webhooks to reorder.
		tellFirst = att.faults.has(FaultWebhookReorder)
	}
	insert := s.insertPayment
	if tellFirst {
		insert = func(t *tx, p *row) error { return s.insertAndTell(t, p, att.faults) }
	}
	if err := insert(t, p); err != nil {
		return nil, err
	}
	if outcome == "" {
		return p, s.succeed(t, p, att.faults)
	}
	return p, occurred(t, outcome)
}

// succeed takes or reserves the money of a payment that is in the books.
func (s *Service) succeed(t *tx, p *row, faults faultSet) error {
	if faults.has(FaultWrongAmount) {
		if p.AmountMinor > 1 {
			p.AmountMinor--
		} else {
			p.AmountMinor++
		}
		if err := occurred(t, FaultWrongAmount); err != nil {
			return err
		}
	}
	take := func(p *row) {
		p.dueMillis = sql.NullInt64{}
		if p.authorizeOnly {
			p.State, p.AuthorizedMinor = payment.Authorized, p.AmountMinor
		} else {
			p.State, p.CapturedMinor = payment.Captured, p.AmountMinor
		}
	}
	take(p)
	if err := s.updateAndTell(t, p, faults); err != nil {
		return err
	}
	if !faults.has(FaultSecondPayment) {
		return nil
	}
	second := row{authorizeOnly: p.authorizeOnly}
	second.OrderID, second.AmountMinor, second.Currency, second.CreatedAt = p.OrderID, p.AmountMinor, p.Currency, s.now()
	take(&second)
	if err := s.insertAndTell(t, &second, faults); err != nil {
		return err
	}
	return occurred(t, FaultSecondPayment)
}

func (s *Service) insertPayment(t *tx, p *row) error {
	p.Revision = 1
	seq, err := t.insert(`INSERT INTO payments (order_id, state, currency, amount_minor, authorize_only, authorized_minor,
		captured_minor, refunded_minor, decline_code, decline_final, refusal, revision, created_ms, due_ms, stoppable)
		VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?, ?, '', 1, ?, ?, ?)`,
		p.OrderID, p.State, p.Currency, p.AmountMinor, p.authorizeOnly, p.AuthorizedMinor,
		p.CapturedMinor, p.Decline.Code, p.Decline.Final, p.CreatedAt.UnixMilli(), p.dueMillis, p.stoppable)
	p.seq, p.ID = seq, s.paymentID(seq)
	return err
}

func (s *Service) insertAndTell(t *tx, p *row, faults faultSet) error {
	if err := s.insertPayment(t, p); err != nil {
		return err
	}
	return s.tell(t, p, kindOf(p), faults)
}

// update writes the payment as it is now; the table's checks are the books' last line against refunding too much.
func (s *Service) update(t *tx, p *row) error {
	p.Revision++
	return t.exec(`UPDATE payments SET state = ?, amount_minor = ?, authorized_minor = ?, captured_minor = ?, refunded_minor = ?,
		decline_code = ?, decline_final = ?, refusal = ?, revision = ?, due_ms = ? WHERE seq = ?`,
		p.State, p.AmountMinor, p.AuthorizedMinor, p.CapturedMinor, p.RefundedMinor,
		p.Decline.Code, p.Decline.Final, p.refusal, p.Revision, p.dueMillis, p.seq)
}

func (s *Service) updateAndTell(t *tx, p *row, faults faultSet) error {
	if err := s.update(t, p); err != nil {
		return err
	}
	return s.tell(t, p, kindOf(p), faults)
}

func kindOf(p *row) string { return "payment." + string(p.State) }

// occurred counts a fault that really happened.
func occurred(t *tx, f Fault) error {
	return t.exec(`INSERT INTO faults VALUES (?, 1)
		ON CONFLICT (fault) DO UPDATE SET occurred_count = occurred_count + 1`, f)
}

// complete ends pending payments whose time has come; it answers how many, at most dueMax.
func (s *Service) complete(ctx context.Context) (int, error) {
	now := s.now().UnixMilli()
	due, err := scanAll(reader{ctx, s.books.read.QueryContext}, s.scanRow,
		"SELECT "+rowColumns+" FROM payments WHERE due_ms <= ? ORDER BY due_ms LIMIT ?", now, dueMax)
	if err != nil || len(due) == 0 {
		return 0, err
	}
	return change(ctx, s.books, func(t *tx) (int, error) {
		for _, d := range due {
			p, err := s.findPayment(t, d.seq)
			if err != nil {
				return 0, err
			}
			if p.State != payment.Pending {
				continue // cancelled since it was read
			}
			att, _, err := findAttempt(t, p.OrderID)
			if err != nil {
				return 0, err
			}
			if att.faults.has(FaultPendingDeclined) {
				p.State, p.Decline, p.dueMillis = payment.Declined, payment.Decline{Code: declineCard, Final: true}, sql.NullInt64{}
				err = s.updateAndTell(t, &p, att.faults)
			} else {
				err = s.succeed(t, &p, att.faults)
			}
			if err != nil {
				return 0, err
			}
		}
		return len(due), nil
	})
}
