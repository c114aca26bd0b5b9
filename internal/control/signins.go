package control

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"onsale/internal/id"
	"onsale/internal/identity"
)

func (s peopleStore) PutCode(ctx context.Context, c identity.Code, limits []identity.MailLimit, now time.Time) (int, time.Time, error) {
	order := make([]int, len(limits)) // by subject, so that nobody waits in a circle
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return bytes.Compare(limits[a].Subject[:], limits[b].Subject[:]) })
	reached := -1
	var free time.Time
	err := s.again(ctx, func(tx *sql.Tx) error {
		reached, free = -1, time.Time{}
		for _, i := range order {
			until, err := s.countMail(ctx, tx, limits[i], now)
			if err != nil {
				return err
			}
			if !until.IsZero() && (reached < 0 || i < reached) {
				reached, free = i, until
			}
		}
		if reached >= 0 {
			return errLimit // nothing of this is kept
		}
		_, err := tx.ExecContext(ctx, s.q(`INSERT INTO {sign_in_codes} (ask, kid, sum, tries, expires_ms) VALUES ($1, $2, $3, 0, $4)
			ON CONFLICT (ask) DO UPDATE SET kid = excluded.kid, sum = excluded.sum, tries = 0, expires_ms = excluded.expires_ms`),
			c.Ask[:], c.KID, c.Sum[:], millis(c.Expires))
		return err
	})
	if errors.Is(err, errLimit) {
		return reached, free, nil
	}
	return -1, time.Time{}, wrap("storing a sign-in code", err)
}

var errLimit = errors.New("a limit is reached")

// countMail counts a mail of a subject, or says until when there is no room for one.
func (s peopleStore) countMail(ctx context.Context, tx *sql.Tx, l identity.MailLimit, now time.Time) (time.Time, error) {
	// The update changes nothing: it locks the row.
	_, err := tx.ExecContext(ctx, s.q(`INSERT INTO {sign_in_mails} AS m (subject, stamps, last_ms) VALUES ($1, $2, $3)
		ON CONFLICT (subject) DO UPDATE SET last_ms = m.last_ms`), l.Subject[:], []byte{}, millis(now))
	if err != nil {
		return time.Time{}, err
	}
	var packed []byte
	if err := tx.QueryRowContext(ctx, s.q(`SELECT stamps FROM {sign_in_mails} WHERE subject = $1`), l.Subject[:]).Scan(&packed); err != nil {
		return time.Time{}, err
	}
	var recent []int64
	for ; len(packed) >= 8; packed = packed[8:] {
		if at := int64(binary.BigEndian.Uint64(packed)); at > millis(now.Add(-l.Window)) {
			recent = append(recent, at)
		}
	}
	if len(recent) >= l.Max {
		return time.UnixMilli(recent[len(recent)-l.Max]).Add(l.Window).UTC(), nil
	}
	recent = append(recent, millis(now))
	slices.Sort(recent) // nodes' clocks differ
	packed = make([]byte, 0, 8*len(recent))
	for _, at := range recent {
		packed = binary.BigEndian.AppendUint64(packed, uint64(at))
	}
	_, err = tx.ExecContext(ctx, s.q(`UPDATE {sign_in_mails} SET stamps = $2, last_ms = $3 WHERE subject = $1`),
		l.Subject[:], packed, recent[len(recent)-1])
	return time.Time{}, err
}

func (s peopleStore) TryCode(ctx context.Context, ask identity.Hash, triesMax int, now time.Time) (identity.Code, error) {
	c := identity.Code{Ask: ask}
	var sum []byte
	var expires int64
	// One statement: of many who try at once each counts, and none sees the count of another as its own.
	err := s.write.QueryRowContext(ctx, s.q(`UPDATE {sign_in_codes} SET tries = tries + 1 WHERE ask = $1 AND tries < $2 AND expires_ms > $3
		RETURNING kid, sum, tries, expires_ms`), ask[:], triesMax, millis(now)).Scan(&c.KID, &sum, &c.Tries, &expires)
	if errors.Is(err, sql.ErrNoRows) {
		return identity.Code{}, identity.ErrNoCode
	}
	copy(c.Sum[:], sum)
	c.Expires = time.UnixMilli(expires).UTC()
	return c, wrap("trying a sign-in code", err)
}

func (s peopleStore) OpenSignIn(ctx context.Context, o identity.Opening) (id.ID, error) {
	var customer id.ID
	err := s.again(ctx, func(tx *sql.Tx) error {
		if o.Code != nil {
			// The sum too: whoever asked again meanwhile has replaced it.
			used, err := affected(tx.ExecContext(ctx, s.q(`DELETE FROM {sign_in_codes} WHERE ask = $1 AND sum = $2`), o.Code.Ask[:], o.Code.Sum[:]))
			if err != nil || used == 0 {
				return errors.Join(err, identity.ErrNoCode)
			}
		}
		var err error
		if customer, err = s.stand(ctx, tx, o.Who, o.Candidate); err != nil {
			return err
		}
		if err := s.lockCustomer(ctx, tx, customer); err != nil {
			if errors.Is(err, identity.ErrErased) {
				return errMeanwhile
			}
			return err
		}
		if _, err := tx.ExecContext(ctx, s.q(`DELETE FROM {sign_ins} WHERE token = $1`), o.Replaces[:]); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, s.q(`INSERT INTO {sign_ins} (token, id, customer_id, method, created_ms, seen_ms, expires_ms)
			VALUES ($1, $2, $3, $4, $5, $6, $7)`), o.SignIn.Token[:], int64(o.SignIn.ID), int64(customer), string(o.SignIn.Method),
			millis(o.SignIn.Created), millis(o.SignIn.Seen), millis(o.SignIn.Expires))
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, s.q(`DELETE FROM {sign_ins} WHERE customer_id = $1 AND id NOT IN
			(SELECT id FROM {sign_ins} WHERE customer_id = $1 ORDER BY created_ms DESC, id DESC LIMIT $2)`), int64(customer), o.Max)
		return err
	})
	if err != nil {
		return 0, wrap("opening a sign-in", err)
	}
	return customer, nil
}

