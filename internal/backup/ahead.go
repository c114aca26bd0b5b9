package backup

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"onsale/internal/id"
	"onsale/internal/ledger"
	"onsale/internal/ledger/decide"
)

// How far numbers jump. All are far more than a house can use between a backup and its restoring, and so small that a
// million restores fit into what browsers can count (2^53).
const (
	versionJump  = 1 << 32 // of seats_versions: browsers and other nodes ask for what is newer than a version
	epochJump    = 1 << 20 // of seats
	configJump   = 1 << 20 // of events' versions in the catalogue
	fenceJump    = 1 << 20 // of leases and node numbers: who had one before is refused
	historyJump  = 1 << 20 // of the number of history rows in PostgreSQL, which are cached by connections
	sequenceJump = ledger.RestoredSequenceJump

	// numbersJump is of the numbers of each line. Those that it makes void take their turns with the others, so it is no more
	// than a large sale gives out within the hour between two backups. Whoever has a number from beyond it (a line that
	// grew by more) is refused where somebody else entered with the same, and joins again.
	numbersJump = 1 << 18
)

// IDMargin is how far behind the machine that is lost this machine's clock may be: ids begin that much later than now.
const IDMargin = time.Minute

// A Jump says what time it is.
type Jump struct {
	Now    time.Time
	Backup string // its id, kept in the control database until the restore is finished
}

// floor is the least millisecond of ids to come, on their own clock. For a minute or so ids run ahead of the clock: that
// does no harm, since they are only compared with each other.
func (j Jump) floor() int64 { return j.Now.Add(IDMargin).Sub(id.ID(0).Time()).Milliseconds() }

// names spells tables for a database: in PostgreSQL they lie in a schema. The zero value is SQLite's.
type names struct{ schema string }

func (n names) t(table string) string {
	if n.schema == "" {
		return quote(table)
	}
	return quote(n.schema) + "." + quote(table)
}

func (n names) arg(i int) string {
	if n.schema == "" {
		return fmt.Sprintf("?%d", i)
	}
	return fmt.Sprintf("$%d", i)
}

// aheadShard jumps over what may have been given out in the shard since the backup. Ids are the control database's matter.
//
// A seat that is held or sold keeps its epoch, which its claim names; nothing outside of this database knows epochs, so this
// is no more than the rule that a number never means two things.
func aheadShard(ctx context.Context, db querier, n names, j Jump) error {
	for _, statement := range []string{
		fmt.Sprintf(`UPDATE %s SET epoch = epoch + %d WHERE claim_id = 0`, n.t("seats"), epochJump),
		fmt.Sprintf(`UPDATE %s SET version = version + %d`, n.t("seats_versions"), versionJump),
		fmt.Sprintf(`DELETE FROM %s`, n.t("changes")), // they lead to versions that are nobody's any more
		fmt.Sprintf(`UPDATE %s SET sequence = sequence + %d`, n.t("orders"), sequenceJump),
		fmt.Sprintf(`UPDATE %s SET sequence = sequence + %d`, n.t("events"), sequenceJump),
		fmt.Sprintf(`UPDATE %s SET fence = fence + %d, holder = '', until_at = 0`, n.t("leases"), fenceJump),
		fmt.Sprintf(`UPDATE %s SET now = %d WHERE now < %d`, n.t("clock"), j.Now.UnixMilli(), j.Now.UnixMilli()),
	} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("jumping ahead: %w: %s", err, statement)
		}
	}
	return raiseRooms(ctx, db, n)
}

// raiseRooms jumps over the numbers that lines may have given out: signed queue tickets have them. A room that opened after the
// backup is not in it.
func raiseRooms(ctx context.Context, db querier, n names) error {
	for after := int64(-1); ; {
		page, err := documents(ctx, db, n, document{table: "rooms", key: "event_id", column: "body"}, after)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, row := range page {
			after = row.key
			room, err := decide.DecodeRoom(row.text, id.ID(row.key))
			if err != nil {
				return err
			}
			for i := range room.Lanes {
				room.Lanes[i].HighWater = min(room.Lanes[i].HighWater+numbersJump, ledger.RoomNumbersMax)
			}
			text, err := decide.EncodeRoom(room)
			if err != nil {
				return err
			}
			_, err = db.ExecContext(ctx, fmt.Sprintf(`UPDATE %s SET body = %s, version = version + 1 WHERE event_id = %d`, n.t("rooms"), n.arg(1), row.key), text)
			if err != nil {
				return err
			}
		}
	}
}

