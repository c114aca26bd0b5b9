package audit

import (
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// walkKeys checks that each idempotency key had one effect (I5): its subject is there, of that customer, made when the key
// was, and of no other key.
func (a *audit) walkKeys() {
	for _, of := range []struct{ operation, table, subject string }{
		{ledger.OpHold, "holds", "hold_id"},
		{ledger.OpBooking, "orders", "order_id"},
	} {
		only := ""
		if a.opts.Event != 0 {
			only = " AND s.event_id = " + number(a.opts.Event)
		}
		rows := read(a.snap, `SELECT k.customer_id, k.operation, k.key, k.subject_id, k.created_at, s.customer_id, s.created_at
			FROM #idempotency_keys k LEFT JOIN #`+of.table+` s ON s.`+of.subject+` = k.subject_id
			WHERE k.operation = '`+of.operation+`'`+only+` ORDER BY k.subject_id, k.customer_id, k.key`, scanKey)
		var last id.ID
		for k := range rows.all() {
			a.key(&k, last)
			last = k.subject
		}
	}
}

func (a *audit) key(k *keyRow, last id.ID) {
	a.saw(CheckI5, 1)
	subject := holdText(k.subject)
	if k.operation == ledger.OpBooking {
		subject = orderText(k.subject)
	}
	whose := k.customer.Text(id.Customer)
	switch {
	case k.subject == last:
		a.bad(CheckI5, 0, subject, "it is the effect of two keys, one of %s", whose)
	case !k.owner.Valid:
		// Ended holds and keys are deleted after a day, each in its turn.
		if k.operation != ledger.OpHold || k.created >= a.now-ledger.Time(ledger.KeepAnswers) {
			a.bad(CheckI5, 0, subject, "it is the effect of a key of %s, and is not there", whose)
		}
	case id.ID(k.owner.Int64) != k.customer:
		a.bad(CheckI5, 0, subject, "it is the effect of a key of %s, and belongs to %s", whose, id.ID(k.owner.Int64).Text(id.Customer))
	case ledger.Time(k.made.Int64) != k.created:
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
		{"changes", "event_id", ""}, {"limits", "of_id", " AND t.scope <> 3"},
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
