package audit

import (
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// walkKeys checks that each idempotency key had one effect (I5): its subject is there, of that customer, made when the key
// was, and of no other key.
func (a *audit) walkKeys() {
	for _, of := range []struct{ operation, subjects string }{
		{ledger.OpHold, `SELECT hold_id AS subject, event_id, customer_id AS owner, created_at AS made FROM #holds`},
		{ledger.OpBooking, `SELECT order_id AS subject, event_id, customer_id AS owner, created_at AS made FROM #orders`},
		// Who asked for a refund may be the organizer.
		{ledger.OpRefund, `SELECT r.refund_id AS subject, o.event_id, r.by_id AS owner, r.created_at AS made
			FROM #refunds r JOIN #orders o ON o.order_id = r.order_id`},
		// Who passed a ticket on had the one before.
		{ledger.OpTransfer, `SELECT t.ticket_id AS subject, t.event_id, w.customer_id AS owner, NULL AS made
			FROM #tickets t JOIN #tickets w ON w.ticket_id = t.was_id WHERE t.was_id <> 0`},
		// A wish that waits is changed by the next one, and keeps when it was made.
		{ledger.OpWish, `SELECT wish_id AS subject, event_id, customer_id AS owner, NULL AS made FROM #wishes`},
	} {
		only := ""
		if a.opts.Event != 0 {
			only = " AND s.event_id = " + number(a.opts.Event)
		}
		rows := read(a.snap, `SELECT k.customer_id, k.operation, k.key, k.subject_id, k.created_at, s.owner, s.made
			FROM #idempotency_keys k LEFT JOIN (`+of.subjects+`) s ON s.subject = k.subject_id
			WHERE k.operation = '`+of.operation+`'`+only+` ORDER BY k.subject_id, k.customer_id, k.key`, scanKey)
		var last id.ID
		for k := range rows.all() {
			a.key(&k, last)
			last = k.subject
		}
	}
	a.keysOfNothing()
}

// keysOfNothing reports keys of operations that there are not.
func (a *audit) keysOfNothing() {
	if a.opts.Event != 0 {
		return
	}
	rows := read(a.snap, `SELECT customer_id, operation, key, subject_id, created_at, NULL, NULL FROM #idempotency_keys
		WHERE operation NOT IN ('`+ledger.OpHold+`', '`+ledger.OpBooking+`', '`+ledger.OpRefund+`', '`+ledger.OpTransfer+`', '`+ledger.OpWish+`')
		ORDER BY subject_id, customer_id, key`, scanKey)
	for k := range rows.all() {
		a.bad(CheckI5, 0, k.customer.Text(id.Customer), "a key of it is of operation %q", k.operation)
	}
}

// subjectPrefix is how the effect of each operation is shown.
var subjectPrefix = map[string]string{ledger.OpHold: id.Hold, ledger.OpBooking: id.Order, ledger.OpRefund: id.Refund, ledger.OpTransfer: id.Ticket, ledger.OpWish: id.Wish}

func (a *audit) key(k *keyRow, last id.ID) {
	a.saw(CheckI5, 1)
	subject := k.subject.Text(subjectPrefix[k.operation])
	whose := k.customer.Text(id.Customer)
	switch {
	case k.subject == last && k.operation != ledger.OpWish:
		a.bad(CheckI5, 0, subject, "it is the effect of two keys, one of %s", whose)
	case !k.owner.Valid:
		// Ended holds and keys are deleted after a day, each in its turn.
		if k.operation != ledger.OpHold || k.created >= a.now-ledger.Time(ledger.KeepAnswers) {
			a.bad(CheckI5, 0, subject, "it is the effect of a key of %s, and is not there", whose)
		}
	case id.ID(k.owner.Int64) != k.customer:
		a.bad(CheckI5, 0, subject, "it is the effect of a key of %s, and belongs to %s", whose, id.ID(k.owner.Int64).Text(id.Customer))
	case k.made.Valid && ledger.Time(k.made.Int64) != k.created:
		a.bad(CheckI5, 0, subject, "it was made at %d, its key of %s at %d", k.made.Int64, whose, k.created)
	}
}

// walkOrphans reports rows of tables that the other walks read only event by event, where the event is not there.
func (a *audit) walkOrphans() {
	if a.opts.Event != 0 {
		return
	}
	for _, of := range []struct{ table, column, where string }{
		{"seats", "event_id", ""}, {"buckets", "event_id", ""}, {"quotas", "event_id", ""}, {"seats_versions", "event_id", ""},
		{"changes", "event_id", ""}, {"wishes", "event_id", ""}, {"limits", "of_id", " AND t.scope <> 3"},
	} {
		rows := read(a.snap, `SELECT DISTINCT t.`+of.column+` FROM #`+of.table+` t
			WHERE NOT EXISTS (SELECT 1 FROM #events e WHERE e.event_id = t.`+of.column+`)`+of.where, scanID)
		for event := range rows.all() {
			a.bad(CheckReferences, event, of.table, "rows of an event that is not there")
		}
	}
	versions := read(a.snap, `SELECT e.event_id FROM #events e LEFT JOIN #seats_versions v ON v.event_id = e.event_id
		WHERE v.version IS NULL OR EXISTS (SELECT 1 FROM #changes c WHERE c.event_id = e.event_id AND c.version > v.version)`, scanID)
	for event := range versions.all() {
		a.bad(CheckReferences, event, "seats_versions", "a change is ahead of the version, or there is none")
	}
}
