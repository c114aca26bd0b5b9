package control

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"onsale/internal/id"
	"onsale/internal/identity"
)

func scanMembership(scan func(...any) error) (m identity.Membership, err error) {
	var since int64
	err = scan((*int64)(&m.Customer), (*int64)(&m.Organizer), (*string)(&m.Role), &since)
	m.Since = time.UnixMilli(since).UTC()
	return m, err
}

func (s peopleStore) RolesOf(ctx context.Context, customer id.ID) ([]identity.Membership, error) {
	all, err := rows(ctx, s.DB, scanMembership, `SELECT customer_id, organizer_id, role, created_ms FROM {roles} WHERE customer_id = $1
		ORDER BY organizer_id`, int64(customer))
	return all, wrap("reading roles", err)
}

func (s peopleStore) Role(ctx context.Context, customer, organizer id.ID) (identity.Role, error) {
	var role string
	err := s.read.QueryRowContext(ctx, s.q(`SELECT role FROM {roles} WHERE organizer_id = $1 AND customer_id = $2`),
		int64(organizer), int64(customer)).Scan(&role)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return identity.Role(role), wrap("reading a role", err)
}

func (s peopleStore) Members(ctx context.Context, organizer id.ID) ([]identity.Member, error) {
	members, err := rows(ctx, s.DB, func(scan func(...any) error) (m identity.Member, err error) {
		var since int64
		err = scan((*int64)(&m.Customer), (*int64)(&m.Organizer), (*string)(&m.Role), &since, &m.Name)
		m.Since = time.UnixMilli(since).UTC()
		return m, err
	}, `SELECT r.customer_id, r.organizer_id, r.role, r.created_ms, c.name FROM {roles} r JOIN {customers} c ON c.id = r.customer_id
		WHERE r.organizer_id = $1 ORDER BY CASE r.role WHEN 'owner' THEN 0 WHEN 'operator' THEN 1 WHEN 'viewer' THEN 2 ELSE 3 END,
		r.created_ms, r.customer_id`, int64(organizer))
	if err != nil {
		return nil, wrap("reading members", err)
	}
	for i := range members {
		members[i].Emails, err = rows(ctx, s.DB, scanEmail,
			`SELECT sub FROM {identities} WHERE customer_id = $1 AND issuer = 'email' ORDER BY created_ms, sub`, int64(members[i].Customer))
		if err != nil {
			return nil, wrap("reading members", err)
		}
	}
	return members, nil
}

// lockOrganizer lets one transaction at a time change an organizer's people: two owners who take each other's role away
// at once would leave none. ErrUnknown.
func (s peopleStore) lockOrganizer(ctx context.Context, tx *sql.Tx, organizer id.ID) error {
	var number int64
	err := tx.QueryRowContext(ctx, s.q(`SELECT id FROM {organizers} WHERE id = $1`+s.forUpdate()), int64(organizer)).Scan(&number)
	if errors.Is(err, sql.ErrNoRows) {
		return identity.ErrUnknown
	}
	return err
}

// ownedByAnother refuses to leave an organizer without an owner.
func (s peopleStore) ownedByAnother(ctx context.Context, tx *sql.Tx, customer, organizer id.ID) error {
	var mine, others int
	err := tx.QueryRowContext(ctx, s.q(`SELECT COALESCE(SUM(CASE WHEN customer_id = $2 THEN 1 ELSE 0 END), 0),
		COALESCE(SUM(CASE WHEN customer_id <> $2 THEN 1 ELSE 0 END), 0) FROM {roles} WHERE organizer_id = $1 AND role = 'owner'`),
		int64(organizer), int64(customer)).Scan(&mine, &others)
	if err == nil && mine == 1 && others == 0 {
		return identity.ErrLastOwner
	}
	return err
}

// endOwner is what comes before a customer stops being an owner, if they are one: their open invitations end, by which they
// could let themselves in again.
func (s peopleStore) endOwner(ctx context.Context, tx *sql.Tx, customer, organizer id.ID) error {
	if err := s.ownedByAnother(ctx, tx, customer, organizer); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, s.q(`DELETE FROM {invitations} WHERE organizer_id = $1 AND by_id = $2`), int64(organizer), int64(customer))
	return err
}

