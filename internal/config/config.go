// Package config is the program's configuration as a value: defaults, then a YAML file, then ONSALE_* variables, then
// flags, all of it checked at once, then frozen and printed by `onsale config`.
//
// The one idea: one table (settings.go) says of every setting its key, what it means and where its value goes. The file's
// keys, the variables' names, the printed text and the errors all come from it, so none can be missing or differ; and a
// value always knows where it came from (a line, a variable, a flag), so that an error can name it.
//
// Start reading at Load, then settings.go.
package config

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"sort"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// FileBytesMax bounds a configuration file.
const FileBytesMax = 1 << 20

// A Config is all settings. What each means, its unit, special values and default is in settings.go, beside its key.
type Config struct {
	Listen         string
	MetricsListen  string
	PublicURL      string
	TrustedProxies []netip.Prefix
	Data           string
	Demo           bool
	DemoPublic     bool
	Ledger         Ledger
	Redis          Redis
	MasterKey      string // secret
	MasterKeyFile  string
	Issuers        []Issuer
	Providers      []Provider
	Throwaway      bool
	Payment        Payment
	Mail           Mail
	WebhooksTo     []netip.Prefix
	Room           Room
	Limits         Limits
	Timeouts       Timeouts
	Log            Log
	ShutdownGrace  time.Duration
}

// Ledger is which database keeps everything.
type Ledger struct {
	Kind      string // "sqlite" or "postgres"
	URL       string // secret
	DirectURL string // secret
}

// Redis is what the nodes of an installation share beside the databases; without addresses there is one node.
type Redis struct {
	Addresses        []string
	Username         string
	Password         string // secret
	SentinelMaster   string
	SentinelPassword string // secret
	Cluster          bool
	TLS              bool
}

// An Issuer is somebody whose word on who a customer is the operator takes.
type Issuer struct {
	Name       string
	Audience   string
	Algorithm  string
	Typ        string
	JWKSURL    string
	JWKSFile   string
	PEMFile    string
	Leeway     time.Duration
	TrustEmail bool
}

// A Provider is an OpenID Connect provider where people may sign in.
type Provider struct {
	Name             string
	Issuer           string
	ClientID         string
	ClientSecretFile string
	Algorithm        string
	TrustEmail       bool
}

// Payment is who moves the money.
type Payment struct {
	Provider       string // "stripe", "sandbox" or "none"; "" until Load has decided
	Mode           string // "authorize" or "charge"
	AttemptTimeout time.Duration
	RecoverAfter   time.Duration
	Stripe         Stripe
	Sandbox        Sandbox
}

// Stripe is an account there.
type Stripe struct {
	SecretKey      string // secret
	WebhookSecrets string // secret; commas between
	Account        string
	SharedAccount  bool
	House          string
	ReturnURL      string
}

// Mail is how mails go out.
type Mail struct {
	Name    string
	From    string
	ReplyTo string
	SMTP    SMTP
}

// SMTP is the server that takes them.
type SMTP struct {
	Host       string
	Port       int
	Encryption string
	User       string
	Password   string // secret
}

// Sandbox is the built-in provider's behaviour.
type Sandbox struct {
	Listen string
	Seed   uint64
	Faults []FaultRate
}

// A FaultRate is how often a fault meets an order.
type FaultRate struct {
	Fault string
	Rate  float64
}

// Limits bound what waits (I13).
type Limits struct {
	LedgerQueueMax  int
	PaymentTalksMax int
	SubscribersMax  int

	RateCustomer int
	RateSale     int
	RateQueue    int
	RateSignIn   int
	RateCheck    int
	RateEvent    int
	RateStaff    int
	RateAddress  int
	RateSite     int
	RateBurst    time.Duration
	RateKeysMax  int
}

// Timeouts bound how long a connection may take.
type Timeouts struct {
	Read time.Duration
	Idle time.Duration
}

// Log is what is logged and how.
type Log struct {
	Level  string
	Format string
}

// Sources are where settings come from besides the defaults, each stronger than the one before.
type Sources struct {
	File  string            // path of the YAML file; "": none
	Env   []string          // NAME=value, as os.Environ; only names that begin with ONSALE_ are looked at
	Flags map[string]string // by key, as written
}

// A Problem is one thing that is wrong with a setting.
type Problem struct {
	Key    string // "ledger.url"
	Source string // "onsale.yaml:12", "ONSALE_LEDGER_URL", "--postgres"; "" for a default
	Text   string // what is wrong and how to mend it
}

func (p Problem) String() string {
	if p.Source == "" {
		return p.Key + ": " + p.Text
	}
	return fmt.Sprintf("%s (%s): %s", p.Key, p.Source, p.Text)
}

// An Error holds all that is wrong.
type Error struct{ Problems []Problem }

func (e *Error) Error() string {
	lines := make([]string, 0, len(e.Problems))
	for _, p := range e.Problems {
		lines = append(lines, p.String())
	}
	return "the configuration is refused:\n  " + strings.Join(lines, "\n  ")
}

// flagOf is how the command line gives a setting.
func flagOf(key string) string {
	switch key {
	case "listen", "metrics_listen", "data", "demo", "demo_public":
		return "--" + strings.ReplaceAll(key, "_", "-")
	case "ledger.kind":
		return "--ledger"
	case "ledger.url":
		return "--postgres"
	}
	return "--set " + key
}

