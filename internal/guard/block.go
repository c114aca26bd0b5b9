package guard

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/identity"
)

// Bounds of block lists.
const (
	BlocksMax          = 50_000 // of all organizers together
	BlocksOrganizerMax = 10_000
	BlockLifeMax       = 2 * 366 * 24 * time.Hour
	BlockReasonMax     = 500         // bytes
	BlockRefresh       = time.Second // so often each node asks whether the lists have changed
	blockPageMax       = 500
	blockKeep          = 30 * 24 * time.Hour // after its end
	// An organizer may block no wider network than these: what is wider is a country, and the site's operator's business.
	blockBits4 = 16
	blockBits6 = 32
)

// The kinds of blocks.
const (
	BlockNetwork  = "network"
	BlockCustomer = "customer"
	BlockDevice   = "device"
)

// A Block keeps somebody from joining, holding and buying, at one organizer's events or everywhere, until it ends.
type Block struct {
	ID        id.ID
	Organizer id.ID // 0: everywhere
	Kind      string
	Network   netip.Prefix // of BlockNetwork; one address is a network
	Customer  id.ID
	Device    Device
	Reason    string // for people of the organizer; never shown to who is blocked
	By        id.ID  // the customer who made it; 0: the operator's command
	At        time.Time
	Until     time.Time // whole milliseconds, UTC
}

// Target is whom it blocks, as text: "203.0.113.0/24", "cus_…", 32 digits of a device.
func (b Block) Target() string {
	switch b.Kind {
	case BlockNetwork:
		return b.Network.String()
	case BlockCustomer:
		return b.Customer.Text(id.Customer)
	}
	return b.Device.String()
}

// ParseTarget fills in whom a block of its kind is for. Fault: invalid.
func (b *Block) ParseTarget(text string) error {
	text = strings.TrimSpace(text)
	var err error
	switch b.Kind {
	case BlockNetwork:
		if !strings.Contains(text, "/") {
			var a netip.Addr
			if a, err = netip.ParseAddr(text); err == nil {
				a = a.Unmap().WithZone("")
				b.Network = netip.PrefixFrom(a, a.BitLen())
			}
		} else if b.Network, err = netip.ParsePrefix(text); err == nil {
			b.Network = plainPrefix(b.Network)
		}
	case BlockCustomer:
		b.Customer, err = id.Parse(id.Customer, text)
	case BlockDevice:
		var ok bool
		if b.Device, ok = ParseDevice(text); !ok {
			err = errors.New("not a device")
		}
	default:
		return &fault.Error{Code: fault.Invalid, Field: "kind", Detail: "kind is network, customer or device"}
	}
	if err != nil {
		return &fault.Error{Code: fault.Invalid, Field: "target", Detail: "this is no " + b.Kind}
	}
	return nil
}

// plainPrefix writes networks of IPv4 as such, without what lies behind their bits.
func plainPrefix(p netip.Prefix) netip.Prefix {
	if a := p.Addr(); a.Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(a.Unmap(), p.Bits()-96)
	}
	return p.Masked()
}

// Errors of a BlockStore.
var (
	ErrNoBlock       = errors.New("guard: there is no such block")
	ErrTooManyBlocks = errors.New("guard: the block list is full")
)

// A BlockStore keeps block lists in the control database. What changes something takes the entry of the audit log, which is
// written in the same step, or nothing is.
type BlockStore interface {
	// AddBlock keeps one. Where the organizer blocks the same already that block gets the new reason and end, and is answered.
	// ErrTooManyBlocks where the organizer has max, or all together have BlocksMax, that have not ended at b.At.
	AddBlock(ctx context.Context, b Block, max int, e identity.Entry) (Block, error)
	// RemoveBlock takes an organizer's away. ErrNoBlock.
	RemoveBlock(ctx context.Context, organizer, number id.ID, e identity.Entry) error
	// BlocksOf are an organizer's (0: those that hold everywhere) that have not ended, by id, those after the given.
	BlocksOf(ctx context.Context, organizer, after id.ID, now time.Time, max int) ([]Block, error)
	// AllBlocks are all that have not ended.
	AllBlocks(ctx context.Context, now time.Time) ([]Block, error)
	// BlocksVersion changes with every change of a list.
	BlocksVersion(ctx context.Context) (int64, error)
	// PruneBlocks deletes those that ended before.
	PruneBlocks(ctx context.Context, endedBefore time.Time, max int) (int, error)
}

