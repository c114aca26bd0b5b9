package control

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"onsale/internal/id"
	"onsale/internal/presale"
)

// presaleBatch is how many rows one statement of an upload writes.
const presaleBatch = 500

// Presale is the port of presale codes and lists of members.
func (d *DB) Presale() presale.Store { return presaleStore{d} }

type presaleStore struct{ *DB }

func (s presaleStore) PutCodes(ctx context.Context, event id.ID, codes []presale.Code, max int) (added int, err error) {
	err = s.tx(ctx, func(tx *sql.Tx) error {
		added, err = s.growing(ctx, tx, "presale_codes", event, max, func() error {
			for len(codes) > 0 {
				part := codes[:min(len(codes), presaleBatch)]
				codes = codes[len(part):]
				args := []any{int64(event)}
				rows := make([]string, len(part))
				for i, c := range part {
					n := len(args)
					rows[i] = fmt.Sprintf("($1, $%d, $%d, $%d, $%d, $%d)", n+1, n+2, n+3, n+4, n+5)
					args = append(args, c.Lane, c.Hash[:], c.Uses, c.Label, millis(c.Created))
				}
				if _, err := tx.ExecContext(ctx, s.q(`INSERT INTO {presale_codes} (event_id, lane, code, uses_max, label, created_ms) VALUES `+strings.Join(rows, ", ")+`
					ON CONFLICT (event_id, lane, code) DO UPDATE SET uses_max = excluded.uses_max, label = excluded.label`), args...); err != nil {
					return err
				}
			}
			return nil
		})
		return err
	})
	return added, wrap("keeping presale codes", err)
}

// growing runs what adds rows of an event to a table, and says how many it added. More than max undo it.
func (s presaleStore) growing(ctx context.Context, tx *sql.Tx, table string, event id.ID, max int, add func() error) (int, error) {
	count := func() (n int, err error) {
		err = tx.QueryRowContext(ctx, s.q(`SELECT COUNT(*) FROM {`+table+`} WHERE event_id = $1`), int64(event)).Scan(&n)
		return n, err
	}
	before, err := count()
	if err != nil {
		return 0, err
	}
	if err := add(); err != nil {
		return 0, err
	}
	after, err := count()
	if err == nil && after > max {
		err = presale.ErrTooMany
	}
	return after - before, err
}

func (s presaleStore) Code(ctx context.Context, event id.ID, lane string, h presale.Hash) (presale.Code, error) {
	all, err := rows(ctx, s.DB, scanCode, `SELECT lane, code, uses_max, label, created_ms FROM {presale_codes} WHERE event_id = $1 AND lane = $2 AND code = $3`,
		int64(event), lane, h[:])
	if err == nil && len(all) == 0 {
		return presale.Code{}, presale.ErrUnknown
	}
	if err != nil {
		return presale.Code{}, wrap("reading a presale code", err)
	}
	return all[0], nil
}

func scanCode(scan func(...any) error) (c presale.Code, err error) {
	var hash []byte
	var created int64
	if err = scan(&c.Lane, &hash, &c.Uses, &c.Label, &created); err != nil {
		return c, err
	}
	if len(hash) != len(c.Hash) {
		return c, fmt.Errorf("a presale code of %d bytes", len(hash))
	}
	copy(c.Hash[:], hash)
	c.Created = time.UnixMilli(created).UTC()
	return c, nil
}

func (s presaleStore) Codes(ctx context.Context, event id.ID, lane string, after *presale.Hash, max int) ([]presale.Code, error) {
	from := []byte{} // before every hash
	if after != nil {
		from = after[:]
	}
	all, err := rows(ctx, s.DB, scanCode, `SELECT lane, code, uses_max, label, created_ms FROM {presale_codes}
		WHERE event_id = $1 AND lane = $2 AND code > $3 ORDER BY code LIMIT $4`, int64(event), lane, from, max)
	return all, wrap("reading presale codes", err)
}

