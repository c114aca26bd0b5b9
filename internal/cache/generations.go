package cache

// Generations is a map of bounded size: it keeps at least the last Most things put or got, and at most twice as many,
// without the cost of a list. It is not for concurrent use. The zero value with Most set is ready.
type Generations[K comparable, V any] struct {
	Most       int
	young, old map[K]V
}

// Get is the value of a key, if it is still there.
func (g *Generations[K, V]) Get(k K) (V, bool) {
	v, ok := g.young[k]
	if !ok {
		if v, ok = g.old[k]; ok {
			g.Put(k, v)
		}
	}
	return v, ok
}

// Put keeps a value.
func (g *Generations[K, V]) Put(k K, v V) {
	if g.young == nil || len(g.young) >= g.Most {
		g.old, g.young = g.young, make(map[K]V, len(g.young))
	}
	g.young[k] = v
}

// Drop forgets a key.
func (g *Generations[K, V]) Drop(k K) {
	delete(g.young, k)
	delete(g.old, k)
}
