package control

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"onsale/internal/id"
	"onsale/internal/outbox/mail"
	"onsale/internal/sqlmigrate"
)

// Mail is the port of mails to be sent. Times in it are the database's clock, so that nodes whose clocks differ claim alike.
func (d *DB) Mail() mail.Store { return mailStore{d} }

type mailStore struct{ *DB }

// skipLocked lets a node claim what another is not just claiming.
func (d *DB) skipLocked() string {
	if d.dialect == sqlmigrate.Postgres {
		return ` FOR UPDATE SKIP LOCKED`
	}
	return ""
}

// changed says whether a statement has changed a row.
func changed(result sql.Result, err error) (bool, error) {
	n, err := affected(result, err)
	return n > 0, err
}

func yes(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

const jobColumns = `key, kind, customer_id, order_id, event_id, refund_id, ticket_id, word, version, bulk, tries, fence, last, created_ms, due_ms`

func scanJob(scan func(...any) error) (j mail.Job, err error) {
	var bulk, created, due int64
	err = scan(&j.Key, (*string)(&j.Kind), (*int64)(&j.Customer), (*int64)(&j.Order), (*int64)(&j.Event), (*int64)(&j.Refund), (*int64)(&j.Ticket),
		&j.Word, &j.Version, &bulk, &j.Tries, &j.Fence, &j.Last, &created, &due)
	j.Bulk, j.Created, j.Due = bulk == 1, time.UnixMilli(created).UTC(), time.UnixMilli(due).UTC()
	return j, err
}

func (s mailStore) PutJobs(ctx context.Context, jobs []mail.Job) error {
	if len(jobs) == 0 {
		return nil
	}
	return wrap("storing mails to be sent", s.tx(ctx, func(tx *sql.Tx) error { return s.putJobs(ctx, tx, jobs) }))
}

func (s mailStore) putJobs(ctx context.Context, tx *sql.Tx, jobs []mail.Job) error {
	now, err := s.clock(ctx, tx)
	if err != nil {
		return err
	}
	for _, j := range jobs {
		_, err := tx.ExecContext(ctx, s.q(`INSERT INTO {mail_jobs} (`+jobColumns+`, state)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 0, 0, '', $11, $12, 'due') ON CONFLICT (key) DO NOTHING`),
			j.Key, string(j.Kind), int64(j.Customer), int64(j.Order), int64(j.Event), int64(j.Refund), int64(j.Ticket), j.Word, j.Version, yes(j.Bulk),
			millis(j.Created), now)
		if err != nil {
			return err
		}
	}
	return nil
}

func (s mailStore) ClaimJobs(ctx context.Context, bulk bool, hold time.Duration, max int) (jobs []mail.Job, err error) {
	err = s.tx(ctx, func(tx *sql.Tx) error {
		now, err := s.clock(ctx, tx)
		if err != nil {
			return err
		}
		jobs, err = rowsIn(ctx, s.DB, tx, scanJob, `SELECT `+jobColumns+` FROM {mail_jobs} WHERE state = 'due' AND bulk = $1 AND due_ms <= $2
			ORDER BY due_ms, key LIMIT $3`+s.skipLocked(), yes(bulk), now, max)
		if err != nil {
			return err
		}
		for i := range jobs {
			jobs[i].Fence++
			if _, err := tx.ExecContext(ctx, s.q(`UPDATE {mail_jobs} SET fence = $1, due_ms = $2 WHERE key = $3`),
				jobs[i].Fence, now+hold.Milliseconds(), jobs[i].Key); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, wrap("taking mails to be sent", err)
	}
	return jobs, nil
}

// rowsIn reads all rows of a query inside a transaction.
func rowsIn[T any](ctx context.Context, d *DB, tx *sql.Tx, scan func(func(...any) error) (T, error), query string, args ...any) ([]T, error) {
	r, err := tx.QueryContext(ctx, d.q(query), args...)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var all []T
	for r.Next() {
		one, err := scan(r.Scan)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, r.Err()
}

func (s mailStore) EndJob(ctx context.Context, j mail.Job) error {
	return s.setJob(ctx, j, "ended", 0, j.Tries, j.Last)
}

func (s mailStore) DelayJob(ctx context.Context, j mail.Job, after time.Duration, last string) error {
	tries := j.Tries
	if after > 0 {
		tries++
	}
	return s.setJob(ctx, j, "due", after, tries, last)
}

func (s mailStore) KillJob(ctx context.Context, j mail.Job, last string) error {
	return s.setJob(ctx, j, "dead", 0, j.Tries+1, last)
}

func (s mailStore) setJob(ctx context.Context, j mail.Job, state string, after time.Duration, tries int, last string) error {
	return wrap("storing what became of a mail", s.tx(ctx, func(tx *sql.Tx) error {
		now, err := s.clock(ctx, tx)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, s.q(`UPDATE {mail_jobs} SET state = $1, due_ms = $2, tries = $3, last = $4 WHERE key = $5 AND fence = $6 AND state = 'due'`),
			state, now+after.Milliseconds(), tries, last, j.Key, j.Fence)
		return err
	}))
}

func (s mailStore) DeadJobs(ctx context.Context, max int) ([]mail.Job, error) {
	all, err := rows(ctx, s.DB, scanJob, `SELECT `+jobColumns+` FROM {mail_jobs} WHERE state = 'dead' ORDER BY due_ms DESC, key LIMIT $1`, max)
	return all, wrap("reading dead letters", err)
}

func (s mailStore) ReviveJobs(ctx context.Context, keys []string) (count int, err error) {
	err = s.tx(ctx, func(tx *sql.Tx) error {
		now, err := s.clock(ctx, tx)
		if err != nil {
			return err
		}
		for _, key := range keys {
			revived, err := changed(tx.ExecContext(ctx, s.q(`UPDATE {mail_jobs} SET state = 'due', due_ms = $1, tries = 0, created_ms = $1
				WHERE key = $2 AND state = 'dead'`), now, key))
			if err != nil {
				return err
			}
			count += int(yes(revived))
		}
		return nil
	})
	if err != nil {
		return 0, wrap("reviving dead letters", err)
	}
	return count, nil
}

func (s mailStore) CountJobs(ctx context.Context) (waiting, bulk, dead int, err error) {
	err = s.read.QueryRowContext(ctx, s.q(`SELECT
		(SELECT count(*) FROM {mail_jobs} WHERE state = 'due'),
		(SELECT count(*) FROM {mail_jobs} WHERE state = 'due' AND bulk = 1),
		(SELECT count(*) FROM {mail_jobs} WHERE state = 'dead')`)).Scan(&waiting, &bulk, &dead)
	return waiting, bulk, dead, wrap("counting mails", err)
}

func (s mailStore) PruneJobs(ctx context.Context, ended, died time.Time, max int) (count int, err error) {
	for _, statement := range []struct {
		query  string
		before time.Time
	}{
		{`DELETE FROM {mail_jobs} WHERE key IN (SELECT key FROM {mail_jobs} WHERE state = 'ended' AND due_ms < $1 LIMIT $2)`, ended},
		{`DELETE FROM {mail_jobs} WHERE key IN (SELECT key FROM {mail_jobs} WHERE state = 'dead' AND due_ms < $1 LIMIT $2)`, died},
		{`DELETE FROM {mail_runs} WHERE (event_id, kind, version) IN
			(SELECT event_id, kind, version FROM {mail_runs} WHERE done = 1 AND created_ms < $1 LIMIT $2)`, died},
	} {
		n, err := affected(s.write.ExecContext(ctx, s.q(statement.query), millis(statement.before), max-count))
		if err != nil {
			return count, wrap("deleting old mails", err)
		}
		count += int(n)
	}
	return count, nil
}

func (s mailStore) Told(ctx context.Context, event id.ID) (mail.Told, error) {
	var told mail.Told
	var version int64
	var document string
	err := s.read.QueryRowContext(ctx, s.q(`SELECT version, changes, document FROM {mail_told} WHERE event_id = $1`), int64(event)).
		Scan(&version, &told.Changes, &document)
	if errors.Is(err, sql.ErrNoRows) {
		return told, mail.ErrUnknown
	}
	if err == nil {
		told.Event, err = readEvent(event, version, document)
	}
	return told, wrap("reading what was told of an event", err)
}

func readEvent(event id.ID, version int64, document string) (e mail.Event, err error) {
	err = json.Unmarshal([]byte(document), &e)
	e.ID, e.Version = event, version
	return e, err
}

func (s mailStore) PutTold(ctx context.Context, e mail.Event) error {
	document, err := json.Marshal(e)
	if err == nil {
		err = s.exec(ctx, `INSERT INTO {mail_told} (event_id, version, changes, document) VALUES ($1, $2, 0, $3) ON CONFLICT (event_id) DO NOTHING`,
			int64(e.ID), e.Version, string(document))
	}
	return wrap("storing what is told of an event", err)
}

func (s mailStore) PutRun(ctx context.Context, run mail.Run) error {
	was, err := json.Marshal(run.Was)
	if err != nil {
		return err
	}
	now, err := json.Marshal(run.Now)
	if err != nil {
		return err
	}
	return wrap("beginning a run of mails", s.tx(ctx, func(tx *sql.Tx) error {
		clock, err := s.clock(ctx, tx)
		if err != nil {
			return err
		}
		ours, err := changed(tx.ExecContext(ctx, s.q(`UPDATE {mail_told} SET version = $1, changes = $2, document = $3 WHERE event_id = $4 AND changes = $5`),
			run.Version, run.Changes, string(now), int64(run.Event), run.Changes-1))
		if err != nil || !ours {
			return err
		}
		if run.Kind == mail.KindEventCancelled {
			if _, err := tx.ExecContext(ctx, s.q(`UPDATE {mail_runs} SET done = 1 WHERE event_id = $1`), int64(run.Event)); err != nil {
				return err
			}
		}
		_, err = tx.ExecContext(ctx, s.q(`INSERT INTO {mail_runs} (event_id, kind, version, changes, was, becomes, cursor, made, done, fence, created_ms, due_ms)
			VALUES ($1, $2, $3, $4, $5, $6, 0, 0, 0, 0, $7, $7)`),
			int64(run.Event), string(run.Kind), run.Version, run.Changes, string(was), string(now), clock)
		return err
	}))
}

const runColumns = `event_id, kind, version, changes, was, becomes, cursor, made, done, fence`

func scanRun(scan func(...any) error) (run mail.Run, err error) {
	var was, now string
	var done int64
	err = scan((*int64)(&run.Event), (*string)(&run.Kind), &run.Version, &run.Changes, &was, &now, (*int64)(&run.Cursor), &run.Made, &done, &run.Fence)
	if err != nil {
		return run, err
	}
	run.Done = done == 1
	if run.Was, err = readEvent(run.Event, 0, was); err != nil {
		return run, err
	}
	run.Now, err = readEvent(run.Event, run.Version, now)
	return run, err
}

func (s mailStore) Run(ctx context.Context, event id.ID, kind mail.Kind, version int64) (mail.Run, error) {
	all, err := rows(ctx, s.DB, scanRun, `SELECT `+runColumns+` FROM {mail_runs} WHERE event_id = $1 AND kind = $2 AND version = $3`,
		int64(event), string(kind), version)
	if err == nil && len(all) == 0 {
		return mail.Run{}, mail.ErrUnknown
	}
	if err != nil {
		return mail.Run{}, wrap("reading a run of mails", err)
	}
	return all[0], nil
}

func (s mailStore) ClaimRun(ctx context.Context, hold time.Duration) (run mail.Run, ok bool, err error) {
	err = s.tx(ctx, func(tx *sql.Tx) error {
		now, err := s.clock(ctx, tx)
		if err != nil {
			return err
		}
		all, err := rowsIn(ctx, s.DB, tx, scanRun, `SELECT `+runColumns+` FROM {mail_runs} WHERE done = 0 AND due_ms <= $1
			ORDER BY created_ms, event_id, version LIMIT 1`+s.skipLocked(), now)
		if err != nil || len(all) == 0 {
			return err
		}
		run, ok = all[0], true
		run.Fence++
		_, err = tx.ExecContext(ctx, s.q(`UPDATE {mail_runs} SET fence = $1, due_ms = $2 WHERE event_id = $3 AND kind = $4 AND version = $5`),
			run.Fence, now+hold.Milliseconds(), int64(run.Event), string(run.Kind), run.Version)
		return err
	})
	if err != nil {
		return mail.Run{}, false, wrap("taking a run of mails", err)
	}
	return run, ok, nil
}

func (s mailStore) AdvanceRun(ctx context.Context, run mail.Run, jobs []mail.Job) error {
	return wrap("storing a run of mails", s.tx(ctx, func(tx *sql.Tx) error {
		now, err := s.clock(ctx, tx)
		if err != nil {
			return err
		}
		ours, err := changed(tx.ExecContext(ctx, s.q(`UPDATE {mail_runs} SET cursor = $1, made = $2, done = $3, due_ms = $4
			WHERE event_id = $5 AND kind = $6 AND version = $7 AND fence = $8 AND done = 0`),
			int64(run.Cursor), run.Made, yes(run.Done), now, int64(run.Event), string(run.Kind), run.Version, run.Fence))
		if err != nil || !ours {
			return err
		}
		return s.putJobs(ctx, tx, jobs)
	}))
}
