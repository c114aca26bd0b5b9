// Package lint holds the rules of this repository that no ready-made linter knows: which package may
// import which.
//
// The one idea: the table below gives every package a place, and an import is good when the places
// allow it. A package without a place fails the test, so a new one is thought about once.
// Start reading at table.
package lint

import (
	"fmt"
	"slices"
	"strings"
)

// kind is what a package is for, as far as imports go.
type kind int

const (
	// domain packages hold the rules of selling. They import the standard library (but neither
	// net/http nor database/sql, not even through others) and domain packages of lower layers.
	domain kind = iota
	// adapter packages tie a port to something outside: a database, a provider, a file format. They import their
	// port, domain packages not above it, and whatever they adapt.
	adapter
	// ground packages know nothing of tickets: they import no other package of ours but ground.
	ground
	// surface packages show the domain to the outside over HTTP: all of the domain, no adapter.
	surface
	// observer packages look at the whole from beside it (audit, load, simulation): anything but app
	// and cmd; only app, cmd and other observers import them.
	observer
	// top packages build the whole: anything. Nobody but top imports them.
	top
	// testAid packages are imported by tests and by each other, never by what is sold.
	testAid
)

// place of a package.
type place struct {
	kind  kind
	layer int    // of a domain package: it imports lower ones only
	port  string // of an adapter
}

// table has the packages by their path below internal/. Layers follow DESIGN 10.
var table = map[string]place{
	"cache":         {kind: domain, layer: 0},
	"draw":          {kind: domain, layer: 1},
	"id":            {kind: domain, layer: 0},
	"keys":          {kind: domain, layer: 0},
	"fault":         {kind: domain, layer: 1},
	"identity":      {kind: domain, layer: 2},
	"payment":       {kind: domain, layer: 2},
	"presale":       {kind: domain, layer: 3},
	"ticket":        {kind: domain, layer: 2},
	"venue":         {kind: domain, layer: 2},
	"ledger":        {kind: domain, layer: 3},
	"ledger/decide": {kind: domain, layer: 4},
	"outbox":        {kind: domain, layer: 4},
	"catalog":       {kind: domain, layer: 5},
	"guard":         {kind: domain, layer: 3}, // its block lists write identity's audit log
	"inventory":     {kind: domain, layer: 6},
	"booking":       {kind: domain, layer: 7},
	"door":          {kind: domain, layer: 7},
	"waitingroom":   {kind: domain, layer: 7},

	"guard/picture": {kind: domain, layer: 4},

	"outbox/mail":    {kind: domain, layer: 5},
	"outbox/webhook": {kind: domain, layer: 5},

	"catalog/eventfile":   {kind: adapter, port: "catalog"},
	"catalog/importer":    {kind: adapter, port: "catalog"},
	"catalog/search":      {kind: adapter, port: "catalog"},
	"control":             {kind: adapter, port: "catalog"}, // and of identity and keys, which lie below it
	"guard/person":        {kind: adapter, port: "guard"},
	"guard/redis":         {kind: adapter, port: "guard"},
	"identity/jwks":       {kind: adapter, port: "identity"},
	"identity/oidc":       {kind: adapter, port: "identity"},
	"ledger/postgres":     {kind: adapter, port: "ledger/decide"},
	"ledger/sqlite":       {kind: adapter, port: "ledger/decide"},
	"outbox/mail/mailbox": {kind: adapter, port: "outbox/mail"},
	"outbox/mail/smtp":    {kind: adapter, port: "outbox/mail"},
	"outbox/webhook/post": {kind: adapter, port: "outbox/webhook"},
	"payment/instant":     {kind: adapter, port: "payment"},
	"payment/sandbox":     {kind: adapter, port: "payment"},
	"payment/stripe":      {kind: adapter, port: "payment"},

	"waitingroom/beacon":  {kind: adapter, port: "waitingroom"},
	"waitingroom/joinlog": {kind: adapter, port: "waitingroom"},
	"waitingroom/redis":   {kind: adapter, port: "waitingroom"},

	"disk":        {kind: ground},
	"fold":        {kind: ground},
	"lint":        {kind: ground},
	"pgserver":    {kind: ground},
	"redisclient": {kind: ground},
	"redisserver": {kind: ground},
	"sqlmigrate":  {kind: ground},

	"httpapi": {kind: surface},

	"audit":  {kind: observer},
	"backup": {kind: observer},
	"bench":  {kind: observer},
	"demo":   {kind: observer},
	"sim":    {kind: observer},

	"app":    {kind: top},
	"config": {kind: top},

	"httpapi/gen": {kind: top}, // a program of its own, for go generate

	"control/controltest": {kind: testAid},
	"keys/keystest":       {kind: testAid},
	"ledger/ledgertest":   {kind: testAid},
	"payment/paymenttest": {kind: testAid},

	"payment/stripe/stripetest":   {kind: testAid},
	"waitingroom/waitingroomtest": {kind: testAid},
}

