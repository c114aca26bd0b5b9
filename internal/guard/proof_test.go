package guard

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"onsale/internal/fault"
)

func secrets(all ...string) Secrets {
	return func() (out [][]byte) {
		for _, s := range all {
			out = append(out, []byte(s))
		}
		return out
	}
}

var (
	ann = Bind{Event: 1, Subject: SubjectOf(7, Device{})}
	bob = Bind{Event: 1, Subject: SubjectOf(8, Device{})}
)

func solved(t testing.TB, c Challenge) string {
	t.Helper()
	payload, ok := c.Solve()
	if !ok {
		t.Fatal("not solved")
	}
	return payload
}

// changed is a payload with one field changed.
func changed(t *testing.T, payload, field string, value any) string {
	t.Helper()
	raw, _ := base64.StdEncoding.DecodeString(payload)
	var m map[string]any
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	m[field] = value
	b, _ := json.Marshal(m)
	return base64.StdEncoding.EncodeToString(b)
}

func TestC14Proofs(t *testing.T) {
	p := NewProver(secrets("s"))
	c := p.Challenge(start, ann, 500)
	payload := solved(t, c)
	salt := c.Salt
	for name, try := range map[string]struct {
		p       *Prover
		at      time.Time
		b       Bind
		payload string
		want    string // a part of the refusal; "": good
	}{
		"at once":            {p, start, ann, payload, ""},
		"again":              {p, start.Add(time.Minute), ann, payload, ""},
		"at the last moment": {p, start.Add(ProofLife - time.Second), ann, payload, ""},
		"late":               {p, start.Add(ProofLife), ann, payload, "run out"},
		"long before":        {p, start.Add(-proofAhead - time.Second), ann, payload, "run out"},
		"a clock behind":     {p, start.Add(-proofAhead), ann, payload, ""},
		"of another":         {p, start, bob, payload, "somebody else"},
		"of another event":   {p, start, Bind{2, ann.Subject}, payload, "somebody else"},
		"of the device":      {p, start, Bind{1, SubjectOf(0, Device{7})}, payload, "somebody else"},
		"after rotation":     {NewProver(secrets("new", "s")), start, ann, payload, ""},
		"of another site":    {NewProver(secrets("new")), start, ann, payload, "not asked for here"},
		"none":               {p, start, ann, "", "proof_required"},
		"another number":     {p, start, ann, changed(t, payload, "number", 501), "not the number"},
		"a number in text":   {p, start, ann, changed(t, payload, "number", "x"), "cannot be read"},
		"a number below":     {p, start, ann, changed(t, payload, "number", -1), "cannot be read"},
		"half a number":      {p, start, ann, changed(t, payload, "number", 1.5), "cannot be read"},
		"another algorithm":  {p, start, ann, changed(t, payload, "algorithm", "SHA-1"), "cannot be read"},
		"another signature":  {p, start, ann, changed(t, payload, "signature", strings.Repeat("0", 64)), "not asked for"},
		"a later end":        {p, start, ann, changed(t, payload, "salt", strings.Replace(salt, "expires=1", "expires=2", 1)), "not the number"},
		"a salt without end": {p, start, ann, changed(t, payload, "salt", strings.TrimSuffix(salt, "&")), "no end"},
		"no base64":          {p, start, ann, "*", "base64"},
		"too long":           {p, start, ann, strings.Repeat("A", ProofBytesMax+1), "too long"},
		"more fields":        {p, start, ann, changed(t, payload, "took", 123), ""},
	} {
		s, err := try.p.Check(try.at, try.b, try.payload)
		switch {
		case try.want == "" && (err != nil || s.Max != 500 || s.Number > 500):
			t.Errorf("%s: %+v, %v", name, s, err)
		case try.want != "" && (fault.CodeOf(err) != fault.ProofRequired || !strings.Contains(err.Error(), try.want)):
			t.Errorf("%s: %v, want %q", name, err, try.want)
		}
	}
}

// The last digits of a salt cannot be moved into the number: a proof would hold for longer than was signed.
func TestSaltEndsBeforeTheNumber(t *testing.T) {
	p := NewProver(secrets("s"))
	c := p.Challenge(start, ann, 9)
	payload := solved(t, c)
	for cut := 1; cut < 4; cut++ { // every way to split the same bytes
		moved := changed(t, changed(t, payload, "salt", c.Salt[:len(c.Salt)-cut]), "number", json.Number("9"))
		if _, err := p.Check(start, ann, moved); err == nil {
			t.Errorf("%d bytes were moved", cut)
		}
	}
}

