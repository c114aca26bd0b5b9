package config

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write golden files")

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "onsale.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func printed(t *testing.T, c Config) string {
	t.Helper()
	var b bytes.Buffer
	if err := c.Print(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test -update writes it); got\n%s", path, got)
	}
}

const full = `
listen: ":8443"
data: /var/lib/onsale
ledger:
  kind: postgres
  url: postgres://app:hunter2@db:5432/onsale?sslmode=verify-full&password=hunter2
  direct_url: postgres://app:hunter2@primary:5432/onsale
master_key_file: /etc/onsale/master.key
issuers:
  - name: https://accounts.example/
    audience: tickets
    algorithm: RS256
    typ: at+jwt
    jwks_url: https://accounts.example/keys
    leeway: 30s
  - {name: partner, audience: tickets, algorithm: EdDSA, pem_file: /etc/onsale/partner.pem}
log: {level: warn, format: json}
shutdown_grace: 1m
public_url: https://tickets.example
trusted_proxies: "10.0.0.0/8, 192.0.2.7, 2001:db8::/32"
sign_in_providers:
  - {name: corp, issuer: "https://idp.example", client_id: onsale, client_secret_file: /etc/onsale/corp, trust_email: true}
limits: {rate_customer: 7, rate_burst: 500ms}
`

func TestPrinted(t *testing.T) {
	defaults, err := Load(Sources{})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "defaults.yaml", printed(t, defaults))
	c, err := Load(Sources{File: write(t, full)})
	if err != nil {
		t.Fatal(err)
	}
	text := printed(t, c)
	golden(t, "full.yaml", text)
	if strings.Contains(text, "hunter2") {
		t.Error("a password was printed")
	}
	demo, err := Load(Sources{Flags: map[string]string{"demo": "true", "payment.sandbox.faults": "declined=0.1, lost_answer=0.02"},
		Env: []string{"ONSALE_MASTER_KEY=onsale-master-1:secret"}})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "demo.yaml", printed(t, demo))
}

func TestWhatIsPrintedIsReadAgain(t *testing.T) {
	c, err := Load(Sources{File: write(t, full)})
	if err != nil {
		t.Fatal(err)
	}
	again, err := Load(Sources{File: write(t, printed(t, c))})
	if err != nil {
		t.Fatal(err)
	}
	again.Ledger.URL, again.Ledger.DirectURL = c.Ledger.URL, c.Ledger.DirectURL // masked
	if !reflect.DeepEqual(c, again) {
		t.Errorf("%+v\nbecame\n%+v", c, again)
	}
}

func TestEveryFieldHasASetting(t *testing.T) {
	c, err := Load(Sources{File: write(t, full), Flags: map[string]string{}})
	if err != nil {
		t.Fatal(err)
	}
	var leaves func(v reflect.Value) int
	leaves = func(v reflect.Value) (n int) {
		if v.Kind() != reflect.Struct {
			return 1
		}
		for i := range v.NumField() {
			n += leaves(v.Field(i))
		}
		return n
	}
	if fields, rows := leaves(reflect.ValueOf(c)), len(c.settings()); fields != rows {
		t.Errorf("%d fields and %d settings", fields, rows)
	}
	for _, s := range c.settings() {
		if !strings.Contains(s.doc, "Defaults to ") {
			t.Errorf("%s does not say its default", s.key)
		}
		if s.fallback != "" && s.fallback != "false" && !strings.Contains(s.doc, s.fallback) {
			t.Errorf("%s says another default than %s: %s", s.key, s.fallback, s.doc)
		}
	}
}

