package guard

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/identity"
)

const browser = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

// known is a visit of a person: a browser that was here before.
func known(customer id.ID) Visit {
	return Visit{Event: 1, Customer: customer, Address: netip.MustParseAddr("198.51.100.7"), Agent: browser,
		Mark: DeviceMark{Device: Device{byte(customer), 1}, Since: start.Add(-time.Hour)}}
}

func TestDevices(t *testing.T) {
	d := NewDevices(secrets("s"))
	mark, cookie := d.New(start)
	for name, c := range map[string]struct {
		d      *Devices
		at     time.Time
		cookie string
		want   bool
	}{
		"at once":        {d, start, cookie, true},
		"in its life":    {d, start.Add(DeviceLife), cookie, true},
		"after it":       {d, start.Add(DeviceLife + time.Second), cookie, false},
		"before":         {d, start.Add(-deviceAhead - time.Second), cookie, false},
		"after rotation": {NewDevices(secrets("new", "s")), start, cookie, true},
		"forged":         {NewDevices(secrets("new")), start, cookie, false},
		"none":           {d, start, "", false},
		"changed":        {d, start, "B" + cookie[1:], false},
		"another mac":    {d, start, cookie[:len(cookie)-3] + "AAA", false},
	} {
		got, ok := c.d.Read(c.at, c.cookie)
		if ok != c.want || ok && got.Device != mark.Device {
			t.Errorf("%s: %v, %+v", name, ok, got)
		}
	}
	if mark.Renew(start.Add(DeviceRenew)) || !mark.Renew(start.Add(DeviceRenew+1)) {
		t.Error("renewed at another time")
	}
	if got, ok := ParseDevice(mark.Device.String()); !ok || got != mark.Device {
		t.Error("a device is not read as it is written")
	}
	if other, _ := d.New(start); other.Device == mark.Device {
		t.Error("two have one device")
	}
}

func FuzzDevice(f *testing.F) {
	d := NewDevices(secrets("s"))
	mark := DeviceMark{Device: Device{1, 2}, Since: start, Issued: start} // the same in every process of the fuzzer
	good := d.Cookie(mark)
	f.Add(good)
	f.Add("")
	f.Add(strings.Repeat("A", len(good)))
	f.Fuzz(func(t *testing.T, cookie string) {
		if m, ok := d.Read(start, cookie); ok && m.Device != mark.Device {
			t.Errorf("%q is a device", cookie)
		}
		d2, _ := ParseDevice(cookie)
		_ = d2.String()
	})
}

func TestScores(t *testing.T) {
	for name, c := range map[string]struct {
		s    Signals
		want Step
	}{
		"nothing":                            {Signals{}, Nothing},
		"a first visit":                      {Signals{NoDevice: true}, Nothing},
		"a busy address":                     {Signals{Heat: 1e9, AddressAccounts: 16}, Harder},
		"a busy address, first visit":        {Signals{Heat: 1e9, AddressAccounts: 16, NoDevice: true}, Harder},
		"a family's computer":                {Signals{DeviceAccounts: 2}, Nothing},
		"three accounts of a device":         {Signals{DeviceAccounts: 3}, Harder},
		"many accounts of a device":          {Signals{DeviceAccounts: 6}, Person},
		"a program":                          {Signals{Tool: true}, Harder},
		"a program, first visit, busy":       {Signals{Tool: true, NoDevice: true, Heat: 10}, Person},
		"a browser without a window":         {Signals{Headless: true}, Person},
		"a mistyped picture":                 {Signals{Replays: 1}, Nothing},
		"pictures tried again and again":     {Signals{Replays: 200, NoDevice: true, NoAgent: true}, Person},
		"a proof too fast":                   {Signals{ProofFast: true}, Harder},
		"a proof and a step too fast":        {Signals{ProofFast: true, StepFast: true}, Person},
		"everything is no more than the top": {Signals{Heat: 1e9, AddressAccounts: 16, DeviceAccounts: 16, NoDevice: true, NoAgent: true, Tool: true, Headless: true, ProofFast: true, StepFast: true, Replays: 255}, Person},
	} {
		if got := c.s.Step(); got != c.want || c.s.Score() > ScoreMax {
			t.Errorf("%s: %s at %d, want %s", name, got, c.s.Score(), c.want)
		}
	}
}

