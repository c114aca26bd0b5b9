package app

import (
	"container/list"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"

	"onsale/internal/guard"
)

// Bounds of open connections.
const (
	connectionsMax        = 40_000
	connectionsAddressMax = 2_000 // of one address (IPv6: of one /64): carriers put thousands of people behind one
	descriptorsKept       = 1_024 // of those that the system allows: for databases, files, what we ask of others
)

// connections is a listener that bounds how many connections are open, of all and of each address; listed proxies have no
// bound of their own. When it is full the connection makes room on which the server has waited longest for a request, be it
// that none has begun or that its head does not come to an end; where it waits on none the new one is closed. So neither idle
// clients nor those who send slowly keep anybody out, and clients that are at work are bounded by address.
type connections struct {
	net.Listener
	most, each int
	trusted    []netip.Prefix
	closed     atomic.Int64 // connections that were closed because of a bound

	mu   sync.Mutex
	open map[*connection]struct{}
	of   map[netip.Addr]int
	idle list.List // of *connection without a whole request, the longest first
}

type connection struct {
	net.Conn
	from    *connections
	address netip.Addr    // counted under; the zero one is not
	waits   *list.Element // in idle; nil: at work
	once    sync.Once
}

func limitConnections(l net.Listener, most, each int, trusted []netip.Prefix) *connections {
	return &connections{Listener: l, most: most, each: each, trusted: trusted, open: map[*connection]struct{}{}, of: map[netip.Addr]int{}}
}

// bounded is the public listener with its bounds, which also leave room for the files that we need ourselves.
func (a *App) bounded(l net.Listener) *connections {
	most := connectionsMax
	if all := descriptorsMax(); all > 0 && all-descriptorsKept < most {
		most = max(all/2, all-descriptorsKept)
	}
	return limitConnections(l, most, connectionsAddressMax, a.Settings.TrustedProxies)
}

// Accept never waits for room: a client who is refused knows it at once.
func (c *connections) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if taken := c.take(conn); taken != nil {
			return taken, nil
		}
		c.closed.Add(1)
		conn.Close()
	}
}

// take counts a connection, nil where there is no room for it.
func (c *connections) take(conn net.Conn) *connection {
	n := &connection{Conn: conn, from: c, address: c.countedUnder(conn.RemoteAddr())}
	c.mu.Lock()
	if n.address.IsValid() && c.of[n.address] >= c.each {
		c.mu.Unlock()
		return nil
	}
	var makesRoom *connection
	if len(c.open) >= c.most {
		first := c.idle.Front()
		if first == nil {
			c.mu.Unlock()
			return nil
		}
		makesRoom = first.Value.(*connection)
		c.forget(makesRoom)
		c.closed.Add(1)
	}
	c.open[n] = struct{}{}
	n.waits = c.idle.PushBack(n)
	if n.address.IsValid() {
		c.of[n.address]++
	}
	c.mu.Unlock()
	if makesRoom != nil {
		makesRoom.Conn.Close()
	}
	return n
}

// countedUnder is the address under which a connection is counted, the zero one for none.
func (c *connections) countedUnder(remote net.Addr) netip.Addr {
	tcp, ok := remote.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	a := tcp.AddrPort().Addr().Unmap().WithZone("")
	for _, p := range c.trusted {
		if p.Contains(a) {
			return netip.Addr{}
		}
	}
	return guard.Network(a).Addr()
}

// forget takes a connection out of all counts. c.mu is held.
func (c *connections) forget(n *connection) {
	if _, known := c.open[n]; !known {
		return
	}
	delete(c.open, n)
	if n.waits != nil {
		c.idle.Remove(n.waits)
		n.waits = nil
	}
	if n.address.IsValid() {
		if c.of[n.address]--; c.of[n.address] == 0 {
			delete(c.of, n.address)
		}
	}
}

// Close closes it and makes room.
func (n *connection) Close() error {
	n.once.Do(func() {
		n.from.mu.Lock()
		n.from.forget(n)
		n.from.mu.Unlock()
	})
	return n.Conn.Close()
}

// state is told by the server which connections have a request.
func (c *connections) state(conn net.Conn, s http.ConnState) {
	n, ok := conn.(*connection)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.open[n]; !known {
		return
	}
	switch {
	case s == http.StateIdle && n.waits == nil:
		n.waits = c.idle.PushBack(n)
	case s != http.StateIdle && s != http.StateNew && n.waits != nil:
		c.idle.Remove(n.waits)
		n.waits = nil
	}
}
