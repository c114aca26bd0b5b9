package bench

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
)

// claims counts the seats that have more than one claim, and those that have one: of live and sold holds by the seats
// that they list, of tickets by the seats that they name. It shares no query with the ledger and none with the audit.
func (p *place) claims(ctx context.Context, r *Result) (err error) {
	db, err := p.db()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	schema := ""
	if p.url != "" {
		schema = "shard."
	}
	held := map[int32]int{}
	err = each(ctx, db, `SELECT lines FROM `+schema+`holds WHERE state IN (1, 4)`, func(rows *sql.Rows) error {
		var text string
		if err := rows.Scan(&text); err != nil {
			return err
		}
		var lines [][]int64 // the first is the version of the format
		if err := json.Unmarshal([]byte(text), &lines); err != nil || len(lines) == 0 {
			return fmt.Errorf("a hold's lines %q: %w", text, err)
		}
		for _, l := range lines[1:] {
			held[int32(l[0])]++
		}
		return nil
	})
	if err != nil {
		return err
	}
	sold := map[int32]int{}
	err = each(ctx, db, `SELECT seat_index FROM `+schema+`tickets WHERE state IN (1, 2) AND seat_index IS NOT NULL`, func(rows *sql.Rows) error {
		var seat int32
		err := rows.Scan(&seat)
		sold[seat]++
		return err
	})
	if err != nil {
		return err
	}
	r.SeatsHeld, r.SeatsSold = int64(len(held)), int64(len(sold))
	r.DoubleSold = double(held)
	for seat, n := range sold {
		if n > 1 || held[seat] == 0 { // a ticket for a seat of no hold's: whoever holds it next has bought it too
			r.DoubleSold++
		}
	}
	return nil
}

func double(claims map[int32]int) (n int64) {
	for _, count := range claims {
		if count > 1 {
			n++
		}
	}
	return n
}

// each calls take for every row of a query.
func each(ctx context.Context, db *sql.DB, query string, take func(*sql.Rows) error) (err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := take(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
