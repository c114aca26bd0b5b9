package control

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"onsale/internal/guard"
	"onsale/internal/id"
	"onsale/internal/identity"
)

// Blocks is the port of block lists.
func (d *DB) Blocks() guard.BlockStore { return gateStore{d} }

// Evidence is the port of what is kept of orders for organizers to look at.
func (d *DB) Evidence() guard.EvidenceStore { return gateStore{d} }

type gateStore struct{ *DB }

const blockColumns = `id, organizer_id, kind, target, reason, by_id, at_ms, until_ms`

func scanBlock(scan func(...any) error) (b guard.Block, err error) {
	var target string
	var at, until int64
	if err = scan((*int64)(&b.ID), (*int64)(&b.Organizer), &b.Kind, &target, &b.Reason, (*int64)(&b.By), &at, &until); err != nil {
		return b, err
	}
	b.At, b.Until = time.UnixMilli(at).UTC(), time.UnixMilli(until).UTC()
	return b, b.ParseTarget(target)
}

func (s gateStore) AddBlock(ctx context.Context, b guard.Block, max int, e identity.Entry) (kept guard.Block, err error) {
	err = s.tx(ctx, func(tx *sql.Tx) error {
		if err := s.raiseBlocks(ctx, tx); err != nil {
			return err
		}
		var mine, all int
		if err := tx.QueryRowContext(ctx, s.q(`SELECT count(CASE WHEN organizer_id = $1 THEN 1 END), count(*) FROM {blocks}
			WHERE until_ms > $2 AND NOT (organizer_id = $1 AND kind = $3 AND target = $4)`), int64(b.Organizer), millis(b.At), b.Kind, b.Target()).Scan(&mine, &all); err != nil {
			return err
		}
		if mine >= max || all >= guard.BlocksMax {
			return guard.ErrTooManyBlocks
		}
		kept, err = scanBlock(tx.QueryRowContext(ctx, s.q(`INSERT INTO {blocks} (`+blockColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
			ON CONFLICT (organizer_id, kind, target) DO UPDATE SET reason = $5, by_id = $6, at_ms = $7, until_ms = $8 RETURNING `+blockColumns),
			int64(b.ID), int64(b.Organizer), b.Kind, b.Target(), b.Reason, int64(b.By), millis(b.At), millis(b.Until)).Scan)
		if err != nil {
			return err
		}
		e.Target = kept.ID.Text(id.Block)
		return peopleStore(s).writeEntry(ctx, tx, e)
	})
	if errors.Is(err, guard.ErrTooManyBlocks) {
		return guard.Block{}, err
	}
	return kept, wrap("blocking somebody", err)
}

// raiseBlocks locks the lists and says that they change.
func (s gateStore) raiseBlocks(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, s.q(`UPDATE {block_version} SET version = version + 1 WHERE one = 1`))
	return err
}

func (s gateStore) RemoveBlock(ctx context.Context, organizer, number id.ID, e identity.Entry) error {
	err := s.tx(ctx, func(tx *sql.Tx) error {
		if err := s.raiseBlocks(ctx, tx); err != nil {
			return err
		}
		found, err := changed(tx.ExecContext(ctx, s.q(`DELETE FROM {blocks} WHERE id = $1 AND organizer_id = $2`), int64(number), int64(organizer)))
		if err == nil && !found {
			err = guard.ErrNoBlock
		}
		if err != nil {
			return err
		}
		return peopleStore(s).writeEntry(ctx, tx, e)
	})
	if errors.Is(err, guard.ErrNoBlock) {
		return err
	}
	return wrap("removing a block", err)
}

func (s gateStore) BlocksOf(ctx context.Context, organizer, after id.ID, now time.Time, max int) ([]guard.Block, error) {
	all, err := rows(ctx, s.DB, scanBlock, `SELECT `+blockColumns+` FROM {blocks} WHERE organizer_id = $1 AND id > $2 AND until_ms > $3 ORDER BY id LIMIT $4`,
		int64(organizer), int64(after), millis(now), max)
	return all, wrap("reading block lists", err)
}

func (s gateStore) AllBlocks(ctx context.Context, now time.Time) ([]guard.Block, error) {
	all, err := rows(ctx, s.DB, scanBlock, `SELECT `+blockColumns+` FROM {blocks} WHERE until_ms > $1 ORDER BY id LIMIT $2`, millis(now), guard.BlocksMax)
	return all, wrap("reading block lists", err)
}

func (s gateStore) BlocksVersion(ctx context.Context) (version int64, err error) {
	err = s.read.QueryRowContext(ctx, s.q(`SELECT version FROM {block_version} WHERE one = 1`)).Scan(&version)
	return version, wrap("reading block lists", err)
}

func (s gateStore) PruneBlocks(ctx context.Context, endedBefore time.Time, max int) (int, error) {
	n, err := affected(s.write.ExecContext(ctx, s.q(`DELETE FROM {blocks} WHERE id IN (SELECT id FROM {blocks} WHERE until_ms < $1 LIMIT $2)`), millis(endedBefore), max))
	return int(n), wrap("deleting old blocks", err)
}

const evidenceColumns = `order_id, event_id, at_ms, signals`

func scanEvidence(scan func(...any) error) (e guard.OrderEvidence, err error) {
	var at int64
	var text string
	if err = scan((*int64)(&e.Order), (*int64)(&e.Event), &at, &text); err != nil {
		return e, err
	}
	e.At = time.UnixMilli(at).UTC()
	e.Evidence, err = guard.ParseEvidence(text)
	return e, err
}

func (s gateStore) PutEvidence(ctx context.Context, all []guard.OrderEvidence) error {
	return wrap("keeping evidence", s.tx(ctx, func(tx *sql.Tx) error {
		for _, e := range all {
			text, err := e.Evidence.Text()
			if err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, s.q(`INSERT INTO {order_evidence} (order_id, event_id, at_ms, score, signals) VALUES ($1, $2, $3, $4, $5)
				ON CONFLICT (order_id) DO UPDATE SET at_ms = excluded.at_ms, score = excluded.score, signals = excluded.signals
				WHERE {order_evidence}.score < excluded.score`), int64(e.Order), int64(e.Event), millis(e.At), e.Evidence.Score, text); err != nil {
				return err
			}
		}
		return nil
	}))
}

func (s gateStore) Evidence(ctx context.Context, order id.ID) (guard.OrderEvidence, error) {
	all, err := rows(ctx, s.DB, scanEvidence, `SELECT `+evidenceColumns+` FROM {order_evidence} WHERE order_id = $1`, int64(order))
	if err != nil {
		return guard.OrderEvidence{}, wrap("reading evidence", err)
	}
	if len(all) == 0 {
		return guard.OrderEvidence{}, guard.ErrNoEvidence
	}
	return all[0], nil
}

func (s gateStore) EvidenceOf(ctx context.Context, event id.ID, score int, after id.ID, max int) ([]guard.OrderEvidence, error) {
	all, err := rows(ctx, s.DB, scanEvidence, `SELECT `+evidenceColumns+` FROM {order_evidence} WHERE event_id = $1 AND order_id > $2 AND score >= $3
		ORDER BY order_id LIMIT $4`, int64(event), int64(after), score, max)
	return all, wrap("reading evidence", err)
}

func (s gateStore) PruneEvidence(ctx context.Context, startedBefore time.Time, max int) (int, error) {
	n, err := affected(s.write.ExecContext(ctx, s.q(`DELETE FROM {order_evidence} WHERE order_id IN (SELECT o.order_id FROM {order_evidence} o
		LEFT JOIN {events} e ON e.id = o.event_id WHERE coalesce(e.starts_ms, o.at_ms) < $1 LIMIT $2)`), millis(startedBefore), max))
	return int(n), wrap("deleting old evidence", err)
}
