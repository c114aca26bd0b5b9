package keys_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"onsale/internal/keys"
	"onsale/internal/keys/keystest"
)

func TestMemoryStore(t *testing.T) {
	keystest.Exercise(t, func(*testing.T) keys.Store { return &keystest.Memory{} })
}

func master(t *testing.T, fill byte) keys.Master {
	t.Helper()
	m, err := keys.NewMaster(bytes.Repeat([]byte{fill}, keys.MasterBytes))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func load(t *testing.T, s keys.Store) *keys.Ring {
	t.Helper()
	r, err := keys.Load(t.Context(), s, master(t, 7), keys.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRing(t *testing.T) {
	store := &keystest.Memory{}
	at := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	r, err := keys.Load(t.Context(), store, master(t, 7), keys.Options{Now: func() time.Time { at = at.Add(time.Second); return at }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Active(keys.Ticket); !errors.Is(err, keys.ErrNone) {
		t.Fatalf("active key of an empty store: %v", err)
	}
	first, err := r.EnsureActive(t.Context(), keys.Ticket)
	if err != nil || len(first.KID) != keys.KIDLength || first.State != keys.Active {
		t.Fatalf("%v, %v", first, err)
	}
	if again, err := r.EnsureActive(t.Context(), keys.Ticket); err != nil || again.KID != first.KID {
		t.Fatalf("again: %v, %v", again, err)
	}
	signature := ed25519.Sign(first.Private(), []byte("text"))

	second, err := r.Rotate(t.Context(), keys.Ticket)
	if err != nil || second.KID == first.KID {
		t.Fatalf("rotate: %v, %v", second, err)
	}
	// Another process sees the same: the old key still checks, the new one signs.
	r = load(t, store)
	if k, err := r.Active(keys.Ticket); err != nil || k.KID != second.KID {
		t.Fatalf("active: %v, %v", k, err)
	}
	old, err := r.Public(keys.Ticket, first.KID)
	if err != nil || old.State != keys.Public || !ed25519.Verify(old.PublicKey(), []byte("text"), signature) {
		t.Fatalf("old key: %v, %v", old, err)
	}
	if got := r.Checking(keys.Ticket); len(got) != 2 {
		t.Fatalf("checking: %v", got)
	}
	for name, ask := range map[string]func() (keys.Key, error){
		"other purpose":   func() (keys.Key, error) { return r.Public(keys.TicketTest, first.KID) },
		"unknown kid":     func() (keys.Key, error) { return r.Public(keys.Ticket, "00000000") },
		"unknown purpose": func() (keys.Key, error) { return r.EnsureActive(t.Context(), "lunch") },
		"rotate pepper":   func() (keys.Key, error) { return r.Rotate(t.Context(), keys.Pepper) },
		"rotate nothing":  func() (keys.Key, error) { return r.Rotate(t.Context(), keys.Queue) },
	} {
		if k, err := ask(); err == nil {
			t.Errorf("%s: %v", name, k)
		}
	}

	jwks, err := keys.JWKS(append(r.Checking(keys.Ticket), r.Checking(keys.Pepper)...))
	var set struct {
		Keys []map[string]string `json:"keys"`
	}
	if err != nil || json.Unmarshal(jwks, &set) != nil || len(set.Keys) != 2 {
		t.Fatalf("JWKS: %s, %v", jwks, err)
	}
	for i, k := range []keys.Key{second, old} {
		got := set.Keys[i]
		if got["kty"] != "OKP" || got["crv"] != "Ed25519" || got["kid"] != k.KID || got["onsale_purpose"] != "ticket" ||
			got["x"] != base64.RawURLEncoding.EncodeToString(k.PublicKey()) || got["d"] != "" {
			t.Errorf("JWK %d: %v", i, got)
		}
	}

	pepper, err := r.EnsureActive(t.Context(), keys.Pepper)
	if err != nil || len(pepper.Secret()) != 32 {
		t.Fatalf("pepper: %v", err)
	}
	if text := fmt.Sprintf("%v %+v %#v %s", pepper, pepper, pepper, master(t, 7)); strings.Contains(text, fmt.Sprint(pepper.Secret()[:4])[1:]) {
		t.Fatalf("the secret is printed: %s", text)
	}
}

// Many nodes that start at once on an empty store use one pepper.
func TestEnsureActiveAtOnce(t *testing.T) {
	store := &keystest.Memory{}
	var kids sync.Map
	var all sync.WaitGroup
	for range 16 {
		r := load(t, store)
		all.Go(func() {
			k, err := r.EnsureActive(context.Background(), keys.Pepper)
			if err != nil {
				t.Error(err)
			}
			kids.Store(k.KID, string(k.Secret()))
		})
	}
	all.Wait()
	count := 0
	kids.Range(func(_, _ any) bool { count++; return true })
	if count != 1 {
		t.Fatalf("%d peppers", count)
	}
}

func TestSealing(t *testing.T) {
	m := master(t, 7)
	sealed, err := m.Seal(bytes.NewReader(make([]byte, 64)), "AAAAAAAA", keys.Ticket, []byte("the secret"))
	if err != nil {
		t.Fatal(err)
	}
	const golden = "0100000000000000000000000015b0c19288f7689a84731afbb5edce74aadd88e41aa917a18767" // what databases already hold must open for ever
	if got := hex.EncodeToString(sealed); got != golden {
		t.Errorf("sealed %s, want %s", got, golden)
	}
	if got, err := m.Open("AAAAAAAA", keys.Ticket, sealed); err != nil || string(got) != "the secret" {
		t.Fatalf("open: %q, %v", got, err)
	}
	open := map[string]func() ([]byte, error){
		"other kid":     func() ([]byte, error) { return m.Open("AAAAAAAB", keys.Ticket, sealed) },
		"other purpose": func() ([]byte, error) { return m.Open("AAAAAAAA", keys.TicketTest, sealed) },
		"other master":  func() ([]byte, error) { return master(t, 8).Open("AAAAAAAA", keys.Ticket, sealed) },
		"empty":         func() ([]byte, error) { return m.Open("AAAAAAAA", keys.Ticket, nil) },
		"short":         func() ([]byte, error) { return m.Open("AAAAAAAA", keys.Ticket, sealed[:len(sealed)-1]) },
	}
	for i := range sealed {
		changed := bytes.Clone(sealed)
		changed[i] ^= 1
		open[fmt.Sprintf("byte %d changed", i)] = func() ([]byte, error) { return m.Open("AAAAAAAA", keys.Ticket, changed) }
	}
	for name, f := range open {
		if got, err := f(); !errors.Is(err, keys.ErrSealed) || got != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := (keys.Master{}).Seal(bytes.NewReader(make([]byte, 64)), "AAAAAAAA", keys.Ticket, nil); err == nil {
		t.Error("sealed without a master key")
	}
}

func TestLoadRefuses(t *testing.T) {
	good := &keystest.Memory{}
	k, err := load(t, good).EnsureActive(t.Context(), keys.Ticket)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Load(t.Context(), good, master(t, 8), keys.Options{}); !errors.Is(err, keys.ErrSealed) {
		t.Fatalf("another master key: %v", err)
	}
	records, _ := good.List(t.Context())
	for name, change := range map[string]func(*keys.Record){
		"other purpose":   func(r *keys.Record) { r.Purpose = keys.TicketTest },
		"other algorithm": func(r *keys.Record) { r.Algorithm = keys.HMACSHA256 },
		"other kid":       func(r *keys.Record) { r.KID = "00000000" },
		"unknown state":   func(r *keys.Record) { r.State = "sleeping" },
	} {
		r := records[0]
		change(&r)
		if _, err := keys.Load(t.Context(), fixed{r}, master(t, 7), keys.Options{}); err == nil {
			t.Errorf("%s was loaded", name)
		}
	}
	twin := records[0]
	twin.KID = "00000000"
	twin.Sealed, _ = master(t, 7).Seal(bytes.NewReader(make([]byte, 64)), twin.KID, twin.Purpose, make([]byte, 32))
	if _, err := keys.Load(t.Context(), fixed{records[0], twin}, master(t, 7), keys.Options{}); err == nil {
		t.Error("two active keys of one purpose were loaded")
	}
	if _, err := keys.Load(t.Context(), fixed{records[0], records[0]}, master(t, 7), keys.Options{}); err == nil {
		t.Error("one kid was loaded twice")
	}
	// A reload that fails changes nothing.
	r := load(t, &flaky{Store: good})
	if err := r.Reload(t.Context()); err == nil {
		t.Fatal("the second list should fail")
	}
	if got, err := r.Active(keys.Ticket); err != nil || got.KID != k.KID {
		t.Fatalf("after a failed reload: %v, %v", got, err)
	}
}

// fixed is a store that lists what it is.
type fixed []keys.Record

func (f fixed) List(context.Context) ([]keys.Record, error) { return f, nil }

func (f fixed) Insert(context.Context, keys.Record, string) error { return errors.New("fixed") }

// flaky lists once.
type flaky struct {
	keys.Store
	listed bool
}

func (f *flaky) List(ctx context.Context) ([]keys.Record, error) {
	if f.listed {
		return nil, errors.New("the database is away")
	}
	f.listed = true
	return f.Store.List(ctx)
}

func TestMasterFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "master.key")
	if _, err := keys.LoadMaster(path); err == nil || !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("no file: %v", err)
	}
	var all sync.WaitGroup
	made := make([]keys.Master, 8)
	for i := range made {
		all.Go(func() {
			var err error
			if made[i], err = keys.LoadOrCreateMaster(path); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, m := range made {
		if m != made[0] || m == (keys.Master{}) {
			t.Fatal("several master keys were made")
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("mode %v, %v", info.Mode(), err)
	}
	if rest, _ := os.ReadDir(filepath.Dir(path)); len(rest) != 1 {
		t.Fatalf("left behind: %v", rest)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if m, err := keys.ParseMaster("variable ONSALE_MASTER_KEY", string(text)); err != nil || m != made[0] {
		t.Fatalf("parse: %v", err)
	}

	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.LoadOrCreateMaster(path); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Fatalf("a file that others can read: %v", err)
	}
	zero := "onsale-master-1:" + strings.Repeat("0", 64)
	for _, text := range []string{"", "onsale-master-1:", "onsale-master-2:" + strings.Repeat("a", 64), strings.Repeat("a", 64), zero,
		"onsale-master-1:" + strings.Repeat("g", 64), "onsale-master-1:" + strings.Repeat("a", 66)} {
		if _, err := keys.ParseMaster("variable X", text); err == nil || !strings.Contains(err.Error(), "variable X") {
			t.Errorf("%q: %v", text, err)
		}
	}
	broken := filepath.Join(t.TempDir(), "broken.key")
	if err := os.WriteFile(broken, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.LoadOrCreateMaster(broken); err == nil {
		t.Fatal("a broken file was taken")
	}
	if text, _ := os.ReadFile(broken); string(text) != "half" {
		t.Fatal("a broken file was replaced: what it sealed would be lost")
	}
}

func TestCreatedAtIsWholeMilliseconds(t *testing.T) {
	store := &keystest.Memory{}
	at := time.Date(2026, 5, 1, 10, 0, 0, 123456789, time.UTC)
	r, err := keys.Load(t.Context(), store, master(t, 7), keys.Options{Now: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	k, err := r.EnsureActive(t.Context(), keys.Webhook)
	if err != nil || k.CreatedAt != at.Truncate(time.Millisecond) {
		t.Fatalf("%v, %v", k.CreatedAt, err)
	}
}

// counting counts how often the store was read.
type counting struct {
	keys.Store
	lists int
}

func (c *counting) List(ctx context.Context) ([]keys.Record, error) {
	c.lists++
	return c.Store.List(ctx)
}

func TestFindSeesOtherNodesKeysAndIsNotAFlood(t *testing.T) {
	memory := &keystest.Memory{}
	store := &counting{Store: memory}
	at := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	r, err := keys.Load(t.Context(), store, master(t, 7), keys.Options{Now: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	k, err := load(t, memory).EnsureActive(t.Context(), keys.SignIn)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Public(keys.SignIn, k.KID); !errors.Is(err, keys.ErrNone) {
		t.Fatalf("known already: %v", err)
	}
	if got, err := r.Find(t.Context(), keys.SignIn, k.KID); err != nil || got.KID != k.KID {
		t.Fatalf("%v, %v", got, err)
	}
	for range 100 {
		if _, err := r.Find(t.Context(), keys.SignIn, "00000000"); !errors.Is(err, keys.ErrNone) {
			t.Fatal(err)
		}
	}
	if store.lists != 2 { // Load's and the first Find's
		t.Errorf("the store was read %d times", store.lists)
	}
	at = at.Add(5 * time.Second)
	if _, err := r.Find(t.Context(), keys.SignIn, "00000000"); !errors.Is(err, keys.ErrNone) || store.lists != 3 {
		t.Errorf("a while later: %v, %d", err, store.lists)
	}
	if _, err := r.Find(t.Context(), keys.Pepper, k.KID); !errors.Is(err, keys.ErrNone) {
		t.Errorf("for another purpose: %v", err)
	}
}