func TestWatch(t *testing.T) {
	w := NewWatch(start, WatchKeysDefault)
	for i := range 30 { // thirty people behind one address, each with a device
		v := known(id.ID(i + 1))
		if s := w.See(start, v); s.DeviceAccounts != 1 || s.Step() == Person {
			t.Fatalf("person %d: %+v", i, s)
		}
	}
	s := w.Look(start, known(99))
	if s.Heat != 3 || s.AddressAccounts != seenMax {
		t.Errorf("the address: %+v", s)
	}
	if again := w.Look(start, known(99)); again != s {
		t.Errorf("a look counts: %+v", again)
	}
	if cooled := w.Look(start.Add(heatHalf), known(99)); cooled.Heat < 1.4 || cooled.Heat > 1.6 {
		t.Errorf("after half the heat is gone: %v", cooled.Heat)
	}
	if back := w.Look(start.Add(-time.Hour), known(99)); back.Heat > 3 {
		t.Errorf("a clock that goes back makes heat %v", back.Heat)
	}
	// Eight accounts on one device are one machine's; the same account eight times is a person's.
	for i := range 8 {
		v := known(1)
		v.Customer, v.Address = id.ID(100+i), netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})
		s = w.See(start, v)
	}
	if s.DeviceAccounts != 9 || s.Step() != Person {
		t.Errorf("nine accounts: %+v", s)
	}
	for range 8 {
		v := known(2)
		v.Address = netip.MustParseAddr("10.1.1.1")
		s = w.See(start, v)
	}
	if s.DeviceAccounts != 1 || s.Step() != Nothing {
		t.Errorf("one account, again and again: %+v", s)
	}
	if later := w.Look(start.Add(seenFor+time.Hour), known(1)); later.DeviceAccounts != 1 {
		t.Errorf("a day later: %+v", later)
	}
	for agent, want := range map[string]Signals{
		browser: {}, "": {NoAgent: true}, "curl/8.1": {Tool: true}, "python-requests/2": {Tool: true}, "Mozilla/5.0 HeadlessChrome/120": {Headless: true},
		strings.Repeat("x", 10_000) + "curl/": {},
	} {
		if got := agentSignals(agent); got != want {
			t.Errorf("%.40q: %+v", agent, got)
		}
	}
}

// Memory is bounded, and who comes all the time is not forgotten.
func TestWatchIsBounded(t *testing.T) {
	const keys = 4 * shards
	w := NewWatch(start, keys)
	regular := known(1)
	for i := range 50_000 {
		w.See(start, Visit{Event: 1, Customer: id.ID(i), Address: netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), Mark: DeviceMark{Device: Device{byte(i), byte(i >> 8), byte(i >> 16), 9}}})
		if s := w.See(start, regular); i > 100 && s.Heat < 10 {
			t.Fatalf("the regular is forgotten after %d", i)
		}
	}
	for kind := range w.records {
		n := 0
		for i := range w.records[kind] {
			p := &w.records[kind][i]
			if n += len(p.all); len(p.at) != len(p.all) {
				t.Errorf("%d keys of %d records", len(p.at), len(p.all))
			}
		}
		if n > keys {
			t.Errorf("%d records, at most %d", n, keys)
		}
	}
}

// provider is a PersonCheck that knows one answer.
type provider struct {
	name, right string
	away        bool
	asked       int
}

func (p *provider) Name() string                   { return p.name }
func (p *provider) Ask(time.Time, Bind) PersonTask { return PersonTask{Provider: p.name} }
func (p *provider) Check(_ context.Context, _ time.Time, _ Bind, _ netip.Addr, a PersonAnswer) error {
	p.asked++
	switch {
	case p.away:
		return fmt.Errorf("%w: test", ErrAway)
	case a.Answer != p.right:
		return fault.New(fault.PersonRequired, "wrong")
	}
	return nil
}