func affected(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

const signInColumns = `SELECT token, id, customer_id, method, created_ms, seen_ms, expires_ms FROM {sign_ins}`

func scanSignIn(scan func(...any) error) (si identity.SignIn, err error) {
	var token []byte
	var created, seen, expires int64
	err = scan(&token, (*int64)(&si.ID), (*int64)(&si.Customer), (*string)(&si.Method), &created, &seen, &expires)
	copy(si.Token[:], token)
	si.Created, si.Seen, si.Expires = time.UnixMilli(created).UTC(), time.UnixMilli(seen).UTC(), time.UnixMilli(expires).UTC()
	return si, err
}

func (s peopleStore) SignIn(ctx context.Context, token identity.Hash) (identity.SignIn, error) {
	all, err := rows(ctx, s.DB, scanSignIn, signInColumns+` WHERE token = $1`, token[:])
	return known(all, "reading a sign-in", err)
}

// known is the only row, or ErrUnknown.
func known[T any](all []T, what string, err error) (one T, _ error) {
	if err != nil {
		return one, wrap(what, err)
	}
	if len(all) == 0 {
		return one, identity.ErrUnknown
	}
	return all[0], nil
}

func (s peopleStore) SignInsOf(ctx context.Context, customer id.ID) ([]identity.SignIn, error) {
	all, err := rows(ctx, s.DB, scanSignIn, signInColumns+` WHERE customer_id = $1 ORDER BY created_ms DESC, id DESC`, int64(customer))
	return all, wrap("reading sign-ins", err)
}

func (s peopleStore) SeeSignIns(ctx context.Context, seen map[identity.Hash]time.Time) error {
	tokens := make([]identity.Hash, 0, len(seen))
	for token := range seen {
		tokens = append(tokens, token)
	}
	slices.SortFunc(tokens, func(a, b identity.Hash) int { return bytes.Compare(a[:], b[:]) })
	return wrap("storing when sign-ins were seen", s.again(ctx, func(tx *sql.Tx) error {
		for _, token := range tokens {
			if _, err := tx.ExecContext(ctx, s.q(`UPDATE {sign_ins} SET seen_ms = $2 WHERE token = $1 AND seen_ms < $2`), token[:], millis(seen[token])); err != nil {
				return err
			}
		}
		return nil
	}))
}

func (s peopleStore) EndSignIn(ctx context.Context, token identity.Hash) error {
	return wrap("ending a sign-in", s.exec(ctx, `DELETE FROM {sign_ins} WHERE token = $1`, token[:]))
}

func (s peopleStore) EndSignIns(ctx context.Context, customer id.ID) error {
	return wrap("ending sign-ins", s.exec(ctx, `DELETE FROM {sign_ins} WHERE customer_id = $1`, int64(customer)))
}

func (s peopleStore) EndSignInOf(ctx context.Context, customer, number id.ID) error {
	return wrap("ending a sign-in", s.exec(ctx, `DELETE FROM {sign_ins} WHERE customer_id = $1 AND id = $2`, int64(customer), int64(number)))
}

func (s peopleStore) PruneSignIns(ctx context.Context, now, mailsBefore, idleBefore time.Time, max int) (int, error) {
	total := int64(0)
	for _, prune := range []struct {
		query  string
		before time.Time
	}{
		// Again outside: a code may be replaced, a mail counted, between the two.
		{`DELETE FROM {sign_in_codes} WHERE expires_ms <= $1 AND ask IN (SELECT ask FROM {sign_in_codes} WHERE expires_ms <= $1 LIMIT $2)`, now},
		{`DELETE FROM {sign_in_mails} WHERE last_ms <= $1 AND subject IN (SELECT subject FROM {sign_in_mails} WHERE last_ms <= $1 LIMIT $2)`, mailsBefore},
		{`DELETE FROM {sign_ins} WHERE token IN (SELECT token FROM {sign_ins} WHERE expires_ms <= $1 LIMIT $2)`, now},
		{`DELETE FROM {sign_ins} WHERE seen_ms <= $1 AND token IN (SELECT token FROM {sign_ins} WHERE seen_ms <= $1 LIMIT $2)`, idleBefore},
		{`DELETE FROM {invitations} WHERE id IN (SELECT id FROM {invitations} WHERE expires_ms <= $1 LIMIT $2)`, now},
	} {
		n, err := affected(s.write.ExecContext(ctx, s.q(prune.query), millis(prune.before), max))
		if err != nil {
			return int(total), wrap("tidying sign-ins", err)
		}
		total += n
	}
	return int(total), nil
}