// Load reads, checks and freezes. What is wrong is an *Error with all of it.
func Load(from Sources) (Config, error) {
	l := &loader{sources: map[string]string{}}
	l.settings = l.config.settings()
	for _, s := range l.settings {
		if err := s.set(s.fallback); err != nil {
			panic(fmt.Sprintf("config: the default of %s: %v", s.key, err))
		}
	}
	l.file(from.File)
	l.env(from.Env)
	for _, key := range sortedKeys(from.Flags) {
		l.set(key, from.Flags[key], flagOf(key))
	}
	if len(l.problems) == 0 {
		l.decide()
		l.check()
	}
	if len(l.problems) > 0 {
		return Config{}, &Error{Problems: l.problems}
	}
	return l.config, nil
}

type loader struct {
	config   Config
	settings []setting
	sources  map[string]string // by key: where its value came from
	problems []Problem
}

func (l *loader) add(key, format string, args ...any) {
	l.problems = append(l.problems, Problem{Key: key, Source: l.sources[key], Text: fmt.Sprintf(format, args...)})
}

func (l *loader) find(key string) *setting {
	for i := range l.settings {
		if l.settings[i].key == key {
			return &l.settings[i]
		}
	}
	return nil
}

func (l *loader) set(key, text, source string) {
	s := l.find(key)
	if s == nil {
		l.problems = append(l.problems, Problem{Key: key, Source: source, Text: "there is no such setting; " + l.near(key)})
		return
	}
	l.sources[key] = source
	if err := s.set(strings.TrimSpace(text)); err != nil {
		shown := fmt.Sprintf("%.80q", text)
		if s.mask != nil {
			shown = "its value"
		}
		l.add(key, "%s %s", shown, err)
	}
}

// otherVariables begin with ONSALE_ and are no settings of the server.
var otherVariables = []string{"ONSALE_CONFIG", "ONSALE_TEST_", "ONSALE_BENCH_", "ONSALE_REAL_DATA"}

func (l *loader) env(environment []string) {
	names := map[string]string{}
	for _, s := range l.settings {
		names[variable(s.key)] = s.key
	}
	for _, entry := range environment {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, "ONSALE_") || slices.ContainsFunc(otherVariables, func(p string) bool { return strings.HasPrefix(name, p) }) {
			continue
		}
		key, known := names[name]
		if !known {
			l.problems = append(l.problems, Problem{Key: name, Text: "no setting has this variable; run `onsale config` to see them all"})
			continue
		}
		l.set(key, value, name)
	}
}

// variable is the name of the environment variable of a key.
func variable(key string) string {
	return "ONSALE_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// near names settings that may have been meant.
func (l *loader) near(key string) string {
	last := key[strings.LastIndex(key, ".")+1:]
	var close []string
	for _, s := range l.settings {
		if strings.HasSuffix(s.key, last) || strings.HasPrefix(s.key, key) {
			close = append(close, s.key)
		}
	}
	if len(close) == 0 {
		return "run `onsale config` to see them all"
	}
	return "did you mean " + strings.Join(close, " or ") + "?"
}

func (l *loader) file(path string) {
	if path == "" {
		return
	}
	fail := func(err error) {
		l.problems = append(l.problems, Problem{Key: "file", Source: path, Text: err.Error()})
	}
	info, err := os.Stat(path)
	if err != nil {
		fail(err)
		return
	}
	if info.Size() > FileBytesMax {
		fail(fmt.Errorf("has %d bytes; at most %d are possible", info.Size(), FileBytesMax))
		return
	}
	data, err := os.ReadFile(path)
	if err != nil {
		fail(err)
		return
	}
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		fail(errors.New(strings.TrimPrefix(err.Error(), "yaml: ")))
		return
	}
	if len(document.Content) == 1 { // else it is empty
		l.node(path, "", document.Content[0])
	}
}

// node takes the settings below a node of the file.
func (l *loader) node(path, key string, n *yaml.Node) {
	source := fmt.Sprintf("%s:%d", path, n.Line)
	if s := l.find(key); s != nil && s.node != nil {
		l.sources[key] = source
		s.node(l, source, n)
		return
	}
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
	case n.Kind == yaml.ScalarNode && key != "":
		l.set(key, n.Value, source)
	case n.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			child := strings.TrimPrefix(key+"."+n.Content[i].Value, ".")
			if !l.leads(child) {
				l.problems = append(l.problems, Problem{Key: child, Source: fmt.Sprintf("%s:%d", path, n.Content[i].Line),
					Text: "there is no such setting; " + l.near(child)})
				continue
			}
			l.node(path, child, n.Content[i+1])
		}
	default:
		l.problems = append(l.problems, Problem{Key: cmpOr(key, "file"), Source: source, Text: "must be settings, as `onsale config` prints them"})
	}
}

// leads says whether a key is a setting or the beginning of one.
func (l *loader) leads(key string) bool {
	return slices.ContainsFunc(l.settings, func(s setting) bool { return s.key == key || strings.HasPrefix(s.key, key+".") })
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