// aheadControl jumps over ids, node numbers and versions of events, and marks the database as not restored to the end.
func aheadControl(ctx context.Context, db querier, n names, j Jump) error {
	if n.schema != "" { // node numbers that were given out after the backup have no row
		for node := range id.NodeMax + 1 {
			_, err := db.ExecContext(ctx, fmt.Sprintf(`INSERT INTO %s (node, high_water_ms, holder, fence, until_ms) VALUES (%d, 0, '', 0, 0)
				ON CONFLICT (node) DO NOTHING`, n.t("nodes"), node))
			if err != nil {
				return err
			}
		}
	}
	_, err := db.ExecContext(ctx, fmt.Sprintf(`UPDATE %s SET high_water_ms = CASE WHEN high_water_ms > %d THEN high_water_ms ELSE %d END,
		fence = fence + %d, holder = '', until_ms = 0`, n.t("nodes"), j.floor(), j.floor(), fenceJump))
	if err != nil {
		return fmt.Errorf("jumping ahead: %w", err)
	}
	_, err = db.ExecContext(ctx, fmt.Sprintf(`INSERT INTO %s (name, value) VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
		n.t("meta"), n.arg(1), n.arg(2)), MetaRestoring, []byte(j.Backup))
	if err != nil {
		return err
	}
	return raiseInside(ctx, db, n, document{table: "events", key: "id", column: "document", field: "version", by: configJump})
}

// MetaRestoring is the name of the value in the control database that says which backup was restored into it and not
// finished yet: nothing may serve it meanwhile.
const MetaRestoring = "restoring"

// A document is a JSON column, of which one field is a number that stands in a column of the field's name, too.
type document struct {
	table, key, column, field string
	by                        int64
}

const documentsPage = 500

// raiseInside adds to a number inside of each row's document.
func raiseInside(ctx context.Context, db querier, n names, d document) error {
	for after := int64(-1); ; {
		page, err := documents(ctx, db, n, d, after)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, r := range page {
			after = r.key
			text, value, err := raised(r.text, d)
			if err != nil {
				return fmt.Errorf("%s %d: %w", d.table, r.key, err)
			}
			_, err = db.ExecContext(ctx, fmt.Sprintf(`UPDATE %s SET %s = %s, %s = %d WHERE %s = %d`, n.t(d.table), d.column, n.arg(1), quote(d.field), value, d.key, r.key), text)
			if err != nil {
				return err
			}
		}
	}
}

type documentRow struct {
	key  int64
	text string
}

func documents(ctx context.Context, db querier, n names, d document, after int64) ([]documentRow, error) {
	rows, err := db.QueryContext(ctx, fmt.Sprintf(`SELECT %[2]s, %[3]s FROM %[1]s WHERE %[2]s > %[4]d ORDER BY %[2]s LIMIT %[5]d`,
		n.t(d.table), d.key, d.column, after, documentsPage))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var page []documentRow
	for rows.Next() {
		var r documentRow
		if err := rows.Scan(&r.key, &r.text); err != nil {
			return nil, err
		}
		page = append(page, r)
	}
	return page, rows.Err()
}

func raised(text string, d document) (string, int64, error) {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		return "", 0, err
	}
	var value int64
	if err := json.Unmarshal(fields[d.field], &value); err != nil {
		return "", 0, fmt.Errorf("%s: %w", d.field, err)
	}
	value += d.by
	fields[d.field] = json.RawMessage(strconv.FormatInt(value, 10))
	b, err := json.Marshal(fields)
	return string(b), value, err
}