// A provider that is away lets nobody in; people get the built-in check until it has rested.
func TestProviderAway(t *testing.T) {
	outside, inside := &provider{name: "turnstile", right: "x"}, &provider{name: "picture", right: "y"}
	failures := 0
	p := &Persons{First: outside, Fallback: inside, Failed: func(error) { failures++ }}
	check := func(provider, answer string) error {
		return p.Check(t.Context(), start, ann, netip.Addr{}, PersonAnswer{Provider: provider, Answer: answer})
	}
	if p.Ask(start, ann).Provider != "turnstile" || check("turnstile", "x") != nil || check("turnstile", "z") == nil || check("other", "x") == nil {
		t.Error("the provider is not asked as it should be")
	}
	outside.away = true
	if err := check("turnstile", "x"); fault.CodeOf(err) != fault.PersonRequired || failures != 1 {
		t.Errorf("%v, %d failures", err, failures)
	}
	if p.Ask(start, ann).Provider != "picture" || check("picture", "y") != nil {
		t.Error("the built-in check does not stand in")
	}
	if p.Ask(start.Add(PersonRest), ann).Provider != "turnstile" {
		t.Error("after the rest the provider is not asked again")
	}
	asked := outside.asked
	if err := p.Check(t.Context(), start, ann, netip.Addr{}, PersonAnswer{Provider: "turnstile", Token: strings.Repeat("x", PersonBytesMax+1)}); err == nil || outside.asked != asked {
		t.Error("a token that is too long is sent on")
	}
}

