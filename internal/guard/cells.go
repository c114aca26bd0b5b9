package guard

import (
	"encoding/binary"
	"hash/maphash"
	"net/netip"
	"sync"
	"time"

	"onsale/internal/id"
)

// shards is in how many parts cells lie, each with a lock of its own.
const shards = 64

// A rate in nanoseconds: one request each `each`, quota of them at once. What is kept is the theoretical arrival time: the
// instant until which everything taken so far is used up.
//
// Debt is how many more requests than the quota may be told afterwards, by other nodes.
type rate struct{ each, quota, debt int64 }

// takes is the arrival time after one more request, and whether it may pass.
func (r rate) takes(tat, at int64) (next int64, ok bool) {
	tat = min(max(tat, at), at+r.each*(r.quota+r.debt)) // a clock that went back locks nobody out for longer than the whole quota
	if next = tat + r.each; next-at > r.each*r.quota {
		return tat, false
	}
	return next, true
}

// takesAbove is takes for a request that leaves a reserve: it passes only where that many are left behind it.
func (r rate) takesAbove(tat, at, reserve int64) (next int64, ok bool) {
	now := min(max(tat, at), at+r.each*(r.quota+r.debt))
	if next = now + r.each; next-at > r.each*(r.quota-reserve) {
		return now, false
	}
	return next, true
}

// left is how many requests may still come at once.
func (r rate) left(tat, at int64) int { return int(max(0, r.each*r.quota-max(0, tat-at)) / r.each) }

// wait is how long it is until one may come.
func (r rate) wait(tat, at int64) time.Duration {
	return time.Duration(max(0, tat+r.each-r.each*r.quota-at))
}

// A key is a customer, an address, or an event and a class.
type key [16]byte

func customerKey(customer id.ID) (k key) {
	binary.BigEndian.PutUint64(k[8:], uint64(customer))
	return k
}

func eventKey(event id.ID, class Class) (k key) {
	binary.BigEndian.PutUint64(k[8:], uint64(event))
	k[0] = 1 + byte(class)
	return k
}

// addressKey is an address as it is limited: IPv4 alone, IPv6 by /64, one customer's line. What is no address is all one.
func addressKey(a netip.Addr) key {
	a = a.Unmap()
	k := key(a.As16())
	if a.Is6() {
		clear(k[8:])
	}
	return k
}

// cells keep one number for each key, of the keys heard of last.
type cells struct {
	seed  maphash.Seed
	parts [shards]part
}

// A part is a map into a slice, whose entries form a ring by use: entries[0] is its head, its next the youngest.
type part struct {
	mu      sync.Mutex
	at      map[key]int32
	entries []entry
	max     int
}

type entry struct {
	key        key
	tat        int64
	prev, next int32
}

func newCells(keys int) *cells {
	c := &cells{seed: maphash.MakeSeed()}
	for i := range c.parts {
		c.parts[i] = part{at: map[key]int32{}, entries: make([]entry, 1), max: max(1, keys/shards)}
	}
	return c
}

func (c *cells) part(k key) *part { return &c.parts[maphash.Bytes(c.seed, k[:])%shards] }

// take counts a request and gives the arrival time after it; a refused one counts nothing. It leaves a reserve.
func (c *cells) take(k key, at int64, r rate, reserve int64) (ok bool, tat int64) {
	p := c.part(k)
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.use(k, at)
	if reserve > 0 {
		e.tat, ok = r.takesAbove(e.tat, at, reserve)
	} else {
		e.tat, ok = r.takes(e.tat, at)
	}
	return ok, e.tat
}

// raise makes a key's arrival time at least this.
func (c *cells) raise(k key, at, tat int64) {
	p := c.part(k)
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.use(k, at)
	e.tat = max(e.tat, tat)
}

// giveBack makes one taken request undone. One that was forgotten since has nothing to give back.
func (c *cells) giveBack(k key, r rate) {
	p := c.part(k)
	p.mu.Lock()
	defer p.mu.Unlock()
	if i, ok := p.at[k]; ok {
		p.entries[i].tat -= r.each
	}
}

// use is the key's entry, made the youngest; where there is no room the oldest makes room.
func (p *part) use(k key, at int64) *entry {
	i, known := p.at[k]
	switch {
	case known:
		p.unlink(i)
	case len(p.entries) <= p.max:
		i = int32(len(p.entries))
		p.entries = append(p.entries, entry{})
	default:
		i = p.entries[0].prev
		p.unlink(i)
		delete(p.at, p.entries[i].key)
	}
	if !known {
		p.entries[i] = entry{key: k, tat: at}
		p.at[k] = i
	}
	head, e := &p.entries[0], &p.entries[i]
	e.prev, e.next = 0, head.next
	p.entries[head.next].prev = i
	p.entries[0].next = i
	return &p.entries[i]
}

func (p *part) unlink(i int32) {
	e := p.entries[i]
	p.entries[e.prev].next, p.entries[e.next].prev = e.next, e.prev
}

// len is how many keys are remembered.
func (c *cells) len() (n int) {
	for i := range c.parts {
		c.parts[i].mu.Lock()
		n += len(c.parts[i].at)
		c.parts[i].mu.Unlock()
	}
	return n
}
