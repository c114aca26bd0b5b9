package demo

import (
	"database/sql"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Whatever stands around them, and however they are written, the personal data that the demo used are found; what only
// looks like them is not.
func TestSecretsAreFound(t *testing.T) {
	s := newSecrets()
	random := rand.New(rand.NewPCG(1, 1))
	who := s.attendee(random)
	s.address("guest-1-17" + mailDomain)
	s.address("friend-1-17.1" + mailDomain)
	for text, want := range map[string][]string{
		`msg="a notice" who="` + who.Name + `"`:                            {"a name"},
		"first line\\n" + strings.ToUpper(who.Name):                        {"a name"},
		`{"document":"` + who.DocumentNumber + `x"}`:                       {"a document"},
		"<" + strings.ToLower(who.DocumentNumber) + "> " + who.Name:        {"a document", "a name"},
		"mailto:Guest-1-17@DEMO.example":                                   {"an address"},
		"user=guest-1-17 domain=demo.example":                              {"an address"},
		"friend-1-17.1%40demo.example":                                     {"an address"},
		"demo-1-000017 guest-1-18@demo.example Quastenflossler XA12345678": nil,
		"": nil,
	} {
		if got := s.found([]byte(text)); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if s.count() != 4 {
		t.Errorf("%d secrets", s.count())
	}
}

// The server's log and the notices are both looked through.
func TestPrivate(t *testing.T) {
	dir := t.TempDir()
	shard := filepath.Join(dir, "shard.db")
	db, err := sql.Open("sqlite", "file:"+shard)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	run := func(query string, args ...any) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), query, args...); err != nil {
			t.Fatal(err)
		}
	}
	run("CREATE TABLE outbox (body TEXT)")
	run(`INSERT INTO outbox VALUES ('{"refund_id":"rfd_1"}')`)
	s := &sale{secrets: newSecrets(), server: &server{log: filepath.Join(dir, "server.log")}}
	if s.store, err = openStore(sqliteKind, shard); err != nil {
		t.Fatal(err)
	}
	defer s.store.close()
	who := s.secrets.attendee(rand.New(rand.NewPCG(2, 2)))
	look := func(log string) []string {
		t.Helper()
		if err := os.WriteFile(s.server.log, []byte(log), 0o600); err != nil {
			t.Fatal(err)
		}
		s.wrongs = nil
		if err := s.private(t.Context()); err != nil {
			t.Fatal(err)
		}
		return s.wrongs
	}
	if found := look("msg=notice order=ord_1\n"); len(found) > 0 {
		t.Errorf("found %q", found)
	}
	if found := look("msg=mailed to=" + who.Name + "\n"); len(found) != 1 || !strings.Contains(found[0], "log holds a name") {
		t.Errorf("in the log: %q", found)
	}
	run("INSERT INTO outbox VALUES (?)", `{"document":"`+who.DocumentNumber+`"}`)
	if found := look(""); len(found) != 1 || !strings.Contains(found[0], "notice holds a document") {
		t.Errorf("in a notice: %q", found)
	}
}
