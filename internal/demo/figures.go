package demo

import (
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A behaviour is something that buyers, the provider or the server do and that the report counts.
type behaviour int

const (
	holdsMade behaviour = iota
	bestHeld
	picked
	standing
	extended
	released
	abandoned
	conflicts
	bookings
	declined
	retried
	pendings
	lateWebhooks
	doubleHolds
	doubleBookings
	droppedHolds
	droppedBookings
	providerSilent
	ticketsShown
	signIns
	signInsKept
	refundsWhole
	refundsPart
	refundsAgain
	refundsTwice
	refundRaces
	refundsOrganizer
	refundsRefused
	refundsRetried
	exchangesDearer
	exchangesCheaper
	exchangesDeclined
	exchangesLapsed
	transfers
	received
	oldCodes
	letIn
	scansTwice
	wrongGates
	undone
	letInAgain
	letInOffline
	conflictsAtDoor
	namedBookings
	documentsTwice
	documentsUsed
	codesLost
	notTakenYet
	exchangesNone
	entriesLost
	unknowns
	soldOuts
	limited

	tabsAlike
	codesTaken
	codesUsedUp
	leftLine
	rejoined
	entries
	oversleepers
	leftInside
	honouredNumbers
	bots
	botsNoProof
	botsForgedProof
	botsCodes
	botsReplays
	botsAccounts
	botsForgedTickets
	botsStolenTickets
	botsForgedPasses
	botsLentPasses
	botsAfterLeaving
	botsTwice
	botsResting
	wishesMade
	offersMade
	offersTaken
	offersRefused
	soldOutInLine
	sessionsOver
	rested
	botsFoundNothing
	behaviourCount
)

// A counter counts one behaviour; a must is one without which the demo has not shown what it is there to show.
var counters = [behaviourCount]struct {
	name string
	must bool
}{
	holdsMade:         {"holds made", true},
	bestHeld:          {"  of the best available", true},
	picked:            {"  of seats picked by hand", true},
	standing:          {"  of standing places", true},
	extended:          {"holds extended", true},
	released:          {"holds given back", true},
	abandoned:         {"buyers who just went away", true},
	conflicts:         {"conflicts: somebody was faster", true},
	bookings:          {"bookings paid", true},
	declined:          {"cards declined", true},
	retried:           {"  and another card tried", true},
	pendings:          {"payments pending", true},
	lateWebhooks:      {"  and settled later", true},
	doubleHolds:       {"double clicks on hold", true},
	doubleBookings:    {"double clicks on pay", true},
	droppedHolds:      {"lost answers to a hold", true},
	droppedBookings:   {"lost answers to a booking", true},
	providerSilent:    {"lost answers of the provider", true},
	ticketsShown:      {"tickets looked at", true},
	signIns:           {"sign-ins with a code by mail", true},
	signInsKept:       {"  still good at the end", true},
	refundsWhole:      {"refunds of whole bookings", true},
	refundsPart:       {"  of one ticket", true},
	refundsAgain:      {"  asked for again: the same answer", true},
	refundsTwice:      {"  a second one refused", true},
	refundRaces:       {"  two at once: one taken", true},
	refundsOrganizer:  {"  by the organizer", true},
	refundsRefused:    {"  refused by the bank (no fault)", true},
	refundsRetried:    {"  tried again, and refused again", true},
	exchangesDearer:   {"exchanges, the difference paid", true},
	exchangesCheaper:  {"  with money back", true},
	exchangesDeclined: {"  declined: old tickets kept", true},
	exchangesLapsed:   {"  whose hold was let run out", true},
	transfers:         {"tickets passed on", true},
	received:          {"  and seen by whom they went to", true},
	oldCodes:          {"  old codes refused at the door", true},
	letIn:             {"tickets let in", true},
	scansTwice:        {"  refused a second time", true},
	wrongGates:        {"  sent to another gate", true},
	undone:            {"  undone by the owner", true},
	letInAgain:        {"  and let in again", true},
	letInOffline:      {"  without a network, told twice", true},
	conflictsAtDoor:   {"  conflicts noted", true},
	namedBookings:     {"bookings with named attendees", true},
	documentsTwice:    {"  one document twice: refused", true},
	documentsUsed:     {"  one that has a ticket: refused", true},
	codesLost:         {"sign-in codes lost by kills", false},
	notTakenYet:       {"refunds of money not taken yet", false},
	exchangesNone:     {"exchanges that found no places", false},
	entriesLost:       {"lost answers of the door", false},
	unknowns:          {"answers that never came", false},
	soldOuts:          {"buyers told that it is sold out", false},
	limited:           {"buyers told of their limit", false},

	tabsAlike:         {"joins from another tab: same number", true},
	codesTaken:        {"presale codes taken", true},
	codesUsedUp:       {"  used up already: refused", true},
	leftLine:          {"numbers given up", true},
	rejoined:          {"  and joined again, at the tail", true},
	entries:           {"buyers let in", true},
	oversleepers:      {"  who came when their turn was over", true},
	leftInside:        {"  who left so that others come in", true},
	bots:              {"bots", true},
	botsNoProof:       {"  joins without proof of work refused", true},
	botsForgedProof:   {"  joins with a forged one refused", true},
	botsCodes:         {"  guessed presale codes refused", true},
	botsReplays:       {"  joins replayed: same number", true},
	botsAccounts:      {"  with several accounts", true},
	botsForgedTickets: {"  claims by forged tickets refused", true},
	botsStolenTickets: {"  claims by others' tickets refused", true},
	botsForgedPasses:  {"  holds without admission refused", true},
	botsLentPasses:    {"  holds by another's one refused", true},
	botsAfterLeaving:  {"  holds after leaving refused", true},
	botsTwice:         {"  second claims of a number refused", true},
	botsResting:       {"  holds and lets go: must rest", true},
	botsFoundNothing:  {"  found nothing", false},
	wishesMade:        {"wishes left with the waitlist", false},
	offersMade:        {"  offered what came back", false},
	offersTaken:       {"  and bought it", false},
	offersRefused:     {"  and passed it on", false},
	soldOutInLine:     {"people told in line that it is over", false},
	sessionsOver:      {"sessions that were over too early", false},
	rested:            {"buyers told to rest", false},
	honouredNumbers:   {"numbers looked at after kills: theirs", false},
}

// figures are what is counted and timed while the demo runs. Its methods may be called from many goroutines.
type figures struct {
	counts     [behaviourCount]atomic.Int64
	placesSold atomic.Int64 // of areas, as far as buyers were told

	mu     sync.Mutex
	calls  map[string]*histogram
	errors map[string]int64
	recent histogram // of all calls, since the progress was last shown
	rates  []int64   // holds made in each second since the start
	start  time.Time
}

func newFigures() *figures {
	return &figures{calls: map[string]*histogram{}, errors: map[string]int64{}, start: time.Now()}
}

func (f *figures) did(b behaviour) { f.counts[b].Add(1) }

func (f *figures) count(b behaviour) int64 { return f.counts[b].Load() }

// held counts a hold that was acknowledged.
func (f *figures) held() {
	f.did(holdsMade)
	f.mu.Lock()
	defer f.mu.Unlock()
	second := int(time.Since(f.start) / time.Second)
	for len(f.rates) <= second {
		f.rates = append(f.rates, 0)
	}
	f.rates[second]++
}

// cameIn counts somebody who was let in.
func (f *figures) cameIn() { f.did(entries) }

// took notes how long a call took that was answered.
func (f *figures) took(call string, d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.calls[call]
	if h == nil {
		h = &histogram{}
		f.calls[call] = h
	}
	h.add(d)
	f.recent.add(d)
}

func (f *figures) failed(code string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errors[code]++
}

// A moment is what the progress shows.
type moment struct {
	elapsed    time.Duration
	holds      int64 // in all
	p99        time.Duration
	errors     map[string]int64
	errorCount int64
}

// now gives the figures of the moment, and starts the recent ones anew.
func (f *figures) now() moment {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := moment{elapsed: time.Since(f.start), holds: f.count(holdsMade), p99: f.recent.quantile(0.99), errors: maps.Clone(f.errors)}
	for _, n := range m.errors {
		m.errorCount += n
	}
	f.recent = histogram{}
	return m
}

// busiest is the most holds made in a second.
func (f *figures) busiest() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.rates) == 0 {
		return 0
	}
	return slices.Max(f.rates)
}

// byCount are the errors, most frequent first.
func byCount(errors map[string]int64) []string {
	return slices.SortedFunc(maps.Keys(errors), func(a, b string) int {
		if errors[a] != errors[b] {
			return int(errors[b] - errors[a])
		}
		if a < b {
			return -1
		}
		return 1
	})
}

// A histogram of durations, in steps of about 5 %, from 20 µs to 3 minutes.
type histogram struct {
	buckets [330]int64
	total   int64
}

const (
	bucketFirst = 20 * time.Microsecond
	bucketStep  = 1.05
)

func (h *histogram) add(d time.Duration) {
	i := 0
	if d > bucketFirst {
		i = int(math.Log(float64(d)/float64(bucketFirst))/math.Log(bucketStep)) + 1
	}
	h.buckets[min(i, len(h.buckets)-1)]++
	h.total++
}

// quantile is the duration that a share q of all do not exceed, to 5 %; 0 where there is none.
func (h *histogram) quantile(q float64) time.Duration {
	rank := int64(math.Ceil(q * float64(h.total)))
	for i, n := range h.buckets {
		if rank -= n; n > 0 && rank <= 0 {
			return time.Duration(float64(bucketFirst) * math.Pow(bucketStep, float64(i)))
		}
	}
	return 0
}