// exceptions are single imports that the table would refuse, each with its reason.
var exceptions = []exception{
	{"control", "onsale/internal/waitingroom", "the log of joins is a port of the layer above the catalogue's; one adapter owns the control database's schema"},
	{"identity", "github.com/golang-jwt/jwt/v5", "reads and checks tokens: pure computation, the keys come through a port"},
	{"identity", "golang.org/x/net/idna", "spells domain names as DNS has them: pure computation"},
	{"outbox/mail", "github.com/bojanz/currency", "writes amounts as each currency is written: pure computation from tables"},
	{"waitingroom", "github.com/golang-jwt/jwt/v5", "signs and checks admission tokens: pure computation"},
	{"ticket", "github.com/skip2/go-qrcode", "draws the QR code: pure computation, nothing outside is touched"},
}

type exception struct{ from, to, why string }

// Package is what go list tells of a package.
type Package struct {
	ImportPath string
	Standard   bool
	Imports    []string
	Deps       []string // Imports and theirs, all the way down
}

const (
	module   = "onsale/"
	internal = module + "internal/"
)

// Check returns what is wrong with the imports of the module's packages, sorted; test files are free.
// The list must hold their dependencies too.
func Check(packages []Package) []string {
	c := checker{standard: map[string]bool{}}
	for _, p := range packages {
		c.standard[p.ImportPath] = p.Standard
	}
	for _, p := range packages {
		if strings.HasPrefix(p.ImportPath, module) {
			c.check(p)
		}
	}
	slices.Sort(c.faults)
	return c.faults
}

type checker struct {
	standard map[string]bool
	faults   []string
}

func (c *checker) errorf(format string, args ...any) {
	c.faults = append(c.faults, fmt.Sprintf(format, args...))
}

func (c *checker) check(p Package) {
	from, known := placeOf(p.ImportPath)
	if !known {
		c.errorf("%s has no place: add it to the table in internal/lint/imports.go", p.ImportPath)
		return
	}
	for _, to := range p.Imports {
		if isException(p.ImportPath, to) {
			continue
		}
		if !strings.HasPrefix(to, module) {
			if from.kind == domain && !c.standard[to] && to != "C" {
				c.errorf("%s imports %s: domain packages import only the standard library and each other", p.ImportPath, to)
			}
			continue
		}
		if target, ok := placeOf(to); ok { // else to is reported by itself
			if why := refuse(p.ImportPath, from, to, target); why != "" {
				c.errorf("%s imports %s: %s", p.ImportPath, to, why)
			}
		}
	}
	if from.kind == domain { // also through packages of the standard library, like expvar
		for _, banned := range []string{"net/http", "database/sql"} {
			if slices.Contains(p.Deps, banned) || slices.Contains(p.Imports, banned) {
				c.errorf("%s depends on %s: domain packages know neither HTTP nor databases", p.ImportPath, banned)
			}
		}
	}
}

// placeOf also places what lies outside internal/: the programs are top, helpers of the build ground.
func placeOf(path string) (place, bool) {
	switch {
	case strings.HasPrefix(path, module+"cmd/"):
		return place{kind: top}, true
	case strings.HasPrefix(path, module+"scripts/"):
		return place{kind: ground}, true
	case strings.HasPrefix(path, internal):
		p, ok := table[strings.TrimPrefix(path, internal)]
		return p, ok
	}
	return place{}, false
}

func isException(from, to string) bool {
	return slices.ContainsFunc(exceptions, func(e exception) bool { return internal+e.from == from && e.to == to })
}

// refuse says why one package of ours may not import another, or "".
func refuse(fromPath string, from place, toPath string, to place) string {
	switch from.kind {
	case top:
		return ""
	case ground:
		return unless(to.kind == ground, "ground packages know nothing of what is sold")
	case domain:
		switch {
		case to.kind != domain:
			return "domain packages import only the standard library and each other"
		default:
			return unless(to.layer < from.layer, "the table has it on the same or a higher layer")
		}
	case adapter:
		switch to.kind {
		case ground:
			return ""
		case domain:
			return unless(to.layer <= table[from.port].layer, "an adapter imports its port and what lies below it")
		default:
			return unless(to.kind == adapter && strings.HasPrefix(toPath, fromPath+"/"), "an adapter imports its port, not what uses or tests it")
		}
	case surface:
		return unless(to.kind == domain || to.kind == ground || to.kind == surface, "routes reach the rest through domain packages")
	case observer:
		return unless(to.kind != top && to.kind != testAid, "only cmd imports what builds the whole, and only tests what tests")
	default: // testAid
		return unless(to.kind != top, "only cmd imports what builds the whole")
	}
}

func unless(good bool, why string) string {
	if good {
		return ""
	}
	return why
}