func TestPasses(t *testing.T) {
	p := NewPasses(secrets("s"))
	pass := p.Issue(start, ann)
	for name, c := range map[string]struct {
		p    *Passes
		at   time.Time
		b    Bind
		pass string
		want bool
	}{
		"at once": {p, start, ann, pass, true}, "late": {p, start.Add(PassLife), ann, pass, false}, "another's": {p, start, bob, pass, false},
		"another event": {p, start, Bind{2, ann.Subject}, pass, false}, "rotated": {NewPasses(secrets("n", "s")), start, ann, pass, true},
		"forged": {NewPasses(secrets("n")), start, ann, pass, false}, "none": {p, start, ann, "", false}, "changed": {p, start, ann, "B" + pass[1:], false},
		"long before": {p, start.Add(-time.Hour), ann, pass, false},
	} {
		if got := c.p.Good(c.at, c.b, c.pass); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func FuzzPass(f *testing.F) {
	p := NewPasses(secrets("s"))
	good := p.Issue(start, ann)
	f.Add(good)
	f.Add("")
	f.Fuzz(func(t *testing.T, pass string) {
		if p.Good(start, ann, pass) && pass != good {
			t.Errorf("%q is good", pass)
		}
	})
}

// memory is a BlockStore and an EvidenceStore.
type memory struct {
	mu       sync.Mutex
	blocks   []Block
	version  int64
	evidence []OrderEvidence
	err      error
	reads    int
	entries  []identity.Entry
}

func (m *memory) AddBlock(_ context.Context, b Block, max int, e identity.Entry) (Block, error) {
	if len(m.blocks) >= max {
		return Block{}, ErrTooManyBlocks
	}
	m.blocks, m.version, m.entries = append(m.blocks, b), m.version+1, append(m.entries, e)
	return b, m.err
}

func (m *memory) RemoveBlock(_ context.Context, organizer, number id.ID, e identity.Entry) error {
	n := len(m.blocks)
	m.blocks = slices.DeleteFunc(m.blocks, func(b Block) bool { return b.ID == number && b.Organizer == organizer })
	if len(m.blocks) == n {
		return ErrNoBlock
	}
	m.version, m.entries = m.version+1, append(m.entries, e)
	return nil
}

func (m *memory) BlocksOf(context.Context, id.ID, id.ID, time.Time, int) ([]Block, error) {
	return m.blocks, m.err
}

func (m *memory) AllBlocks(context.Context, time.Time) ([]Block, error) {
	m.reads++
	return m.blocks, m.err
}
func (m *memory) BlocksVersion(context.Context) (int64, error)               { return m.version, m.err }
func (m *memory) PruneBlocks(context.Context, time.Time, int) (int, error)   { return 0, m.err }
func (m *memory) PruneEvidence(context.Context, time.Time, int) (int, error) { return 0, m.err }
func (m *memory) Evidence(context.Context, id.ID) (OrderEvidence, error) {
	return OrderEvidence{}, ErrNoEvidence
}
func (m *memory) PutEvidence(_ context.Context, all []OrderEvidence) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.evidence = append(m.evidence, all...)
	return m.err
}
func (m *memory) EvidenceOf(context.Context, id.ID, int, id.ID, int) ([]OrderEvidence, error) {
	return m.evidence, m.err
}

func newBlocks(m *memory) *Blocks {
	ids := id.NewGenerator(1, func() time.Time { return start }, 0, nil)
	return NewBlocks(m, func() (id.ID, error) { return ids.Next(0) }, func() time.Time { return start })
}

func TestBlocks(t *testing.T) {
	m := &memory{}
	b := newBlocks(m)
	add := func(organizer id.ID, kind, target string) {
		t.Helper()
		block := Block{Organizer: organizer, Kind: kind, Reason: "bots", Until: start.Add(time.Hour)}
		if err := block.ParseTarget(target); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Add(t.Context(), block, identity.Entry{Actor: 5, Role: identity.Owner}); err != nil {
			t.Fatal(err)
		}
	}
	device := Device{1, 2}
	add(1, BlockNetwork, "203.0.113.0/24")
	add(1, BlockNetwork, "2001:db8::/48")
	add(0, BlockNetwork, "192.0.2.7")
	add(1, BlockCustomer, id.ID(77).Text(id.Customer))
	add(1, BlockDevice, device.String())
	is := func(organizer, customer id.ID, d Device, address string) bool {
		return b.Blocked(start, organizer, customer, d, netip.MustParseAddr(address))
	}
	if is(1, 77, device, "203.0.113.9") {
		t.Error("blocked before the lists were read")
	}
	if err := b.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ got, want bool }{
		"a network": {is(1, 0, Device{}, "203.0.113.9"), true}, "beside it": {is(1, 0, Device{}, "203.0.114.9"), false}, "written as IPv6": {is(1, 0, Device{}, "::ffff:203.0.113.9"), true},
		"IPv6": {is(1, 0, Device{}, "2001:db8:0:1::9"), true}, "beside IPv6": {is(1, 0, Device{}, "2001:db8:1::9"), false}, "with a zone": {is(1, 0, Device{}, "2001:db8::9%eth0"), true},
		"another organizer's": {is(2, 77, device, "203.0.113.9"), false}, "everywhere": {is(2, 0, Device{}, "192.0.2.7"), true},
		"a customer": {is(1, 77, Device{}, "198.51.100.1"), true}, "another": {is(1, 78, Device{}, "198.51.100.1"), false}, "a device": {is(1, 0, device, "198.51.100.1"), true},
		"after its end": {b.Blocked(start.Add(time.Hour), 1, 77, device, netip.MustParseAddr("203.0.113.9")), false}, "no address": {b.Blocked(start, 1, 0, Device{}, netip.Addr{}), false},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v", name, c.got)
		}
	}
	for _, e := range m.entries {
		if e.Action != "block.add" || e.Actor != 5 || e.ID == 0 || e.At.IsZero() || strings.Contains(fmt.Sprint(e), "203.0") {
			t.Errorf("the log has %+v", e)
		}
	}
	// Nothing changed: nothing is read. Away: as it was.
	reads := m.reads
	for range 3 {
		if err := b.Refresh(t.Context()); err != nil {
			t.Error(err)
		}
	}
	m.err = errors.New("away")
	if err := b.Refresh(t.Context()); err == nil || m.reads != reads || !is(1, 77, Device{}, "198.51.100.1") {
		t.Errorf("%v, %d reads", err, m.reads-reads)
	}
	m.err = nil
	if err := b.Remove(t.Context(), 2, m.blocks[3].ID, identity.Entry{}); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("another's is removed: %v", err)
	}
	if err := b.Remove(t.Context(), 1, m.blocks[3].ID, identity.Entry{}); err != nil {
		t.Error(err)
	}
	if err := b.Refresh(t.Context()); err != nil || is(1, 77, Device{}, "198.51.100.1") {
		t.Errorf("still blocked: %v", err)
	}
}