func TestTooFast(t *testing.T) {
	for _, c := range []struct {
		number int
		took   time.Duration
		want   bool
	}{{0, 0, false}, {20_000, time.Millisecond, false}, {20_001, time.Millisecond, true}, {1, 0, true}, {2_000_000, -time.Second, false}, {1_000_000, time.Second, false}} {
		if got := (Solved{Number: c.number, Took: c.took}).TooFast(); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestDifficulty(t *testing.T) {
	for _, c := range []struct {
		p    Pressure
		want int
	}{
		{Pressure{}, 50_000}, {Pressure{Load: 1}, 200_000}, {Pressure{Load: 9}, 200_000}, {Pressure{Load: math.NaN()}, 50_000}, {Pressure{Load: -1}, 50_000},
		{Pressure{Heat: 1}, 50_000}, {Pressure{Heat: 2}, 100_000}, {Pressure{Heat: 1e9}, 200_000}, {Pressure{Heat: math.Inf(1)}, 200_000}, {Pressure{Heat: math.NaN()}, 50_000},
		{Pressure{Flagged: true}, 200_000}, {Pressure{Load: 1, Heat: 9, Flagged: true}, DifficultyMax},
		{Pressure{Base: 1, Load: 1, Heat: 9, Flagged: true}, 1}, {Pressure{Base: -5}, 1}, {Pressure{Base: 10, Flagged: true}, 40},
	} {
		if got := Difficulty(c.p); got != c.want {
			t.Errorf("%+v: %d, want %d", c.p, got, c.want)
		}
	}
}

// TestWidgetsAgree has ALTCHA's own libraries, the servers' and the widget's, solve our challenges and look at our solutions, and the
// other way round.
func TestWidgetsAgree(t *testing.T) {
	dir := library(t)
	p := NewProver(secrets("s"))
	now := time.Now()
	key := string(proofKey(p.secrets.Of("proof of work")[0]))
	c := p.Challenge(now, ann, 2_000)
	in, _ := json.Marshal(map[string]any{"key": key, "challenge": c, "payload": solved(t, c), "late": solved(t, p.Challenge(now.Add(-2*ProofLife), ann, 10))})
	command := exec.Command("node", "check.mjs")
	command.Dir, command.Stdin = dir, bytes.NewReader(in)
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var said struct {
		Payload      string            // of our challenge, solved there
		Widget       string            // the same, in the way of the widget
		Ours, Late   bool              // what it says of payloads that we solved
		Theirs       Challenge         // made there with our key
		TheirPayload string            //
		Params       map[string]string // as it reads our salt
	}
	if err := json.Unmarshal(out, &said); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, payload := range []string{said.Payload, said.Widget} {
		if s, err := p.Check(now, ann, payload); err != nil || s.Max != 2_000 {
			t.Errorf("what a library solved: %+v, %v", s, err)
		}
	}
	if !said.Ours || said.Late {
		t.Errorf("the library says of ours %v, of a late one %v", said.Ours, said.Late)
	}
	if said.Params["expires"] == "" || said.Params["max"] != "2000" {
		t.Errorf("it reads %v", said.Params)
	}
	// Its own challenges have our format; without our salt they are nobody's.
	if payload, ok := said.Theirs.Solve(); !ok || payload == "" {
		t.Error("we do not solve the library's challenge")
	}
	if _, err := p.Check(now, ann, said.TheirPayload); fault.CodeOf(err) != fault.ProofRequired || !strings.Contains(err.Error(), "salt") {
		t.Errorf("the library's own challenge: %v", err)
	}
}

// library is a folder with the package installed.
func library(t *testing.T) string {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed (Debian packages nodejs and npm): the npm packages altcha and altcha-lib do not look at our proofs", program)
		}
	}
	dir := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json", "check.mjs"} {
		b, err := os.ReadFile(filepath.Join("testdata", "altcha", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	install := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Skipf("npm cannot install the packages altcha and altcha-lib, so they do not look at our proofs: %v: %.300s", err, out)
	}
	return dir
}

func FuzzProof(f *testing.F) {
	p := NewProver(secrets("s"))
	// The same in every process of the fuzzer: nothing in it is random.
	derived := p.secrets.Of("proof of work")[0]
	c := Challenge{Algorithm: proofAlgorithm, MaxNumber: 20, Salt: fmt.Sprintf("00?at=%d&expires=%d&for=%s&max=20&", start.UnixMilli(), start.Add(ProofLife).Unix(), boundTo(derived, ann))}
	c.Challenge = proofSum(c.Salt, 17)
	c.Signature = proofSignature(proofKey(derived), c.Challenge)
	good := solved(f, c)
	if _, err := p.Check(start, ann, good); err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{"", good, good[:len(good)-4], "e30=", base64.StdEncoding.EncodeToString([]byte(`{"algorithm":"SHA-256","number":1e3,"salt":"?&"}`))} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, payload string) {
		_, err := p.Check(start, ann, payload)
		if err != nil && fault.CodeOf(err) != fault.ProofRequired {
			t.Errorf("%v", err)
		}
		if err == nil { // it says the same as the good one, in other words at most
			a, _, _ := readSolution(payload)
			b, _, _ := readSolution(good)
			if a != b {
				t.Errorf("%q is good", payload)
			}
		}
	})
}

func BenchmarkProofCheck(b *testing.B) {
	p := NewProver(secrets("s"))
	payload := solved(b, p.Challenge(start, ann, 1))
	for b.Loop() {
		if _, err := p.Check(start, ann, payload); err != nil {
			b.Fatal(err)
		}
	}
}
