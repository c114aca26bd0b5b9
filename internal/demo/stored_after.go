package demo

import (
	"context"
	"database/sql"
	"encoding/json"
	"strings"

	"onsale/internal/id"
)

func (s *store) readRefunds(ctx context.Context, tx *sql.Tx, r *stored) error {
	return s.each(ctx, tx, "SELECT refund_id, order_id, tickets, state, amount, fee_kept, refused FROM #refunds", func(rows *sql.Rows) error {
		var refund id.ID
		var tickets, refused string
		b := &storedRefund{}
		if err := rows.Scan(&refund, &b.order, &tickets, &b.state, &b.amount, &b.kept, &refused); err != nil {
			return err
		}
		var numbers []int64
		if err := json.Unmarshal([]byte(tickets), &numbers); err != nil {
			return err
		}
		for _, n := range numbers {
			b.tickets = append(b.tickets, id.ID(n))
		}
		b.refused = refused != ""
		r.back[refund] = b
		return nil
	})
}

func (s *store) readCheckIns(ctx context.Context, tx *sql.Tx, r *stored) error {
	return s.each(ctx, tx, "SELECT ticket_id, at, device, offline, conflict, undone_at FROM #checkins", func(rows *sql.Rows) error {
		var ticket id.ID
		var u storedUse
		var conflict string
		var undone int64
		if err := rows.Scan(&ticket, &u.at, &u.device, &u.offline, &conflict, &undone); err != nil {
			return err
		}
		u.conflict, u.undone = conflict != "", undone != 0
		r.checkIns[ticket] = append(r.checkIns[ticket], u)
		return nil
	})
}

// notices gives the body of every notice there is.
func (s *store) notices(ctx context.Context, look func(body []byte) error) error {
	rows, err := s.db.QueryContext(ctx, strings.ReplaceAll("SELECT body FROM #outbox", "#", s.schema))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var body []byte
		if err := rows.Scan(&body); err != nil {
			return err
		}
		if err := look(body); err != nil {
			return err
		}
	}
	return rows.Err()
}