func TestBlocksAreChecked(t *testing.T) {
	b := newBlocks(&memory{})
	for name, c := range map[string]struct {
		kind, target, reason string
		until                time.Duration
		want                 string
	}{
		"no end": {BlockNetwork, "10.0.0.1", "x", 0, "until"}, "too long": {BlockNetwork, "10.0.0.1", "x", BlockLifeMax + time.Second, "until"},
		"no reason": {BlockNetwork, "10.0.0.1", " ", time.Hour, "reason"}, "a long reason": {BlockNetwork, "10.0.0.1", strings.Repeat("x", 501), time.Hour, "reason"},
		"a country": {BlockNetwork, "10.0.0.0/8", "x", time.Hour, "target"}, "all of IPv6": {BlockNetwork, "2001::/16", "x", time.Hour, "target"}, "no network": {BlockNetwork, "ten", "x", time.Hour, "target"},
		"no customer": {BlockCustomer, "", "x", time.Hour, "target"}, "no device": {BlockDevice, "00", "x", time.Hour, "target"}, "no kind": {"planet", "x", "x", time.Hour, "kind"},
		"mapped": {BlockNetwork, "::ffff:10.0.0.0/104", "x", time.Hour, "target"},
	} {
		block := Block{Kind: c.kind, Reason: c.reason, Until: start.Add(c.until)}
		err := block.ParseTarget(c.target)
		if err == nil {
			_, err = b.Add(t.Context(), block, identity.Entry{})
		}
		if f := fault.Of(err); f == nil || f.Code != fault.Invalid || f.Field != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzTarget(f *testing.F) {
	for _, s := range []string{"10.0.0.1", "10.0.0.0/8", "::1", "::ffff:1.2.3.4/120", "fe80::1%eth0", "cus_0000000000001", "0102", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, kind := range []string{BlockNetwork, BlockCustomer, BlockDevice} {
			b := Block{Kind: kind}
			if b.ParseTarget(text) != nil {
				continue
			}
			again := Block{Kind: kind}
			if err := again.ParseTarget(b.Target()); err != nil || again != b {
				t.Errorf("%q is %q, which is %+v, %v", text, b.Target(), again, err)
			}
		}
	})
}

func TestEvidenceText(t *testing.T) {
	g := NewGate(GateOptions{Secrets: secrets("s"), Now: start})
	e := g.Seen(start, known(1))
	text, err := e.Text()
	if err != nil || strings.Contains(text, "198.51") || strings.Contains(text, known(1).Mark.Device.String()) {
		t.Errorf("%s, %v", text, err)
	}
	if got, err := ParseEvidence(text); err != nil || !reflect.DeepEqual(got, e) {
		t.Errorf("%+v, %v", got, err)
	}
	other := known(1)
	other.Event = 2
	if o := g.Seen(start, other); o.Address == e.Address || o.Device == e.Device {
		t.Error("the same address has one mark at two events")
	}
	for _, bad := range []string{"", "{}", `{"version":1,"score":101}`, `{"version":0}`, strings.Repeat(" ", EvidenceBytesMax+1)} {
		if _, err := ParseEvidence(bad); err == nil {
			t.Errorf("%.20q is read", bad)
		}
	}
}

func FuzzEvidence(f *testing.F) {
	f.Add(`{"version":1,"score":10,"step":"none","signals":{"heat":1.5}}`)
	f.Add(`{"version":9e9}`)
	f.Fuzz(func(t *testing.T, text string) {
		e, err := ParseEvidence(text)
		if err == nil && (e.Score < 0 || e.Score > ScoreMax) {
			t.Errorf("%+v", e)
		}
	})
}

// No order waits for its evidence: beyond a bound it is let go of, and told.
func TestRecorder(t *testing.T) {
	m := &memory{}
	lost := 0
	r := NewRecorder(m, func(n int, _ error) { lost += n })
	for i := range EvidenceWaitMax + 3 {
		r.Record(OrderEvidence{Order: id.ID(i)})
	}
	if lost != 3 {
		t.Errorf("%d let go of, want 3", lost)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.Run(ctx) // what still waits is written at the end
	if len(m.evidence) != EvidenceWaitMax || lost != 3 {
		t.Errorf("%d written, %d lost", len(m.evidence), lost)
	}
	m.err = errors.New("away")
	r.Record(OrderEvidence{})
	r.Run(ctx)
	if lost != 4 {
		t.Errorf("%d lost", lost)
	}
}

// The gate, from the outside.
func TestJoin(t *testing.T) {
	m := &memory{}
	blocks := newBlocks(m)
	person := &provider{name: "picture", right: "y"}
	gate := func(difficulty int) *Gate {
		return NewGate(GateOptions{Secrets: secrets("s"), Blocks: blocks, Persons: &Persons{Fallback: person}, Difficulty: difficulty, Now: start})
	}
	robot := known(3)
	robot.Agent = "HeadlessChrome"
	right := &PersonAnswer{Provider: "picture", Answer: "y"}
	for name, c := range map[string]struct {
		visit  Visit
		ask    Visit // who solved the proof
		person *PersonAnswer
		want   fault.Code
		askFor bool // a person
	}{
		"a person":                   {known(1), known(1), nil, "", false},
		"with another's proof":       {known(1), known(2), nil, fault.ProofRequired, false},
		"a robot":                    {robot, robot, nil, fault.PersonRequired, true},
		"a robot with a person":      {robot, robot, right, "", true},
		"a robot with a wrong one":   {robot, robot, &PersonAnswer{Provider: "picture", Answer: "z"}, fault.PersonRequired, true},
		"a robot with an easy proof": {robot, known(3), right, fault.ProofRequired, false},
	} {
		g := gate(8)
		asked := g.Ask(start, c.ask)
		if (asked.Person != nil) != c.askFor {
			t.Errorf("%s: asked %+v", name, asked)
		}
		b := Brought{Proof: solved(t, asked.Proof), Person: c.person}
		p, err := g.Join(t.Context(), start.Add(time.Second), 1, c.visit, b)
		if fault.CodeOf(err) != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if err != nil {
			continue
		}
		// Again with the same proof: let in again; a person is not asked twice.
		b.Pass, b.Person = p.Pass, nil
		if _, err := g.Join(t.Context(), start.Add(time.Minute), 1, c.visit, b); err != nil {
			t.Errorf("%s, again: %v", name, err)
		}
		if (p.Pass != "") != c.askFor {
			t.Errorf("%s: pass %q", name, p.Pass)
		}
	}
	// Control: a gate that asks nobody lets the robot in.
	g := NewGate(GateOptions{Secrets: secrets("s"), Difficulty: 1, Now: start})
	if _, err := g.Join(t.Context(), start, 1, robot, Brought{Proof: solved(t, g.Ask(start, robot).Proof)}); err != nil {
		t.Errorf("control: %v", err)
	}
	if got := g.Ask(start, robot).Proof.MaxNumber; got != 1 {
		t.Errorf("difficulty %d for simulators", got)
	}

	block := Block{Organizer: 1, Kind: BlockCustomer, Customer: 1, Reason: "x", Until: start.Add(time.Hour)}
	if _, err := blocks.Add(t.Context(), block, identity.Entry{}); err != nil {
		t.Fatal(err)
	}
	if err := blocks.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	g = gate(8)
	proof := solved(t, g.Ask(start, known(1)).Proof)
	if _, err := g.Join(t.Context(), start.Add(time.Second), 1, known(1), Brought{Proof: proof}); fault.CodeOf(err) != fault.Blocked {
		t.Errorf("blocked: %v", err)
	}
	if _, err := g.Join(t.Context(), start.Add(time.Second), 2, known(1), Brought{Proof: proof}); err != nil {
		t.Errorf("at another organizer: %v", err)
	}
	g.SetLoad(1)
	if got := g.Ask(start, known(5)).Proof.MaxNumber; got != 32 {
		t.Errorf("under load MaxNumber is %d, want 32", got)
	}
}
