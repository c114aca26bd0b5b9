package sqlite

import (
	"context"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
)

// What runs in every batch, or in a Sweep, must not read a table from end to end: it would grow slower with every ticket.
func TestNoStatementReadsAWholeTable(t *testing.T) {
	l, err := Open(context.Background(), filepath.Join(t.TempDir(), "ledger.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	// Only a change of an event's limits asks for these.
	rare := map[string]bool{"claims": true, "documents": true, "received": true}
	uses := map[string]string{"pruneHolds": "holds_ended", "pruneChanges": "changes_age", "pruneKeys": "idempotency_keys_age", "pruneSent": "outbox_published",
		"received": "tickets_passed_on", "refundsOf": "refunds_order", "sessionOf": "sessions_number", "sessionsDue": "sessions_open",
		"unpaid": "holds_unpaid", "uses": "checkins_ticket"}
	table := regexp.MustCompile(`SCAN (events|layouts|seats|buckets|holds|orders|payments|refunds|tickets|checkins|idempotency_keys|limits|quotas|outbox|history|changes|rooms|sessions|room_rules|room_calls|code_uses)\b`)
	fields := reflect.TypeFor[statements]()
	for i := range fields.NumField() {
		f := fields.Field(i)
		text := f.Tag.Get("sql")
		if text == "COMMIT" || strings.HasPrefix(text, "BEGIN") {
			continue
		}
		plan := queryPlan(t, l, text)
		for _, step := range strings.Split(plan, "\n") {
			if table.MatchString(step) && !strings.Contains(step, "INDEX") && !rare[f.Name] {
				t.Errorf("%s: %s\n%s", f.Name, text, plan)
			}
		}
		if index := uses[f.Name]; !strings.Contains(plan, index) {
			t.Errorf("%s does not use %s:\n%s", f.Name, index, plan)
		}
	}
}

// Whoever reads never waits for the writer, not even to know what time it is.
func TestReadersDoNotWaitForTheWriter(t *testing.T) {
	l, err := Open(context.Background(), filepath.Join(t.TempDir(), "ledger.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.mu.Lock() // a batch is under way
	defer l.mu.Unlock()
	read := make(chan error, 1)
	go func() {
		_, err := l.Now(context.Background())
		if err == nil {
			_, err = l.NextExpiry(context.Background())
		}
		if err == nil {
			_, err = l.Events(context.Background())
		}
		read <- err
	}()
	select {
	case err := <-read:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("a reader waits for the batch")
	}
}

func queryPlan(t *testing.T, l *Ledger, text string) string {
	t.Helper()
	args := make([]any, strings.Count(text, "?"))
	if strings.Contains(text, "?1") {
		args = args[:0]
		for _, n := range []string{"?1", "?2", "?3", "?4", "?5"} {
			if strings.Contains(text, n) {
				args = append(args, nil)
			}
		}
	}
	rows, err := l.conn.QueryContext(context.Background(), "EXPLAIN QUERY PLAN "+text, args...)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer rows.Close()
	var plan []string
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		plan = append(plan, detail)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(plan, "\n")
}