func (s presaleStore) PutMembers(ctx context.Context, event id.ID, lane string, members []presale.Hash, now time.Time, max int) (added int, err error) {
	err = s.tx(ctx, func(tx *sql.Tx) error {
		added, err = s.growing(ctx, tx, "lane_members", event, max, func() error {
			for len(members) > 0 {
				part := members[:min(len(members), presaleBatch)]
				members = members[len(part):]
				args := []any{int64(event), lane, millis(now)}
				rows := make([]string, len(part))
				for i, m := range part {
					args = append(args, m[:])
					rows[i] = fmt.Sprintf("($1, $2, $%d, $3)", len(args))
				}
				if _, err := tx.ExecContext(ctx, s.q(`INSERT INTO {lane_members} (event_id, lane, member, created_ms) VALUES `+strings.Join(rows, ", ")+`
					ON CONFLICT (event_id, lane, member) DO NOTHING`), args...); err != nil {
					return err
				}
			}
			return nil
		})
		return err
	})
	return added, wrap("keeping members", err)
}

func (s presaleStore) Member(ctx context.Context, event id.ID, lane string, hashes []presale.Hash) (presale.Hash, error) {
	args := []any{int64(event), lane}
	marks := make([]string, len(hashes))
	for i, h := range hashes {
		args = append(args, h[:])
		marks[i] = fmt.Sprintf("$%d", len(args))
	}
	if len(hashes) == 0 {
		return presale.Hash{}, presale.ErrUnknown
	}
	all, err := rows(ctx, s.DB, func(scan func(...any) error) (h presale.Hash, err error) {
		var b []byte
		err = scan(&b)
		copy(h[:], b)
		return h, err
	}, `SELECT member FROM {lane_members} WHERE event_id = $1 AND lane = $2 AND member IN (`+strings.Join(marks, ", ")+`)`, args...)
	if err != nil {
		return presale.Hash{}, wrap("looking for a member", err)
	}
	for _, h := range hashes { // the first that was asked for, whatever the database found first
		for _, found := range all {
			if h == found {
				return h, nil
			}
		}
	}
	return presale.Hash{}, presale.ErrUnknown
}

func (s presaleStore) Counts(ctx context.Context, event id.ID) ([]presale.Counts, error) {
	all, err := rows(ctx, s.DB, func(scan func(...any) error) (c presale.Counts, err error) {
		err = scan(&c.Lane, &c.Codes, &c.Members)
		return c, err
	}, `SELECT lane, CAST(SUM(codes) AS bigint), CAST(SUM(members) AS bigint) FROM (
			SELECT lane, COUNT(*) AS codes, 0 AS members FROM {presale_codes} WHERE event_id = $1 GROUP BY lane
			UNION ALL SELECT lane, 0, COUNT(*) FROM {lane_members} WHERE event_id = $1 GROUP BY lane) counted
		GROUP BY lane ORDER BY lane`, int64(event))
	return all, wrap("counting presale codes", err)
}

// DrawSecret is the sealed secret of an event's draw, nil where there is none yet.
func (d *DB) DrawSecret(ctx context.Context, event id.ID) ([]byte, error) {
	all, err := rows(ctx, d, func(scan func(...any) error) (sealed []byte, err error) {
		err = scan(&sealed)
		return sealed, err
	}, `SELECT sealed FROM {draw_secrets} WHERE event_id = $1`, int64(event))
	if err != nil || len(all) == 0 {
		return nil, wrap("reading a draw's secret", err)
	}
	return all[0], nil
}

// PutDrawSecretOnce keeps the sealed secret of an event's draw unless there is one, and answers the one that is kept: the same
// for all callers.
func (d *DB) PutDrawSecretOnce(ctx context.Context, event id.ID, sealed []byte) ([]byte, error) {
	err := d.exec(ctx, `INSERT INTO {draw_secrets} (event_id, sealed, created_ms) VALUES ($1, $2, $3) ON CONFLICT (event_id) DO NOTHING`,
		int64(event), sealed, millis(d.now()))
	if err != nil {
		return nil, wrap("keeping a draw's secret", err)
	}
	return d.DrawSecret(ctx, event)
}
