package control

import (
	"context"
	"database/sql"
	"time"

	"onsale/internal/keys"
)

// Keys is the port of sealed keys.
func (d *DB) Keys() keys.Store { return keyStore{d} }

type keyStore struct{ *DB }

func (s keyStore) List(ctx context.Context) ([]keys.Record, error) {
	all, err := rows(ctx, s.DB, func(scan func(...any) error) (r keys.Record, err error) {
		var created int64
		err = scan(&r.KID, (*string)(&r.Purpose), (*string)(&r.Algorithm), (*string)(&r.State), &r.Sealed, &created)
		r.CreatedAt = time.UnixMilli(created).UTC()
		return r, err
	}, `SELECT kid, purpose, algorithm, state, sealed, created_ms FROM {keys} ORDER BY created_ms, kid`)
	return all, wrap("reading keys", err)
}

func (s keyStore) Insert(ctx context.Context, r keys.Record, replaces string) error {
	err := s.tx(ctx, func(tx *sql.Tx) error {
		if replaces != "" {
			result, err := tx.ExecContext(ctx, s.q(`UPDATE {keys} SET state = $1 WHERE kid = $2 AND purpose = $3 AND state = $4`),
				string(keys.Public), replaces, string(r.Purpose), string(keys.Active))
			if err != nil {
				return err
			}
			if n, err := result.RowsAffected(); err != nil || n != 1 {
				if err != nil {
					return err
				}
				return keys.ErrReplaced
			}
		}
		// With none to replace, the index over active keys refuses a second one.
		_, err := tx.ExecContext(ctx, s.q(`INSERT INTO {keys} (kid, purpose, algorithm, state, sealed, created_ms) VALUES ($1, $2, $3, $4, $5, $6)`),
			r.KID, string(r.Purpose), string(r.Algorithm), string(keys.Active), r.Sealed, millis(r.CreatedAt))
		return err
	})
	if contested(err) {
		return keys.ErrReplaced
	}
	return wrap("storing a key", err)
}