func TestTheStrongerSourceWins(t *testing.T) {
	file := write(t, "listen: 127.0.0.1:1\nlog: {level: warn}\nshutdown_grace: 1s\ntimeouts:\n")
	c, err := Load(Sources{
		File:  file,
		Env:   []string{"ONSALE_LISTEN=127.0.0.1:2", "ONSALE_LOG_LEVEL=error", "PATH=/bin", "ONSALE_TEST_POSTGRES_URL=x", "ONSALE_CONFIG=y"},
		Flags: map[string]string{"listen": "127.0.0.1:3"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.Listen != "127.0.0.1:3" || c.Log.Level != "error" || c.ShutdownGrace != time.Second || c.Log.Format != "text" || c.Timeouts.Read != 15*time.Second {
		t.Errorf("%+v", c)
	}
}

func TestE1WhatIsForDemosStaysThere(t *testing.T) {
	for name, c := range map[string]struct {
		flags map[string]string
		want  string // "": accepted
	}{
		"demo":                    {map[string]string{"demo": "true"}, ""},
		"demo on localhost":       {map[string]string{"demo": "true", "listen": "localhost:80"}, ""},
		"demo on ::1":             {map[string]string{"demo": "true", "listen": "[::1]:80"}, ""},
		"demo everywhere":         {map[string]string{"demo": "true", "listen": ":8080"}, "or set demo_public if you mean it"},
		"demo on an address":      {map[string]string{"demo": "true", "listen": "10.0.0.1:8080"}, "or set demo_public if you mean it"},
		"demo by a name":          {map[string]string{"demo": "true", "listen": "localhost.example:80"}, "or set demo_public if you mean it"},
		"public demo":             {map[string]string{"demo": "true", "demo_public": "true", "listen": ":8080"}, ""},
		"public without demo":     {map[string]string{"demo_public": "true"}, "means nothing without demo"},
		"sandbox without demo":    {map[string]string{"payment.provider": "sandbox"}, "so it exists only with demo"},
		"throw-away to the world": {map[string]string{"throwaway_issuer": "true", "listen": ":80"}, "makes anybody anybody"},
		"throw-away at home":      {map[string]string{"throwaway_issuer": "true"}, ""},
		"faults without sandbox":  {map[string]string{"payment.sandbox.faults": "declined=0.5"}, "means nothing with payment.provider none"},
		"sandbox to the world":    {map[string]string{"demo": "true", "payment.sandbox.listen": ":1"}, "must be on a loopback interface"},
		"metrics to the world":    {map[string]string{"metrics_listen": ":9090"}, "what it tells is not for everybody"},
		"stripe without a key":    {map[string]string{"payment.provider": "stripe", "payment.stripe.webhook_secrets": "whsec_a"}, "payment.stripe.secret_key: is needed"},
		"stripe without a secret": {map[string]string{"payment.provider": "stripe", "payment.stripe.secret_key": "sk_live_a"}, "payment.stripe.webhook_secrets"},
		"stripe for nothing":      {map[string]string{"payment.provider": "none", "payment.stripe.secret_key": "sk_live_a"}, "means nothing with payment.provider none"},
		"mail from nobody":        {map[string]string{"mail.smtp.host": "mail.example"}, "mail.from: is needed"},
		"mail from nonsense":      {map[string]string{"mail.smtp.host": "mail.example", "mail.from": "tickets"}, "must be an address"},
		"half a sign-in":          {map[string]string{"mail.smtp.host": "mail.example", "mail.from": "a@b.example", "mail.smtp.user": "x"}, "goes with mail.smtp.user"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Load(Sources{Flags: c.flags})
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v; want %q", err, c.want)
			}
			if err == nil && got.Payment.Provider == "sandbox" && !got.Demo {
				t.Error("a sandbox without a demo")
			}
		})
	}
	plain, err := Load(Sources{})
	if err != nil {
		t.Fatal(err)
	}
	if err := plain.CheckServe(); err == nil || !strings.Contains(err.Error(), "name a mail server") {
		t.Errorf("a server that nobody can use: %v", err)
	}
	demo, err := Load(Sources{Flags: map[string]string{"demo": "true"}})
	if err != nil || demo.CheckServe() != nil || demo.Payment.Provider != "sandbox" || !demo.Throwaway {
		t.Errorf("%+v, %v", demo, err)
	}
}

func TestAllThatIsWrongIsSaidAtOnceWithSourceAndMend(t *testing.T) {
	path := write(t, `
listn: 127.0.0.1:1
log:
  level: loud
  colour: true
ledger: {kind: oracle}
shutdown_grace: 10
limits: {ledger_queue_max: 7}
issuers:
  - {name: a, audiense: b}
payment:
  sandbox:
    faults: {declined: 2}
master_key: "s3cret\u0001"
`)
	_, err := Load(Sources{File: path, Env: []string{"ONSALE_DEMO=yes", "ONSALE_LISTENN=x"}, Flags: map[string]string{"level": "x", "issuers": "x"}})
	var refused *Error
	if !errors.As(err, &refused) {
		t.Fatal(err)
	}
	for _, want := range []string{
		`listn (` + path + `:2): there is no such setting; `,
		`log.level (` + path + `:4): "loud" must be one of ["debug" "info" "warn" "error"]`,
		`log.colour (` + path + `:5): there is no such setting`,
		`ledger.kind (` + path + `:6): "oracle" must be one of`,
		`shutdown_grace (` + path + `:7): "10" must be a length of time from 0s to 10m, such as 90s or 2m`,
		`limits.ledger_queue_max (` + path + `:8): "7" must be a whole number from 1024 to 1000000`,
		`issuers[0].audiense (` + path + `:10): is not known; known are name, audience`,
		`payment.sandbox.faults (` + path + `:13): the rate of "declined" must be a number from 0 to 1`,
		`master_key (` + path + `:14): its value must not have control characters`,
		`demo (ONSALE_DEMO): "yes" must be true or false`,
		`ONSALE_LISTENN: no setting has this variable`,
		`level (--set level): there is no such setting; did you mean log.level?`,
		`issuers (--set issuers): "x" cannot be given here: write it into a file`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("missing %q in\n%v", want, err)
		}
	}
	if len(refused.Problems) != 13 {
		t.Errorf("%d problems, want 13:\n%v", len(refused.Problems), err)
	}
	if strings.Contains(err.Error(), "s3cret") {
		t.Error("a secret is in the error")
	}
}

