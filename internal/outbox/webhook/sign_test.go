package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSignature has the example of the Standard Webhooks' own libraries.
func TestSignature(t *testing.T) {
	got, err := sign("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), `{"test": 2432232314}`)
	if err != nil || got != "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := sign("whsec_*", "a", time.Now(), ""); err == nil {
		t.Error("a secret that is none was used")
	}
}

// TestReceiversVerify checks our signatures with the npm package that receivers use.
func TestReceiversVerify(t *testing.T) {
	dir := verifier(t)
	now := time.Now()
	a, b, other := newSecret(), newSecret(), newSecret()
	body := `{"data":{"name":"极光 <&> \u0000"},"n":12345678901234567890}`
	both, err := Headers("msg_1_2", now, body, b, a)
	if err != nil {
		t.Fatal(err)
	}
	old, err := Headers("msg_1_2", now.Add(-time.Hour), body, a)
	if err != nil {
		t.Fatal(err)
	}
	var in bytes.Buffer
	want := []string{}
	ask := func(secret string, headers map[string]string, body, answer string) {
		if err := json.NewEncoder(&in).Encode(map[string]any{"secret": secret, "headers": headers, "body": body}); err != nil {
			t.Fatal(err)
		}
		want = append(want, answer)
	}
	ask(a, both, body, "ok")
	ask(b, both, body, "ok") // while the secret is rotated, both hold
	ask(other, both, body, "No matching signature found")
	ask(a, both, body+" ", "No matching signature found")
	ask(a, old, body, "Message timestamp too old")
	command := exec.Command("node", "verify.js")
	command.Dir, command.Stdin = dir, &in
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := strings.Split(strings.TrimSpace(string(out)), "\n"); strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// verifier is a folder with the package installed.
func verifier(t *testing.T) string {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed (Debian packages nodejs and npm): the npm package standardwebhooks does not look at our signatures", program)
		}
	}
	dir := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json", "verify.js"} {
		b, err := os.ReadFile(filepath.Join("testdata", "verify", name))
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
		t.Skipf("npm cannot install the package standardwebhooks, so it does not look at our signatures: %v: %.300s", err, out)
	}
	return dir
}