// Blocks are the block lists as a node has them: in memory, no more than two seconds old.
type Blocks struct {
	store BlockStore
	newID func() (id.ID, error)
	now   func() time.Time

	version int64 // of the table; only Refresh looks at it
	loaded  bool
	table   atomic.Pointer[blockTable]
}

// NewBlocks are empty until Refresh.
func NewBlocks(store BlockStore, newID func() (id.ID, error), now func() time.Time) *Blocks {
	b := &Blocks{store: store, newID: newID, now: now}
	b.table.Store(&blockTable{})
	return b
}

// Add blocks somebody. The entry says who did so and in which role; the rest of it is filled in.
// Faults: invalid; limit_reached.
func (b *Blocks) Add(ctx context.Context, block Block, e identity.Entry) (Block, error) {
	now := b.now().UTC().Truncate(time.Millisecond)
	if err := block.check(now); err != nil {
		return Block{}, err
	}
	number, err := b.newID()
	if err != nil {
		return Block{}, err
	}
	block.ID, block.At, block.Until = number, now, block.Until.UTC().Truncate(time.Millisecond)
	if e.ID, err = b.newID(); err != nil {
		return Block{}, err
	}
	e.At, e.Organizer, e.Action, e.Target = now, block.Organizer, "block.add", number.Text(id.Block)
	// E10: the log lives for ever, so it has no addresses.
	e.Details = map[string]string{"kind": block.Kind, "until": block.Until.Format(time.RFC3339)}
	kept, err := b.store.AddBlock(ctx, block, BlocksOrganizerMax, e)
	if errors.Is(err, ErrTooManyBlocks) {
		return Block{}, &fault.Error{Code: fault.LimitReached, Detail: "the block list is full; remove what is not needed any more", Cause: err}
	}
	return kept, err
}

func (b Block) check(now time.Time) error {
	bad := func(field, detail string) error {
		return &fault.Error{Code: fault.Invalid, Field: field, Detail: detail}
	}
	switch {
	case !b.Until.After(now):
		return bad("until", "the end lies ahead")
	case b.Until.After(now.Add(BlockLifeMax)):
		return bad("until", "a block lasts two years at most")
	case strings.TrimSpace(b.Reason) == "" || len(b.Reason) > BlockReasonMax || !utf8.ValidString(b.Reason) || strings.ContainsRune(b.Reason, 0):
		return bad("reason", "say why, in 1 to 500 bytes of text")
	}
	switch b.Kind {
	case BlockCustomer:
		if b.Customer == 0 {
			return bad("target", "name a customer")
		}
	case BlockDevice:
		if b.Device.IsZero() {
			return bad("target", "name a device")
		}
	case BlockNetwork:
		least := blockBits6
		if b.Network.Addr().Is4() {
			least = blockBits4
		}
		if !b.Network.IsValid() || b.Network != plainPrefix(b.Network) {
			return bad("target", "name an address or a network")
		}
		if b.Network.Bits() < least {
			return bad("target", "a network of at most this size: /16 of IPv4, /32 of IPv6")
		}
	default:
		return bad("kind", "kind is network, customer or device")
	}
	return nil
}

// Remove takes a block of an organizer away. Fault: not_found.
func (b *Blocks) Remove(ctx context.Context, organizer, number id.ID, e identity.Entry) error {
	entry, err := b.newID()
	if err != nil {
		return err
	}
	e.ID, e.At, e.Organizer, e.Action, e.Target = entry, b.now().UTC().Truncate(time.Millisecond), organizer, "block.remove", number.Text(id.Block)
	err = b.store.RemoveBlock(ctx, organizer, number, e)
	if errors.Is(err, ErrNoBlock) {
		return &fault.Error{Code: fault.NotFound, Cause: err}
	}
	return err
}

