package postgres_test

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"onsale/internal/ledger/postgres"
	"onsale/internal/ledger/sqlite"
	"onsale/internal/pgserver"
	"onsale/internal/sqlmigrate"
)

// Both dialects have the same tables, columns (names, families of types, NOT NULL, order), primary keys and unique
// indexes, under the same numbers.
func TestSchemasAreEqual(t *testing.T) {
	ctx := context.Background()
	lite, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "x.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer lite.Close()
	a, err := sqlmigrate.Up(ctx, lite, sqlmigrate.SQLite, "", sqlite.Migrations())
	if err != nil {
		t.Fatal(err)
	}
	database := pgserver.DatabaseForTest(t)
	b, err := postgres.Migrate(ctx, database)
	if err != nil {
		t.Fatal(err)
	}
	if a != b {
		t.Errorf("the numbers differ: SQLite %+v, PostgreSQL %+v", a, b)
	}
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if diff := cmp.Diff(sqliteSchema(t, lite), postgresSchema(t, conn)); diff != "" {
		t.Errorf("-SQLite +PostgreSQL\n%s", diff)
	}
}

// first are the migrations with which the kernel sold: number 1 alone.
func first(t *testing.T, all fs.FS) fs.FS {
	t.Helper()
	text, err := fs.ReadFile(all, "00001_shard.sql")
	if err != nil {
		t.Fatal(err)
	}
	return fstest.MapFS{"00001_shard.sql": {Data: text}}
}