func TestSettingsThatDoNotGoTogether(t *testing.T) {
	for name, c := range map[string]struct{ file, want string }{
		"url with sqlite":          {"ledger: {url: 'postgres://x'}", "ledger.url (FILE:1): means nothing with ledger.kind sqlite"},
		"postgres nowhere":         {"ledger: {kind: postgres}\nmaster_key_file: k", "ledger.url: is needed with ledger.kind postgres"},
		"postgres, no key":         {"ledger: {kind: postgres, url: 'postgres://x'}", "master_key_file: is needed with ledger.kind postgres"},
		"two keys":                 {"master_key_file: k\nmaster_key: x", "and master_key are both set"},
		"port":                     {"listen: localhost:99999", "listen (FILE:1): \"localhost:99999\" must be host:port"},
		"no port":                  {"listen: localhost", "must be host:port"},
		"issuer of nothing":        {"issuers: [{}]", "issuers[0] (FILE:1): audience is missing"},
		"two key sources":          {"issuers: [{name: a, audience: b, algorithm: EdDSA, jwks_file: x, pem_file: y}]", "has 2 of jwks_url, jwks_file and pem_file"},
		"no algorithm":             {"issuers: [{name: a, audience: b, algorithm: none, pem_file: y}]", `algorithm "none" must be one of`},
		"keys over http":           {"issuers: [{name: a, audience: b, algorithm: EdDSA, jwks_url: 'http://idp/'}]", "jwks_url must begin with https://"},
		"admission as issuer":      {"issuers: [{name: a, audience: b, algorithm: EdDSA, pem_file: y, typ: admission+jwt}]", "are no identities"},
		"issuer twice":             {"issuers: [{name: a, audience: b, algorithm: EdDSA, pem_file: y}, {name: a, audience: b, algorithm: EdDSA, pem_file: y}]", "is there twice"},
		"unknown fault":            {"demo: true\npayment: {sandbox: {faults: {explode: 0.1}}}", `fault "explode" is unknown`},
		"not YAML":                 {"a: [", "line 1"},
		"a list":                   {"- a", "must be settings"},
		"issuers as a word":        {"issuers: all", "must be a list"},
		"a public URL with a path": {"public_url: https://tickets.example/shop", "must be a scheme and a host alone"},
		"a public URL without":     {"public_url: tickets.example", "must be a scheme and a host alone"},
		"no network":               {"trusted_proxies: 10.0.0.0/33", "which is no network"},
		"a rate below nothing":     {"limits: {rate_customer: -1}", "must be a whole number from 0 to"},
		"a provider of nothing":    {"sign_in_providers: [{}]", "client_id is missing"},
		"a provider, no way back":  {"sign_in_providers: [{name: a, issuer: 'https://i', client_id: c}]", "needs public_url"},
		"a provider over http":     {"sign_in_providers: [{name: a, issuer: 'http://i', client_id: c}]", "must begin with https://"},
		"a provider twice":         {"public_url: https://t\nsign_in_providers: [{name: a, issuer: 'https://i', client_id: c}, {name: a, issuer: 'https://i', client_id: c}]", "is there twice"},
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, c.file)
			_, err := Load(Sources{File: path})
			if want := strings.ReplaceAll(c.want, "FILE", path); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v; want %q", err, want)
			}
		})
	}
	if _, err := Load(Sources{File: filepath.Join(t.TempDir(), "none.yaml")}); err == nil {
		t.Error("a file that is not there")
	}
	if _, err := Load(Sources{File: write(t, strings.Repeat("#", FileBytesMax+1))}); err == nil {
		t.Error("a file that is too large")
	}
	if c, err := Load(Sources{File: write(t, "# nothing\n")}); err != nil || c.Listen == "" {
		t.Errorf("an empty file: %v", err)
	}
}

func TestMasks(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "postgres://u:p@h:5432/d": "postgres://u:***@h:5432/d", "postgres://h/d": "postgres://h/d",
		"postgres://h/d?password=p": "postgres://h/d?***", "host=h password=p": "***", "postgres://u:p@h:port/d": "***",
	} {
		if got := maskURL(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