// changePeople is a transaction on an organizer's people, with its entry in the audit log.
func (s peopleStore) changePeople(ctx context.Context, organizer id.ID, e identity.Entry, f func(*sql.Tx) error) error {
	return s.again(ctx, func(tx *sql.Tx) error {
		if err := s.lockOrganizer(ctx, tx, organizer); err != nil {
			return err
		}
		if err := f(tx); err != nil {
			return err
		}
		return s.writeEntry(ctx, tx, e)
	})
}

func (s peopleStore) PutRole(ctx context.Context, m identity.Membership, e identity.Entry) error {
	return wrap("giving a role", s.changePeople(ctx, m.Organizer, e, func(tx *sql.Tx) error { return s.putRole(ctx, tx, m) }))
}

func (s peopleStore) putRole(ctx context.Context, tx *sql.Tx, m identity.Membership) error {
	if err := s.lockCustomer(ctx, tx, m.Customer); err != nil {
		if errors.Is(err, identity.ErrErased) {
			return identity.ErrUnknown
		}
		return err
	}
	if m.Role != identity.Owner {
		if err := s.endOwner(ctx, tx, m.Customer, m.Organizer); err != nil {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, s.q(`INSERT INTO {roles} (organizer_id, customer_id, role, created_ms) VALUES ($1, $2, $3, $4)
		ON CONFLICT (organizer_id, customer_id) DO UPDATE SET role = excluded.role`), int64(m.Organizer), int64(m.Customer), string(m.Role), millis(m.Since))
	return err
}

func (s peopleStore) RemoveRole(ctx context.Context, customer, organizer id.ID, e identity.Entry) error {
	return wrap("taking a role away", s.changePeople(ctx, organizer, e, func(tx *sql.Tx) error {
		if err := s.endOwner(ctx, tx, customer, organizer); err != nil {
			return err
		}
		n, err := affected(tx.ExecContext(ctx, s.q(`DELETE FROM {roles} WHERE organizer_id = $1 AND customer_id = $2`), int64(organizer), int64(customer)))
		if err == nil && n == 0 {
			return identity.ErrUnknown
		}
		return err
	}))
}

func (s peopleStore) PutInvitation(ctx context.Context, i identity.Invitation, openMax int, e identity.Entry) error {
	return wrap("storing an invitation", s.changePeople(ctx, i.Organizer, e, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, s.q(`DELETE FROM {invitations} WHERE organizer_id = $1 AND (email = $2 OR expires_ms <= $3)`),
			int64(i.Organizer), string(i.Email), millis(i.Created)); err != nil {
			return err
		}
		var open int
		if err := tx.QueryRowContext(ctx, s.q(`SELECT COUNT(*) FROM {invitations} WHERE organizer_id = $1`), int64(i.Organizer)).Scan(&open); err != nil {
			return err
		}
		if open >= openMax {
			return identity.ErrTooMany
		}
		_, err := tx.ExecContext(ctx, s.q(`INSERT INTO {invitations} (id, token, organizer_id, email, role, by_id, created_ms, expires_ms)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`), int64(i.ID), i.Token[:], int64(i.Organizer), string(i.Email), string(i.Role), int64(i.By),
			millis(i.Created), millis(i.Expires))
		return err
	}))
}

const invitationColumns = `SELECT id, token, organizer_id, email, role, by_id, created_ms, expires_ms FROM {invitations}`

func scanInvitation(scan func(...any) error) (i identity.Invitation, err error) {
	var token []byte
	var created, expires int64
	err = scan((*int64)(&i.ID), &token, (*int64)(&i.Organizer), (*string)(&i.Email), (*string)(&i.Role), (*int64)(&i.By), &created, &expires)
	copy(i.Token[:], token)
	i.Created, i.Expires = time.UnixMilli(created).UTC(), time.UnixMilli(expires).UTC()
	return i, err
}

