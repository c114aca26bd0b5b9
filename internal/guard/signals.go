package guard

import (
	"hash/maphash"
	"math"
	"net/netip"
	"strings"
	"sync"
	"time"

	"onsale/internal/id"
)

// Bounds of what is remembered for evidence.
const (
	WatchKeysDefault = 100_000         // addresses, and as many devices
	heatHalf         = 5 * time.Minute // in which half of an address's heat is gone
	seenMax          = 16              // accounts told apart, of one address or device
	seenFor          = 24 * time.Hour  // without a visit; then they are forgotten
	heatUsual        = 10              // joins of one address within a few minutes that nobody wonders about
	enterToHold      = 400 * time.Millisecond
	holdToPay        = time.Second
	agentBytesMax    = 512
)

// A Move is what somebody does where evidence is gathered.
type Move uint8

// The moves.
const (
	Joins Move = iota // a line
	Holds             // seats, after entering
	Pays              // for a hold
)

// A Visit is one of them.
type Visit struct {
	Event    id.ID
	Customer id.ID      // 0: not signed in
	Mark     DeviceMark // of the device cookie; the zero value where there was none
	Address  netip.Addr
	Agent    string // User-Agent, and Sec-CH-UA behind it
	Move     Move
	Since    time.Duration // since the step before it: entering before Holds, the hold before Pays; 0 where it is not known
}

// Bind is for whom and what the visit's proofs hold.
func (v Visit) Bind() Bind {
	return Bind{Event: v.Event, Subject: SubjectOf(v.Customer, v.Mark.Device)}
}

// Signals are the evidence of a request. Each alone has an innocent reason; see Score.
type Signals struct {
	Heat            float64 `json:"heat,omitempty"`             // joins of the address lately over what is usual for one
	AddressAccounts int     `json:"address_accounts,omitempty"` // told apart up to 16
	DeviceAccounts  int     `json:"device_accounts,omitempty"`
	NoDevice        bool    `json:"no_device,omitempty"`  // no cookie came back that we gave out
	NoAgent         bool    `json:"no_agent,omitempty"`   // no User-Agent
	Tool            bool    `json:"tool,omitempty"`       // the User-Agent of a program that is no browser
	Headless        bool    `json:"headless,omitempty"`   // of a browser without a window
	ProofFast       bool    `json:"proof_fast,omitempty"` // the proof of work was solved faster than a page can
	StepFast        bool    `json:"step_fast,omitempty"`  // a step followed faster than a person can
	Replays         int     `json:"replays,omitempty"`    // used or wrong answers to person checks, of the address and device
}

// A Step is what is asked for because of signals.
type Step uint8

// The steps.
const (
	Nothing Step = iota // the usual proof of work
	Harder              // a harder one
	Person              // to show that a person is there
)

// String is the step's word.
func (s Step) String() string {
	return [...]string{"none", "harder_proof", "person_check"}[min(s, Person)]
}

// Scores from which on there is a step.
const (
	HarderFrom = 30
	PersonFrom = 60
	ScoreMax   = 100
)

// Score weighs signals, 0–100. What an address shows counts 30 at most: thousands may be behind one, so that it makes
// their proofs harder and never, by itself, asks who they are.
func (s Signals) Score() int {
	address := 0
	if s.Heat > 2 {
		address += min(20, int(5*min(s.Heat, 100)/2))
	}
	if s.AddressAccounts > 8 {
		address += 10
	}
	score := min(address, 30)
	switch {
	case s.DeviceAccounts > 5:
		score += 60
	case s.DeviceAccounts > 2:
		score += 30
	}
	for _, sign := range []struct {
		shows  bool
		weight int
	}{{s.NoDevice, 15}, {s.NoAgent, 30}, {s.Tool, 40}, {s.Headless, 60}, {s.ProofFast, 40}, {s.StepFast, 40}} {
		if sign.shows {
			score += sign.weight
		}
	}
	if s.Replays > 1 { // once anybody mistypes
		score += min(40, 10*s.Replays)
	}
	return min(score, ScoreMax)
}

// Step is what the score calls for.
func (s Signals) Step() Step {
	switch score := s.Score(); {
	case score >= PersonFrom:
		return Person
	case score >= HarderFrom:
		return Harder
	}
	return Nothing
}

// A Watch remembers what addresses and devices did lately, on this node.
type Watch struct {
	start   time.Time
	seed    maphash.Seed
	records [2][shards]watchPart // of addresses, of devices
}

type watchPart struct {
	mu  sync.Mutex
	at  map[key]int32
	all []watched
	max int
	// hand goes round over all as a clock's: who was not heard of since it last came by makes room.
	hand int
}

type watched struct {
	key     key
	last    int64
	heat    float32
	replays uint8
	count   uint8
	recent  bool
	seen    [seenMax]uint32
}

// NewWatch remembers as many addresses, and as many devices.
func NewWatch(now time.Time, keys int) *Watch {
	w := &Watch{start: now, seed: maphash.MakeSeed()}
	for kind := range w.records {
		for i := range w.records[kind] {
			w.records[kind][i] = watchPart{at: map[key]int32{}, max: max(1, keys/shards)}
		}
	}
	return w
}