// List is a page of an organizer's, by id, after the given.
func (b *Blocks) List(ctx context.Context, organizer, after id.ID, max int) ([]Block, error) {
	return b.store.BlocksOf(ctx, organizer, after, b.now(), min(max, blockPageMax))
}

// Prune deletes blocks that ended a while ago: until then people can see that there was one.
func (b *Blocks) Prune(ctx context.Context) error {
	for {
		n, err := b.store.PruneBlocks(ctx, b.now().Add(-blockKeep), blockPageMax)
		if err != nil || n < blockPageMax {
			return err
		}
	}
}

// Blocked says whether somebody is blocked from an organizer's events. It reads memory.
func (b *Blocks) Blocked(now time.Time, organizer id.ID, customer id.ID, d Device, a netip.Addr) bool {
	return b.table.Load().blocked(now.UnixMilli(), organizer, customer, d, a)
}

// Refresh reads the lists where they have changed. One at a time.
func (b *Blocks) Refresh(ctx context.Context) error {
	version, err := b.store.BlocksVersion(ctx)
	if err != nil || b.loaded && version == b.version {
		return err
	}
	all, err := b.store.AllBlocks(ctx, b.now())
	if err != nil {
		return err
	}
	b.table.Store(newBlockTable(all))
	b.version, b.loaded = version, true
	return nil
}

// Run refreshes until ctx ends. While the database is away the lists are as they were last. failed may be nil.
func (b *Blocks) Run(ctx context.Context, failed func(error)) {
	tick := time.NewTicker(BlockRefresh)
	defer tick.Stop()
	for {
		if err := b.Refresh(ctx); err != nil && ctx.Err() == nil && failed != nil {
			failed(err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// A blockTable is the lists as they are asked: until when, in Unix milliseconds. It is never changed.
//
// A network is found by its length: there is one look for each length that occurs, and none for a list without networks.
type blockTable struct {
	customers map[blocked[id.ID]]int64
	devices   map[blocked[Device]]int64
	networks  map[blocked[netip.Prefix]]int64
	bits4     []int
	bits6     []int
}

type blocked[T comparable] struct {
	organizer id.ID
	whom      T
}

func newBlockTable(all []Block) *blockTable {
	t := &blockTable{map[blocked[id.ID]]int64{}, map[blocked[Device]]int64{}, map[blocked[netip.Prefix]]int64{}, nil, nil}
	var has4, has6 [129]bool
	for _, b := range all {
		until := b.Until.UnixMilli()
		switch b.Kind {
		case BlockCustomer:
			k := blocked[id.ID]{b.Organizer, b.Customer}
			t.customers[k] = max(until, t.customers[k])
		case BlockDevice:
			k := blocked[Device]{b.Organizer, b.Device}
			t.devices[k] = max(until, t.devices[k])
		case BlockNetwork:
			k := blocked[netip.Prefix]{b.Organizer, b.Network}
			t.networks[k] = max(until, t.networks[k])
			if b.Network.Addr().Is4() {
				has4[b.Network.Bits()] = true
			} else {
				has6[b.Network.Bits()] = true
			}
		}
	}
	for bits := range has4 {
		if has4[bits] {
			t.bits4 = append(t.bits4, bits)
		}
		if has6[bits] {
			t.bits6 = append(t.bits6, bits)
		}
	}
	return t
}

func (t *blockTable) blocked(now int64, organizer, customer id.ID, d Device, a netip.Addr) bool {
	for _, of := range [2]id.ID{organizer, 0} {
		if customer != 0 && t.customers[blocked[id.ID]{of, customer}] > now || !d.IsZero() && t.devices[blocked[Device]{of, d}] > now {
			return true
		}
		a = a.Unmap().WithZone("")
		bits := t.bits6
		if a.Is4() {
			bits = t.bits4
		}
		for _, n := range bits {
			if p, err := a.Prefix(n); err == nil && t.networks[blocked[netip.Prefix]{of, p}] > now {
				return true
			}
		}
	}
	return false
}
