package control

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"onsale/internal/id"
	"onsale/internal/identity"
)

func (s peopleStore) PutAttendees(ctx context.Context, all []identity.Attending) error {
	return wrap("storing attendees", s.tx(ctx, func(tx *sql.Tx) error {
		for _, a := range all {
			if err := s.notErased(ctx, tx, a.Customer); err != nil {
				return err
			}
			if err := s.putAttendee(ctx, tx, a, `DO NOTHING`); err != nil {
				return err
			}
		}
		return nil
	}))
}

// notErased keeps an erased customer's name from coming back. Attendees of a customer who is not there are kept: the
// control database may be older than the ledger.
func (s peopleStore) notErased(ctx context.Context, tx *sql.Tx, customer id.ID) error {
	if err := s.lockCustomer(ctx, tx, customer); !errors.Is(err, identity.ErrUnknown) {
		return err
	}
	return nil
}

func (s peopleStore) putAttendee(ctx context.Context, tx *sql.Tx, a identity.Attending, onConflict string) error {
	_, err := tx.ExecContext(ctx, s.q(`INSERT INTO {attendees} (order_id, place, event_id, customer_id, name, document_type, document_hash,
		document_last4, updated_ms) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (order_id, place) `+onConflict),
		int64(a.Order), a.Place, int64(a.Event), int64(a.Customer), a.Name, string(a.DocumentType), a.DocumentHash, a.DocumentLast4, millis(s.now()))
	return err
}

func (s peopleStore) MoveAttendee(ctx context.Context, a identity.Attending) error {
	return wrap("moving an attendee", s.tx(ctx, func(tx *sql.Tx) error {
		if err := s.notErased(ctx, tx, a.Customer); err != nil {
			return err
		}
		return s.putAttendee(ctx, tx, a, `DO UPDATE SET event_id = excluded.event_id, customer_id = excluded.customer_id, name = excluded.name,
			document_type = excluded.document_type, document_hash = excluded.document_hash, document_last4 = excluded.document_last4,
			updated_ms = excluded.updated_ms`)
	}))
}

const attendeeColumns = `SELECT order_id, place, event_id, customer_id, name, document_type, document_hash, document_last4 FROM {attendees}`

func scanAttendee(scan func(...any) error) (a identity.Attending, err error) {
	err = scan((*int64)(&a.Order), &a.Place, (*int64)(&a.Event), (*int64)(&a.Customer), &a.Name, (*string)(&a.DocumentType), &a.DocumentHash, &a.DocumentLast4)
	return a, err
}

func (s peopleStore) Attendees(ctx context.Context, order id.ID) ([]identity.Attending, error) {
	all, err := rows(ctx, s.DB, scanAttendee, attendeeColumns+` WHERE order_id = $1 ORDER BY place`, int64(order))
	return all, wrap("reading attendees", err)
}

func (s peopleStore) AttendeesOf(ctx context.Context, event, afterOrder id.ID, afterPlace int32, max int) ([]identity.Attending, error) {
	all, err := rows(ctx, s.DB, scanAttendee, attendeeColumns+` WHERE event_id = $1 AND (order_id, place) > ($2, $3) ORDER BY order_id, place LIMIT $4`,
		int64(event), int64(afterOrder), afterPlace, max)
	return all, wrap("reading attendees", err)
}

func (s peopleStore) DropAttendees(ctx context.Context, order id.ID) error {
	return wrap("dropping attendees", s.exec(ctx, `DELETE FROM {attendees} WHERE order_id = $1`, int64(order)))
}

func (s peopleStore) PruneDocuments(ctx context.Context, startedBefore time.Time, max int) (int, error) {
	n, err := affected(s.write.ExecContext(ctx, s.q(`UPDATE {attendees} SET document_type = '', document_hash = '', document_last4 = ''
		WHERE (order_id, place) IN (SELECT a.order_id, a.place FROM {attendees} a JOIN {events} e ON e.id = a.event_id
		WHERE a.document_type <> '' AND e.starts_ms < $1 LIMIT $2)`), millis(startedBefore), max))
	return int(n), wrap("removing documents", err)
}

