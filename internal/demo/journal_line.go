package demo

import (
	"cmp"
	"fmt"
	"maps"

	"onsale/internal/id"
)

// What people are told in the waiting room: a number is theirs from then on, whatever is killed, and is good for one entry.

// A lineSaid is what was said of the line.
type lineSaid struct {
	numbers map[numberKey]int       // whose a number is, by buyer
	gaveUp  map[numberKey]bool      // numbers that their buyer was about to give up
	entries map[id.ID]entrySaid     // by session
	entered map[numberKey]id.ID     // the session of a number
	drawn   map[numberKey]bool      // whether its ticket said that it is drawn
	queues  map[numberKey]ticketFor // the signed queue ticket
}

// A numberKey names a number of a lane.
type numberKey struct {
	lane   string
	number int64
}

func (k numberKey) String() string { return fmt.Sprintf("number %d of lane %s", k.number, k.lane) }

func compareKeys(a, b numberKey) int {
	return cmp.Or(cmp.Compare(a.lane, b.lane), cmp.Compare(a.number, b.number))
}

// A ticketFor is a queue ticket, and whose it is.
type ticketFor struct {
	buyer int
	queue string
}

// An entrySaid is a session that was given.
type entrySaid struct {
	Session id.ID
	Buyer   int
	At      numberKey
}

func newLineSaid() lineSaid {
	return lineSaid{
		numbers: map[numberKey]int{}, gaveUp: map[numberKey]bool{}, entries: map[id.ID]entrySaid{}, entered: map[numberKey]id.ID{},
		drawn: map[numberKey]bool{}, queues: map[numberKey]ticketFor{},
	}
}

// joined writes down a number as the server gave it.
func (j *journal) joined(buyer int, p place) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	k := numberKey{p.lane, p.number}
	j.write(journalLine{Buyer: buyer, What: "joined", Lane: p.lane, Number: &p.number, Queue: p.queue})
	if was, ok := j.line.numbers[k]; ok && was != buyer {
		return fmt.Errorf("%s belongs to buyer %d already", k, was)
	}
	if was, ok := j.line.drawn[k]; ok && was != p.drawn {
		return fmt.Errorf("%s was drawn %v, and is %v", k, was, p.drawn)
	}
	j.line.numbers[k], j.line.drawn[k], j.line.queues[k] = buyer, p.drawn, ticketFor{buyer, p.queue}
	return nil
}

// givesUp writes down that somebody is about to give a number up.
func (j *journal) givesUp(buyer int, p place) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.write(journalLine{Buyer: buyer, What: "leaves the line", Lane: p.lane, Number: &p.number})
	j.line.gaveUp[numberKey{p.lane, p.number}] = true
}

// cameIn writes down an entry. One number has one session, and one session is of one number.
func (j *journal) cameIn(buyer int, p place, session string) error {
	s, err := id.Parse(id.Session, session)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	k := numberKey{p.lane, p.number}
	j.write(journalLine{Buyer: buyer, What: "came in", Lane: p.lane, Number: &p.number, Session: session})
	said := entrySaid{Session: s, Buyer: buyer, At: k}
	if was, ok := j.line.entries[s]; ok && was != said {
		return fmt.Errorf("%s is of buyer %d with %s, and of buyer %d with %s", session, was.Buyer, was.At, buyer, k)
	}
	if was, ok := j.line.entered[k]; ok && was != s {
		return fmt.Errorf("%s came in as %s and as %s", k, was.Text(id.Session), session)
	}
	j.line.entries[s], j.line.entered[k] = said, s
	return nil
}

// copy is all that was said until now; the journal's lock is held.
func (l *lineSaid) copy() lineSaid {
	return lineSaid{
		numbers: maps.Clone(l.numbers), gaveUp: maps.Clone(l.gaveUp), entries: maps.Clone(l.entries), entered: maps.Clone(l.entered),
		drawn: maps.Clone(l.drawn), queues: maps.Clone(l.queues),
	}
}