// What was sold before refunds were possible is ready for them: each ticket knows its place, and what a refused capture
// took back is gone.
func TestWhatWasSoldBeforeRefunds(t *testing.T) {
	ctx := context.Background()
	file := "file:" + filepath.Join(t.TempDir(), "x.db")
	database := pgserver.DatabaseForTest(t)
	for _, d := range []struct {
		driver, dsn, schema string
		dialect             sqlmigrate.Dialect
		all                 fs.FS
	}{{"sqlite", file, "", sqlmigrate.SQLite, sqlite.Migrations()}, {"pgx", database, postgres.Schema, sqlmigrate.Postgres, postgres.Migrations()}} {
		t.Run(d.driver, func(t *testing.T) {
			db, err := sql.Open(d.driver, d.dsn)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := sqlmigrate.Up(ctx, db, d.dialect, d.schema, first(t, d.all)); err != nil {
				t.Fatal(err)
			}
			in := func(query string) string {
				return strings.ReplaceAll(query, "#", strings.TrimPrefix(d.schema+".", "."))
			}
			for _, plant := range []string{
				`INSERT INTO #holds (hold_id, event_id, customer_id, state, area, lines, draws, currency, created_at, expires_at) VALUES
					(1, 9, 8, 4, -1, '[[1],[27,1,0,5,0,0,5],[28,1,0,5,0,0,5]]', '[]', 'EUR', 1, 2), (2, 9, 8, 2, -1, '[[1],[30,1,0,5,0,0,5],[31,1,0,5,0,0,5]]', '[]', 'EUR', 1, 2)`,
				`INSERT INTO #orders (order_id, hold_id, event_id, customer_id, state, reason, amount, currency, provider, created_at, updated_at) VALUES
					(11, 1, 9, 8, 2, '', 10, 'EUR', 'p', 1, 1), (12, 2, 9, 8, 5, 'capture_refused', 10, 'EUR', 'p', 1, 1)`,
				`INSERT INTO #tickets (ticket_id, order_id, event_id, customer_id, state, seat_index, category, total) VALUES
					(101, 11, 9, 8, 1, 27, 0, 5), (102, 11, 9, 8, 1, 28, 0, 5), (103, 12, 9, 8, 3, 30, 0, 5), (104, 12, 9, 8, 3, 31, 0, 5)`,
				`INSERT INTO #refunds (refund_id, order_id, provider, payment_id, state, amount, currency, reason, created_at) VALUES (21, 12, 'p', 'x', 3, 0, 'EUR', 'capture_refused', 1)`,
			} {
				if _, err := db.Exec(in(plant)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := sqlmigrate.Up(ctx, db, d.dialect, d.schema, d.all); err != nil {
				t.Fatal(err)
			}
			var got []string
			rows, err := db.Query(in(`SELECT ticket_id, place, gone, refund_id FROM #tickets ORDER BY ticket_id`))
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			for rows.Next() {
				var n [4]int64
				if err := rows.Scan(&n[0], &n[1], &n[2], &n[3]); err != nil {
					t.Fatal(err)
				}
				got = append(got, fmt.Sprint(n))
			}
			want := []string{"[101 0 0 0]", "[102 1 0 0]", "[103 0 1 21]", "[104 1 1 21]"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			for hold, want := range map[int]string{1: `[[1],[27,1,0,5,0,0,5],[28,1,0,5,0,0,5]]`, 2: `[[2],[30,1,0,5,0,0,5,1],[31,1,0,5,0,0,5,1]]`} {
				var lines string
				if err := db.QueryRow(in(fmt.Sprintf(`SELECT lines FROM #holds WHERE hold_id = %d`, hold))).Scan(&lines); err != nil || lines != want {
					t.Errorf("hold %d has %s, %v; want %s", hold, lines, err, want)
				}
			}
		})
	}
}

const goose = sqlmigrate.Table

func sqliteSchema(t *testing.T, db *sql.DB) (lines []string) {
	t.Helper()
	rows, err := db.Query(`SELECT m.name, c.cid, c.name, c.type, c."notnull" <> 0 OR c.pk <> 0, c.pk FROM sqlite_master m, pragma_table_info(m.name) c
		WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' AND m.name <> ? ORDER BY m.name, c.cid`, goose)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var table, column, kind string
		var place, key int
		var required bool
		if err := rows.Scan(&table, &place, &column, &kind, &required, &key); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%s.%d %s %s required:%v key:%d", table, place, column, kind, required, key))
	}
	indexes, err := db.Query(`SELECT sql FROM sqlite_master WHERE type = 'index' AND sql LIKE 'CREATE UNIQUE%'`)
	if err != nil {
		t.Fatal(err)
	}
	defer indexes.Close()
	for indexes.Next() {
		var text string
		if err := indexes.Scan(&text); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, plainIndex(text))
	}
	slices.Sort(lines)
	return lines
}

func postgresSchema(t *testing.T, conn *pgx.Conn) (lines []string) {
	t.Helper()
	ctx := context.Background()
	rows, err := conn.Query(ctx, `SELECT format('%s.%s %s %s required:%s key:%s', c.relname, a.attnum - 1, a.attname,
		CASE WHEN a.atttypid IN ('bigint'::regtype, 'integer'::regtype, 'smallint'::regtype) THEN 'INTEGER'
		     WHEN a.atttypid = 'bytea'::regtype THEN 'BLOB' ELSE upper(a.atttypid::regtype::text) END,
		CASE WHEN a.attnotnull THEN 'true' ELSE 'false' END, coalesce(array_position(i.indkey::smallint[], a.attnum) + 1, 0))
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
		WHERE c.relnamespace = 'shard'::regnamespace AND c.relkind = 'r' AND c.relname <> $1
		UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'shard' AND indexdef LIKE 'CREATE UNIQUE%' AND indexname NOT LIKE '%\_pkey'`, goose)
	if err != nil {
		t.Fatal(err)
	}
	lines, err = pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range lines {
		if strings.HasPrefix(line, "CREATE") {
			lines[i] = plainIndex(line)
		}
	}
	slices.Sort(lines)
	return lines
}

var indexText = regexp.MustCompile(`(?is)CREATE UNIQUE INDEX (\w+) ON (?:shard\.)?(\w+) (?:USING btree )?\(([^)]*)\)(.*)`)

// plainIndex writes both dialects' definitions the same way.
func plainIndex(text string) string {
	m := indexText.FindStringSubmatch(text)
	if m == nil {
		return text
	}
	condition := strings.ToLower(m[4])
	for _, r := range [][2]string{
		{"= any (array[1, 2])", "in (1, 2)"}, {"(", ""}, {")", ""}, {"::smallint", ""}, {"array[1, 2]", "1, 2"}, {"= any ", "in "},
	} {
		condition = strings.ReplaceAll(condition, r[0], r[1])
	}
	return fmt.Sprintf("unique %s on %s: %s%s", m[1], m[2], m[3], condition)
}

// RULES F1: a server that would lose what was acknowledged is refused, and the error names the mend.
func TestDurabilityIsChecked(t *testing.T) {
	ctx := context.Background()
	server := pgserver.CrashableForTest(t)
	rawURL, name, err := server.FreshDatabase(ctx)
	if err != nil {
		t.Fatal(err)
	}
	l := open(t, postgres.Options{URL: rawURL})
	defer l.Close()
	if err := l.CheckDurability(ctx); err != nil {
		t.Errorf("a server with safe settings: %v", err)
	}
	admin, err := pgx.Connect(ctx, rawURL)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(ctx)
	if _, err := admin.Exec(ctx, `ALTER DATABASE `+name+` SET synchronous_commit = off`); err != nil {
		t.Fatal(err)
	}
	if err := l.CheckDurability(ctx); err == nil || !strings.Contains(err.Error(), "synchronous_commit = on") {
		t.Errorf("synchronous_commit = off: %v", err)
	}
	for _, sql := range []string{`ALTER SYSTEM SET fsync = off`, `ALTER SYSTEM SET full_page_writes = off`} {
		if _, err := admin.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	if err := server.Halt(); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	err = l.CheckDurability(ctx)
	for _, setting := range []string{"fsync", "full_page_writes", "synchronous_commit"} {
		if err == nil || !strings.Contains(err.Error(), "ALTER SYSTEM SET "+setting+" = on") {
			t.Errorf("%s = off: %v", setting, err)
		}
	}
}
