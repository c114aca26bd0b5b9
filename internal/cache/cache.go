// Package cache keeps what was read in memory, up to a count, so that a flood of readers costs the store one read.
//
// The one idea: callers who ask for the same key at once share one load, and what was loaded may be used again for a
// while. Where a load fails, an old value may be better than none: with its database away the catalog goes on from
// memory (DESIGN 9).
package cache

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"
)

// Options of a Cache.
type Options struct {
	CountMax int              // values kept; the one used longest ago goes first
	FreshFor time.Duration    // how long a value is used without asking again; 0: for ever
	Now      func() time.Time // defaults to time.Now

	// UseOld says whether, after a load failed with this error, an old value is given out (and the next load waits for
	// RetryAfter). Defaults to never.
	UseOld     func(error) bool
	RetryAfter time.Duration
}

// A Cache keeps values by key. Its methods may be called from many goroutines.
type Cache[K comparable, V any] struct {
	options Options

	mu      sync.Mutex
	entries map[K]*list.Element // of *entry[K, V]
	order   *list.List          // used last first
	flights map[K]*flight[V]
}

type entry[K comparable, V any] struct {
	key   K
	value V
	until time.Time // fresh before this; zero: for ever
}

type flight[V any] struct {
	done  chan struct{} // closed when value and err are set
	value V
	err   error
	void  bool // Put or Forget came meanwhile: what is loaded may be old already
}

// New makes an empty cache.
func New[K comparable, V any](o Options) *Cache[K, V] {
	if o.CountMax < 1 {
		panic("cache: CountMax must be at least 1")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Cache[K, V]{options: o, entries: map[K]*list.Element{}, order: list.New(), flights: map[K]*flight[V]{}}
}

// Get is the fresh value of a key, if there is one.
func (c *Cache[K, V]) Get(key K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fresh(key)
}

// Put keeps a value, also against a load that is under way.
func (c *Cache[K, V]) Put(key K, value V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.voidFlight(key)
	c.put(key, value, c.options.FreshFor)
}

// Forget drops a key, also against a load that is under way: the next caller loads it.
func (c *Cache[K, V]) Forget(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.voidFlight(key)
	if e, ok := c.entries[key]; ok {
		c.order.Remove(e)
		delete(c.entries, key)
	}
}

// Len is how many values are kept.
func (c *Cache[K, V]) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.entries)
}

// Load is the value of a key: the fresh one, else what load answers, which is kept. Callers who come while it runs wait
// for its answer; should the caller whose context it ran under have gone, the next one loads.
func (c *Cache[K, V]) Load(ctx context.Context, key K, load func(context.Context) (V, error)) (V, error) {
	for {
		c.mu.Lock()
		if value, ok := c.fresh(key); ok {
			c.mu.Unlock()
			return value, nil
		}
		f, follow := c.flights[key]
		if !follow {
			f = &flight[V]{done: make(chan struct{})}
			c.flights[key] = f
		}
		c.mu.Unlock()
		if !follow {
			return c.lead(ctx, key, f, load)
		}
		select {
		case <-ctx.Done():
			var none V
			return none, ctx.Err()
		case <-f.done:
		}
		if !f.void && !errors.Is(f.err, context.Canceled) && !errors.Is(f.err, context.DeadlineExceeded) {
			return f.value, f.err
		}
	}
}

// lead loads for everybody who asks for the key meanwhile.
func (c *Cache[K, V]) lead(ctx context.Context, key K, f *flight[V], load func(context.Context) (V, error)) (V, error) {
	returned := false
	defer func() {
		if !returned { // load panicked: nobody may wait for ever
			c.finish(key, f, errors.New("cache: the load panicked"))
		}
	}()
	value, err := load(ctx)
	returned = true
	f.value = value
	c.finish(key, f, err)
	return f.value, f.err
}

func (c *Cache[K, V]) finish(key K, f *flight[V], err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f.err = err
	switch e, kept := c.entries[key]; {
	case f.void: // answered to who loaded it, but not kept
	case err == nil:
		c.put(key, f.value, c.options.FreshFor)
	case kept && c.options.UseOld != nil && c.options.UseOld(err):
		f.value, f.err = e.Value.(*entry[K, V]).value, nil
		c.put(key, f.value, c.options.RetryAfter)
	}
	if c.flights[key] == f {
		delete(c.flights, key)
	}
	close(f.done)
}

// fresh, put and voidFlight are called under mu.

func (c *Cache[K, V]) fresh(key K) (value V, ok bool) {
	element, ok := c.entries[key]
	if !ok {
		return value, false
	}
	e := element.Value.(*entry[K, V])
	if !e.until.IsZero() && !c.options.Now().Before(e.until) {
		return value, false
	}
	c.order.MoveToFront(element)
	return e.value, true
}

func (c *Cache[K, V]) put(key K, value V, freshFor time.Duration) {
	e := &entry[K, V]{key: key, value: value}
	if freshFor > 0 {
		e.until = c.options.Now().Add(freshFor)
	}
	if element, ok := c.entries[key]; ok {
		element.Value = e
		c.order.MoveToFront(element)
		return
	}
	c.entries[key] = c.order.PushFront(e)
	if len(c.entries) > c.options.CountMax {
		last := c.order.Back()
		c.order.Remove(last)
		delete(c.entries, last.Value.(*entry[K, V]).key)
	}
}

func (c *Cache[K, V]) voidFlight(key K) {
	if f, ok := c.flights[key]; ok {
		f.void = true
		delete(c.flights, key)
	}
}