func (s peopleStore) Invitations(ctx context.Context, organizer id.ID, now time.Time) ([]identity.Invitation, error) {
	all, err := rows(ctx, s.DB, scanInvitation, invitationColumns+` WHERE organizer_id = $1 AND expires_ms > $2 ORDER BY id`, int64(organizer), millis(now))
	return all, wrap("reading invitations", err)
}

func (s peopleStore) RemoveInvitation(ctx context.Context, organizer, number id.ID, e identity.Entry) error {
	return wrap("taking an invitation back", s.changePeople(ctx, organizer, e, func(tx *sql.Tx) error {
		n, err := affected(tx.ExecContext(ctx, s.q(`DELETE FROM {invitations} WHERE organizer_id = $1 AND id = $2`), int64(organizer), int64(number)))
		if err == nil && n == 0 {
			return identity.ErrUnknown
		}
		return err
	}))
}

func (s peopleStore) AcceptInvitation(ctx context.Context, token identity.Hash, customer id.ID, now time.Time, e identity.Entry) (identity.Membership, error) {
	found, err := rows(ctx, s.DB, scanInvitation, invitationColumns+` WHERE token = $1`, token[:])
	i, err := known(found, "reading an invitation", err)
	if err != nil {
		return identity.Membership{}, err
	}
	m := identity.Membership{Customer: customer, Organizer: i.Organizer, Role: i.Role, Since: now}
	e.Organizer, e.Role = i.Organizer, i.Role
	err = s.changePeople(ctx, i.Organizer, e, func(tx *sql.Tx) error {
		m.Role = i.Role
		n, err := affected(tx.ExecContext(ctx, s.q(`DELETE FROM {invitations} WHERE token = $1 AND expires_ms > $2
			AND EXISTS (SELECT 1 FROM {identities} WHERE issuer = 'email' AND sub = email AND customer_id = $3)`), token[:], millis(now), int64(customer)))
		if err != nil || n == 0 {
			return errors.Join(err, identity.ErrUnknown)
		}
		var had string
		var since int64
		err = tx.QueryRowContext(ctx, s.q(`SELECT role, created_ms FROM {roles} WHERE organizer_id = $1 AND customer_id = $2`),
			int64(i.Organizer), int64(customer)).Scan(&had, &since)
		if err == nil && identity.Role(had).May(i.Role) { // an invitation takes nothing away
			m.Role, m.Since = identity.Role(had), time.UnixMilli(since).UTC()
			return nil
		}
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		return s.putRole(ctx, tx, m)
	})
	if err != nil {
		return identity.Membership{}, wrap("accepting an invitation", err)
	}
	return m, nil
}

func (s peopleStore) Write(ctx context.Context, e identity.Entry) error {
	return wrap("writing the audit log", s.tx(ctx, func(tx *sql.Tx) error { return s.writeEntry(ctx, tx, e) }))
}

func (s peopleStore) writeEntry(ctx context.Context, tx *sql.Tx, e identity.Entry) error {
	details, err := e.DetailsText()
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, s.q(`INSERT INTO {audit_log} (id, at_ms, actor_id, organizer_id, role, action, target, details)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`), int64(e.ID), millis(e.At), int64(e.Actor), int64(e.Organizer), string(e.Role), e.Action, e.Target, details)
	return err
}

func (s peopleStore) List(ctx context.Context, organizer, before id.ID, max int) ([]identity.Entry, error) {
	all, err := rows(ctx, s.DB, func(scan func(...any) error) (e identity.Entry, err error) {
		var at int64
		var details string
		err = scan((*int64)(&e.ID), &at, (*int64)(&e.Actor), (*int64)(&e.Organizer), (*string)(&e.Role), &e.Action, &e.Target, &details)
		e.At = time.UnixMilli(at).UTC()
		if err == nil && details != "{}" {
			err = json.Unmarshal([]byte(details), &e.Details)
		}
		return e, err
	}, `SELECT id, at_ms, actor_id, organizer_id, role, action, target, details FROM {audit_log}
		WHERE (organizer_id = $1 OR $1 = 0) AND (id < $2 OR $2 = 0) ORDER BY id DESC LIMIT $3`, int64(organizer), int64(before), max)
	return all, wrap("reading the audit log", err)
}
