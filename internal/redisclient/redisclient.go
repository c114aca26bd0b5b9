// Package redisclient connects to Redis: to one server, through sentinels, or to a cluster.
//
// The one idea: Redis may be away, also when this program starts. So New dials nothing; the first command connects, one
// that fails says so within its time (ErrAway), and the next may find it back. What is kept in Redis can be lost, so
// nobody waits for it.
//
// Start reading at New; run.go tells whether the server may have forgotten something, check.go whether it is fit.
package redisclient

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// Bounds.
const (
	AddressesMax   = 64
	TimeoutDefault = time.Second
	TimeoutMax     = 30 * time.Second

	redialAfter     = 500 * time.Millisecond // between two tries to connect at first
	topologyRefresh = time.Second            // after so long a fail-over is noticed for which no message came
	ringScale       = 10                     // 2^10 commands may be under way on each connection
	bufferBytes     = 1 << 17                // of each connection, for reading and for writing
)

// ErrAway says that Redis did not answer in time, or that it refused.
var ErrAway = errors.New("redis is away")

// Options say where Redis is.
type Options struct {
	// Addresses are host:port of the server, of any nodes of the cluster, or of the sentinels.
	Addresses []string
	Username  string // of Redis's access list; "" is its default user
	Password  string
	// SentinelMaster is what the sentinels call the primary; "" is no sentinels.
	SentinelMaster   string
	SentinelPassword string
	Cluster          bool
	TLS              *tls.Config // nil: plain connections
	// Timeout is how long a command may take. Defaults to TimeoutDefault.
	Timeout time.Duration
}

// Client is Redis. Its methods may be called from many goroutines.
type Client struct {
	options Options

	mu      sync.Mutex // guards what follows
	client  rueidis.Client
	dialing chan struct{} // closed when the dial under way has ended; nil: none is
	failed  time.Time     // when the last dial failed
	err     error         // why
	closed  bool
}

// New checks the options. It does not connect.
func New(o Options) (*Client, error) {
	if len(o.Addresses) == 0 || len(o.Addresses) > AddressesMax {
		return nil, fmt.Errorf("redis: %d addresses are not between 1 and %d", len(o.Addresses), AddressesMax)
	}
	for _, a := range o.Addresses {
		if _, _, err := net.SplitHostPort(a); err != nil {
			return nil, fmt.Errorf("redis: address %q: %w", a, err)
		}
	}
	if o.Cluster && o.SentinelMaster != "" {
		return nil, errors.New("redis: a cluster has no sentinels")
	}
	if !o.Cluster && o.SentinelMaster == "" && len(o.Addresses) > 1 {
		return nil, errors.New("redis: several addresses are those of sentinels or of a cluster")
	}
	if o.Timeout == 0 {
		o.Timeout = TimeoutDefault
	}
	if o.Timeout < 0 || o.Timeout > TimeoutMax {
		return nil, fmt.Errorf("redis: a timeout of %s is not between 0 and %s", o.Timeout, TimeoutMax)
	}
	return &Client{options: o}, nil
}

// Spread says whether keys lie on several servers, so that a script reaches only those of one slot.
func (c *Client) Spread() bool { return c.options.Cluster }

// Addresses are those it was told.
func (c *Client) Addresses() []string { return slices.Clone(c.options.Addresses) }

// Timeout is how long a command may take.
func (c *Client) Timeout() time.Duration { return c.options.Timeout }

// Do gives a command's answer, within the timeout. An answer that is an error of Redis, as ErrAway, is for the caller to
// tell apart by rueidis.IsRedisErr.
func (c *Client) Do(ctx context.Context, do func(context.Context, rueidis.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	conn, err := c.connect(ctx)
	if err != nil {
		return err
	}
	if err := do(ctx, conn); err != nil {
		return fmt.Errorf("%w: %w", ErrAway, err)
	}
	return nil
}

// Ints runs a script whose answer is a list of whole numbers.
func (c *Client) Ints(ctx context.Context, script *rueidis.Lua, keys, args []string) (answer []int64, err error) {
	err = c.Do(ctx, func(ctx context.Context, conn rueidis.Client) (err error) {
		answer, err = script.Exec(ctx, conn, keys, args).AsIntSlice()
		return err
	})
	return answer, err
}

// Close ends all connections. Commands under way fail.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	dialing := c.dialing
	c.mu.Unlock()
	if dialing != nil {
		<-dialing
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client != nil {
		c.client.Close()
		c.client = nil
	}
}

// connect is the connection; the first who asks makes it, the others wait for that.
func (c *Client) connect(ctx context.Context) (rueidis.Client, error) {
	for {
		c.mu.Lock()
		switch {
		case c.closed:
			c.mu.Unlock()
			return nil, fmt.Errorf("%w: the connection has been closed", ErrAway)
		case c.client != nil:
			defer c.mu.Unlock()
			return c.client, nil
		case c.dialing == nil && c.err != nil && time.Since(c.failed) < redialAfter:
			defer c.mu.Unlock()
			return nil, fmt.Errorf("%w: %w", ErrAway, c.err)
		case c.dialing == nil:
			c.dialing = make(chan struct{})
			go c.dial(c.dialing)
		}
		dialing := c.dialing
		c.mu.Unlock()
		select {
		case <-dialing:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", ErrAway, ctx.Err())
		}
	}
}

func (c *Client) dial(done chan struct{}) {
	client, err := rueidis.NewClient(c.options.rueidis())
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client, c.err = client, err; err != nil {
		c.client, c.failed = nil, time.Now() // client may be a nil of a type
	}
	c.dialing = nil
	close(done)
}

func (o Options) rueidis() rueidis.ClientOption {
	dialer := net.Dialer{Timeout: o.Timeout, KeepAlive: o.Timeout}
	r := rueidis.ClientOption{
		InitAddress: o.Addresses, Username: o.Username, Password: o.Password, TLSConfig: o.TLS, ClientName: "onsale",
		Dialer: dialer, ConnWriteTimeout: 2 * o.Timeout,
		RingScaleEachConn: ringScale, ReadBufferEachConn: bufferBytes, WriteBufferEachConn: bufferBytes,
		DisableCache: true, ClientSetInfo: rueidis.DisableClientSetInfo,
		ClusterOption: rueidis.ClusterOption{ShardsRefreshInterval: topologyRefresh, MaxMovedRedirections: 4},
	}
	if o.SentinelMaster != "" {
		r.Sentinel = rueidis.SentinelOption{
			MasterSet: o.SentinelMaster, Password: o.SentinelPassword, Dialer: dialer, TLSConfig: o.TLS, ClientName: "onsale",
			TopologyRefreshInterval: topologyRefresh,
		}
	}
	// Else one address might answer as a cluster, of which we were not told.
	r.ForceSingleClient = !o.Cluster && o.SentinelMaster == ""
	return r
}