const (
	ofAddress = iota
	ofDevice
)

// See counts a visit and says what it looks like. A customer who comes again is not counted as another.
func (w *Watch) See(now time.Time, v Visit) Signals { return w.look(now, v, true) }

// Look says what a visit would look like, and counts nothing.
func (w *Watch) Look(now time.Time, v Visit) Signals { return w.look(now, v, false) }

// Replay counts a used or wrong answer to a person check.
func (w *Watch) Replay(now time.Time, v Visit) {
	count := func(r *watched) {
		if r.replays < 255 {
			r.replays++
		}
	}
	at := int64(now.Sub(w.start))
	w.with(ofAddress, addressKey(v.Address), at, true, count)
	if !v.Mark.Device.IsZero() {
		w.with(ofDevice, key(v.Mark.Device), at, true, count)
	}
}

func (w *Watch) look(now time.Time, v Visit, counts bool) Signals {
	at := int64(now.Sub(w.start))
	s := agentSignals(v.Agent)
	s.NoDevice = v.Mark.Device.IsZero() || !v.Mark.Since.Before(now.Add(-time.Second))
	s.StepFast = v.Since > 0 && (v.Move == Holds && v.Since < enterToHold || v.Move == Pays && v.Since < holdToPay)
	who := w.account(v.Customer)
	w.with(ofAddress, addressKey(v.Address), at, counts, func(r *watched) {
		if counts && v.Move == Joins {
			r.heat++
		}
		s.Heat, s.AddressAccounts, s.Replays = float64(r.heat)/heatUsual, r.sees(who, counts), int(r.replays)
	})
	if !v.Mark.Device.IsZero() {
		w.with(ofDevice, key(v.Mark.Device), at, counts, func(r *watched) {
			s.DeviceAccounts, s.Replays = r.sees(who, counts), s.Replays+int(r.replays)
		})
	}
	return s
}

// account is a customer's mark in the lists of those seen, 0 for none.
func (w *Watch) account(customer id.ID) uint32 {
	if customer == 0 {
		return 0
	}
	k := customerKey(customer)
	return uint32(maphash.Bytes(w.seed, k[:])) | 1
}

// sees is how many accounts there are with this one, which is counted where counts says so.
func (r *watched) sees(who uint32, counts bool) int {
	for _, one := range r.seen[:r.count] {
		if one == who {
			who = 0
		}
	}
	if who == 0 || int(r.count) == seenMax {
		return int(r.count)
	}
	if counts {
		r.seen[r.count] = who
		r.count++
		return int(r.count)
	}
	return int(r.count) + 1
}

// with gives the record of a key, cooled down until now; a new one where there is none, which is kept only where keep is set.
func (w *Watch) with(kind int, k key, at int64, keep bool, f func(*watched)) {
	p := &w.records[kind][maphash.Bytes(w.seed, k[:])%shards]
	p.mu.Lock()
	defer p.mu.Unlock()
	i, known := p.at[k]
	if !known && !keep {
		f(&watched{key: k, last: at})
		return
	}
	if !known {
		i = p.room()
		p.all[i] = watched{key: k, last: at}
		p.at[k] = i
	}
	r := &p.all[i]
	r.cool(at)
	r.recent = known // those who came once make room before those who come again
	f(r)
}

// cool lets heat go with time. A clock that goes back changes nothing.
func (r *watched) cool(at int64) {
	passed := time.Duration(at - r.last)
	if passed <= 0 {
		return
	}
	if passed > seenFor {
		r.count, r.replays = 0, 0
	}
	if halves := float32(passed) / float32(heatHalf); halves > 30 {
		r.heat = 0
	} else {
		r.heat *= float32(math.Exp2(-float64(halves)))
	}
	r.last = at
}

// room is a place for a new record: a free one, or that of one not heard of lately.
func (p *watchPart) room() int32 {
	if len(p.all) < p.max {
		p.all = append(p.all, watched{})
		return int32(len(p.all) - 1)
	}
	for p.all[p.hand].recent {
		p.all[p.hand].recent = false
		p.hand = (p.hand + 1) % len(p.all)
	}
	i := p.hand
	p.hand = (p.hand + 1) % len(p.all)
	delete(p.at, p.all[i].key)
	return int32(i)
}

// tools are words in the User-Agent of programs that are no browsers.
var tools = []string{"curl/", "wget/", "python", "go-http-client", "java/", "okhttp", "libwww", "httpx", "axios", "node-fetch", "undici", "aiohttp", "scrapy", "ruby", "perl", "php", "postman", "insomnia"}

// windowless are words in the User-Agent of browsers that nobody looks at.
var windowless = []string{"headless", "phantomjs", "puppeteer", "playwright", "selenium", "electron/", "slimerjs"}

func agentSignals(agent string) (s Signals) {
	if len(agent) > agentBytesMax {
		agent = agent[:agentBytesMax]
	}
	agent = strings.ToLower(strings.TrimSpace(agent))
	s.NoAgent = agent == ""
	for _, word := range windowless {
		s.Headless = s.Headless || strings.Contains(agent, word)
	}
	for _, word := range tools {
		s.Tool = s.Tool || strings.Contains(agent, word)
	}
	return s
}