func (s peopleStore) ExportCustomer(ctx context.Context, customer id.ID) (identity.Personal, error) {
	var p identity.Personal
	var err error
	if p.Profile, err = s.Profile(ctx, customer); err != nil {
		return p, err
	}
	if p.Identities, err = rows(ctx, s.DB, func(scan func(...any) error) (n identity.NamedAt, err error) {
		var since int64
		err = scan(&n.Issuer, &n.Sub, &since)
		n.Since = time.UnixMilli(since).UTC()
		return n, err
	}, `SELECT issuer, sub, created_ms FROM {identities} WHERE customer_id = $1 ORDER BY created_ms, issuer, sub`, int64(customer)); err != nil {
		return p, wrap("reading identities", err)
	}
	if p.SignIns, err = s.SignInsOf(ctx, customer); err != nil {
		return p, err
	}
	if p.Roles, err = s.RolesOf(ctx, customer); err != nil {
		return p, err
	}
	p.Attendees, err = rows(ctx, s.DB, scanAttendee, attendeeColumns+` WHERE customer_id = $1 ORDER BY order_id, place`, int64(customer))
	return p, wrap("reading attendees", err)
}

func (s peopleStore) EraseCustomer(ctx context.Context, customer id.ID, now time.Time, evenLastOwner bool) error {
	return wrap("erasing a customer", s.again(ctx, func(tx *sql.Tx) error {
		// Organizers before the customer, as putRole has it.
		left, err := s.leaveOrganizers(ctx, tx, customer, evenLastOwner)
		if err != nil {
			return err
		}
		// First the row that lockCustomer locks: who signs in at the same time has come before, or sees it.
		for _, statement := range []string{
			`UPDATE {customers} SET name = '', locale = '', erased_ms = CASE WHEN erased_ms = 0 THEN $2 ELSE erased_ms END WHERE id = $1`,
			`INSERT INTO {erasures} (customer_id, at_ms) VALUES ($1, $2) ON CONFLICT (customer_id) DO NOTHING`,
		} {
			if _, err := tx.ExecContext(ctx, s.q(statement), int64(customer), millis(now)); err != nil {
				return err
			}
		}
		// Nobody can give them another role now. One that they got before this is of an organizer that is not locked yet.
		if now, err := s.organizersOf(ctx, tx, customer); err != nil || !slices.Equal(now, left) {
			return cmp.Or(err, errMeanwhile)
		}
		for _, statement := range []string{
			`DELETE FROM {invitations} WHERE by_id = $1 OR email IN (SELECT sub FROM {identities} WHERE issuer = 'email' AND customer_id = $1)`,
			`DELETE FROM {sign_ins} WHERE customer_id = $1`,
			`DELETE FROM {roles} WHERE customer_id = $1`,
			`DELETE FROM {attendees} WHERE customer_id = $1`,
			`DELETE FROM {identities} WHERE customer_id = $1`,
		} {
			if _, err := tx.ExecContext(ctx, s.q(statement), int64(customer)); err != nil {
				return err
			}
		}
		return nil
	}))
}

// leaveOrganizers locks the organizers of a customer's roles, and answers them. ErrLastOwner.
func (s peopleStore) leaveOrganizers(ctx context.Context, tx *sql.Tx, customer id.ID, evenLastOwner bool) ([]id.ID, error) {
	organizers, err := s.organizersOf(ctx, tx, customer)
	if err != nil {
		return nil, err
	}
	for _, organizer := range organizers {
		if err := s.lockOrganizer(ctx, tx, organizer); err != nil {
			return nil, err
		}
		if evenLastOwner {
			continue
		}
		if err := s.ownedByAnother(ctx, tx, customer, organizer); err != nil {
			return nil, err
		}
	}
	return organizers, nil
}

func (s peopleStore) organizersOf(ctx context.Context, tx *sql.Tx, customer id.ID) ([]id.ID, error) {
	return rowsIn(ctx, s.DB, tx, func(scan func(...any) error) (organizer id.ID, err error) {
		err = scan((*int64)(&organizer))
		return organizer, err
	}, `SELECT organizer_id FROM {roles} WHERE customer_id = $1 ORDER BY organizer_id`, int64(customer))
}

func (s peopleStore) Erasures(ctx context.Context) ([]identity.Erasure, error) {
	all, err := rows(ctx, s.DB, func(scan func(...any) error) (e identity.Erasure, err error) {
		var at int64
		err = scan((*int64)(&e.Customer), &at)
		e.At = time.UnixMilli(at).UTC()
		return e, err
	}, `SELECT customer_id, at_ms FROM {erasures} ORDER BY at_ms, customer_id`)
	return all, wrap("reading erasures", err)
}
