package lint

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestImportDirections(t *testing.T) {
	// go test keeps results by the files that a test opened itself, not by those that go list read.
	for _, dir := range []string{"../../internal", "../../cmd", "../../scripts"} {
		err := filepath.WalkDir(dir, func(string, fs.DirEntry, error) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	// -e: a package that does not compile is the build's to report.
	cmd := exec.Command("go", "list", "-e", "-deps", "-json=ImportPath,Standard,Imports,Deps", "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var packages []Package
	ours := 0
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p Package
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(p.ImportPath, module) {
			ours++
		}
		packages = append(packages, p)
	}
	if ours < 3 {
		t.Fatalf("go list names only %d packages of this module: nothing was checked", ours)
	}
	for _, f := range Check(packages) {
		t.Error(f)
	}
}

// The negative control: each edge is a mistake that somebody could make.
func TestABadImportIsFound(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"internal/ledger", "github.com/jackc/pgx/v5", "only the standard library"},
		{"internal/booking", "net/http", "neither HTTP nor databases"},
		{"internal/inventory", "database/sql", "neither HTTP nor databases"},
		{"internal/venue", "onsale/internal/ledger", "higher layer"},
		{"internal/ledger", "onsale/internal/booking", "higher layer"},
		{"internal/payment", "onsale/internal/ticket", "same or a higher layer"},
		{"internal/ledger", "onsale/internal/ledger/sqlite", "only the standard library and each other"},
		{"internal/payment", "onsale/internal/payment/sandbox", "only the standard library and each other"},
		{"internal/booking", "onsale/internal/pgserver", "only the standard library and each other"},
		{"internal/ledger/sqlite", "onsale/internal/ledger/postgres", "an adapter imports its port"},
		{"internal/ledger/sqlite", "onsale/internal/booking", "an adapter imports its port"},
		{"internal/payment/sandbox", "onsale/internal/ledger", "an adapter imports its port"},
		{"internal/ledger/postgres", "onsale/internal/ledger/ledgertest", "an adapter imports its port"},
		{"internal/httpapi", "onsale/internal/ledger/sqlite", "through domain packages"},
		{"internal/httpapi", "onsale/internal/app", "through domain packages"},
		{"internal/bench", "onsale/internal/app", "only cmd"},
		{"internal/bench", "onsale/internal/ledger/ledgertest", "only tests"},
		{"internal/pgserver", "onsale/internal/ledger", "ground packages"},
		{"internal/nobody/knows", "fmt", "add it to the table"},
		{"tools", "fmt", "add it to the table"},
	} {
		got := Check(synthetic(c.from, c.to))
		if len(got) != 1 || !strings.HasPrefix(got[0], module+c.from+" ") || !strings.Contains(got[0], c.want) {
			t.Errorf("%s → %s: got %q, want one fault with %q", c.from, c.to, got, c.want)
		}
	}
}

func TestAGoodImportIsNot(t *testing.T) {
	for _, c := range []struct{ from, to string }{
		{"internal/booking", "onsale/internal/ledger"},
		{"internal/ledger/decide", "onsale/internal/ledger"},
		{"internal/ledger/sqlite", "onsale/internal/ledger/decide"},
		{"internal/ledger/sqlite", "database/sql"},
		{"internal/ledger/sqlite", "onsale/internal/sqlmigrate"},
		{"internal/ledger/postgres", "github.com/jackc/pgx/v5"},
		{"internal/httpapi", "net/http"},
		{"internal/httpapi", "onsale/internal/booking"},
		{"internal/bench", "onsale/internal/ledger/postgres"},
		{"internal/audit", "github.com/jackc/pgx/v5"},
		{"internal/app", "onsale/internal/ledger/sqlite"},
		{"cmd/onsale", "onsale/internal/app"},
		{"internal/ticket", "github.com/skip2/go-qrcode"},
	} {
		if got := Check(synthetic(c.from, c.to)); len(got) != 0 {
			t.Errorf("%s → %s: %q", c.from, c.to, got)
		}
	}
}

// A domain package must not get at HTTP through a package of the standard library either.
func TestAHiddenImportIsFound(t *testing.T) {
	packages := []Package{
		{ImportPath: "net/http", Standard: true},
		{ImportPath: "expvar", Standard: true, Imports: []string{"net/http"}, Deps: []string{"net/http"}},
		{ImportPath: module + "internal/venue", Imports: []string{"expvar"}, Deps: []string{"expvar", "net/http"}},
	}
	if got := Check(packages); len(got) != 1 || !strings.Contains(got[0], "net/http") {
		t.Errorf("got %q", got)
	}
}

func TestTheTableHoldsTogether(t *testing.T) {
	for path, p := range table {
		if p.kind != adapter {
			continue
		}
		port, ok := table[p.port]
		if !ok || port.kind != domain {
			t.Errorf("%s adapts %q, which is no domain package of the table", path, p.port)
		}
	}
	for _, e := range exceptions {
		if _, ok := table[e.from]; !ok || e.to == "" || e.why == "" {
			t.Errorf("exception %+v lacks a part, or its package is not in the table", e)
		}
	}
}

// synthetic is a module in which one package imports another.
func synthetic(from, to string) []Package {
	target := Package{ImportPath: to, Standard: !strings.Contains(to, ".") && !strings.HasPrefix(to, module)}
	source := Package{ImportPath: module + from, Imports: []string{to}, Deps: []string{to}}
	return []Package{target, source}
}
