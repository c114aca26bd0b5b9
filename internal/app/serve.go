package app

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"onsale/internal/booking"
	"onsale/internal/catalog"
	"onsale/internal/control"
	"onsale/internal/door"
	"onsale/internal/httpapi"
	"onsale/internal/id"
	"onsale/internal/identity"
	"onsale/internal/inventory"
	"onsale/internal/keys"
	"onsale/internal/ledger"
	"onsale/internal/outbox"
	"onsale/internal/outbox/mail"
	"onsale/internal/payment"
	"onsale/internal/ticket"
)

// Serve opens what serves, runs until ctx ends, and stops in order: no new requests, those under way end, background
// work ends, the batcher drains. It returns nil after an orderly stop.
func (a *App) Serve(ctx context.Context) error {
	s := &a.Settings
	public, err := net.Listen("tcp", s.Listen)
	if err != nil {
		return fmt.Errorf("listening on %s: %w (is another server there? use --listen)", s.Listen, err)
	}
	defer public.Close()
	if err := a.openServing(ctx, public.Addr()); err != nil {
		return err
	}
	handler, err := a.handler()
	if err != nil {
		return err
	}
	var internal, admin net.Listener
	if s.InternalListen != "" {
		if internal, err = net.Listen("tcp", s.InternalListen); err != nil {
			return fmt.Errorf("listening on %s for /readyz and /metrics: %w (is another server there? use --metrics-listen)", s.InternalListen, err)
		}
		defer internal.Close()
	}
	if admin, err = a.listenAdmin(); err != nil {
		return err
	}
	defer os.Remove(admin.Addr().String())
	defer admin.Close()

	bounded := a.bounded(public)
	servers := []*http.Server{a.server(handler)}
	servers[0].ConnState = bounded.state
	listeners := []net.Listener{bounded}
	servers, listeners = append(servers, a.server(a.Admin())), append(listeners, admin)
	if internal != nil {
		servers, listeners = append(servers, a.server(a.internal())), append(listeners, internal)
	}
	failed := make(chan error, len(servers)+1)
	serve := func(i int) {
		go func() {
			if err := servers[i].Serve(listeners[i]); !errors.Is(err, http.ErrServerClosed) {
				failed <- err
			}
		}()
	}
	// Customers, the first of the listeners, wait at the door until everything is ready: else an event whose board is not
	// loaded yet would be unknown to those who come first after a restart.
	for i := 1; i < len(servers); i++ {
		serve(i)
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var work sync.WaitGroup
	a.background(background, &work, func(err error) {
		select {
		case failed <- err:
		default: // it stops already
		}
	})
	defer func() { stop(); work.Wait() }()

	if err := a.prepare(ctx); err != nil {
		return errors.Join(err, shutdown(servers, time.Second))
	}
	serve(0)
	a.ready.Store(true)
	if s.Started != nil {
		at := Addresses{Public: public.Addr()}
		if internal != nil {
			at.Internal = internal.Addr()
		}
		s.Started(at)
	}
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	a.ready.Store(false)
	a.Inventory.Close() // ends the seat streams, which would not end by themselves
	a.Rooms.Close()     // and those of lines
	return errors.Join(err, shutdown(servers, cmp.Or(s.ShutdownGrace, 15*time.Second)))
}

func shutdown(servers []*http.Server, grace time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	var err error
	for _, s := range servers {
		if e := s.Shutdown(ctx); e != nil {
			err = errors.Join(err, e, s.Close())
		}
	}
	return err
}

// server makes an HTTP server that no slow client can hold on to.
func (a *App) server(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       cmp.Or(a.Settings.ReadTimeout, 15*time.Second),
		WriteTimeout:      payment.AttemptTimeoutMax + 15*time.Second, // a booking may wait for the provider; streams set their own
		IdleTimeout:       cmp.Or(a.Settings.IdleTimeout, time.Minute),
		MaxHeaderBytes:    32 << 10,
	}
}

// openServing opens the parts that only a server needs.
func (a *App) openServing(ctx context.Context, public net.Addr) error {
	s := &a.Settings
	a.Inventory = inventory.New(a.Batcher, inventory.Options{
		Logger: a.Log, SubscribersMax: s.SubscribersMax, NoPromptRelease: s.NoPromptRelease, NoSweep: s.NoSweep,
	})
	if err := a.openProvider(ctx, public); err != nil {
		return err
	}
	issuers := slices.Clone(s.Issuers)
	var err error
	if s.Demo || s.Throwaway {
		if a.Throwaway, err = identity.LoadThrowaway(s.Data); err != nil {
			return err
		}
		issuers = append(issuers, a.Throwaway.Issuer())
	}
	if a.Identity, err = identity.New(identity.Options{Issuers: issuers, Store: a.Control.Identities(), NewID: a.NewID}); err != nil {
		return err
	}
	if err := a.openSignIn(ctx); err != nil {
		return err
	}
	a.Booking = booking.New(booking.Options{
		Shard: shard{a}, Webhooks: a.Store, Provider: a.Provider, IDs: ids(a.NewID), Number: shardNumber,
		Authorize: s.Payment.Authorize, AttemptTimeout: s.Payment.AttemptTimeout, RecoverAfter: s.Payment.RecoverAfter, TalksMax: s.Payment.TalksMax, Logger: a.Log,
		Alert: func(ctx context.Context, what string, order id.ID, err error) {
			a.metrics.alerts.WithLabelValues("money").Inc()
			a.Log.ErrorContext(ctx, "alert: "+what, "booking", order.Text(id.Order), "error", err)
		},
	})
	if err := a.openRooms(ctx); err != nil {
		return err
	}
	if err := a.openWebhooks(); err != nil {
		return err
	}
	handlers := []outbox.Handler{a.hooks, outbox.HandlerFunc(a.forgetNames)}
	if a.mails != nil {
		handlers = append(handlers, a.mails)
	}
	a.relay = newRelay(a.Store, a.Log, handlers...)
	a.metrics.watch(a)
	return nil
}

type ids func(shard int) (id.ID, error)

func (f ids) Next(shard int) (id.ID, error) { return f(shard) }

// fieldKey derives the secret under which fields of idempotent requests are hashed: from all keys of that purpose it
// takes the oldest that still checks, so that a rotation does not make a repeat look like another request.
func (a *App) fieldKey() []byte {
	all := a.Keys.Checking(keys.Idempotency)
	m := hmac.New(sha256.New, all[len(all)-1].Secret())
	m.Write([]byte("fields of idempotent requests"))
	return m.Sum(nil)
}

func (a *App) handler() (http.Handler, error) {
	webhooks := map[string]func(context.Context, payment.Header, []byte) error{}
	if _, ok := a.Provider.(payment.Notifier); ok {
		webhooks[a.Provider.Name()] = a.Booking.Webhook
	}
	limiter, err := a.limiter()
	if err != nil {
		return nil, err
	}
	var resend func(context.Context, id.ID) error
	if a.desk != nil {
		resend = a.resend
	}
	api, err := httpapi.New(httpapi.Options{
		People: a.People, Codes: a.desk != nil, Endpoints: a.endpoints, Resend: resend, Providers: a.providers, Limiter: limiter, Shed: httpapi.NewShed(httpapi.DefaultShed()), TrustedProxies: a.Settings.TrustedProxies, PublicURL: a.Settings.PublicURL,
		EventChanged: a.loadIfServing, Restart: a.restart, Audit: a.auditEvent,
		Catalog: a.Catalog, Inventory: a.Inventory, Booking: a.Booking, Ledger: a.Store, Commands: a.Batcher,
		Identity: authenticator{a.Identity}, NewID: a.NewID, FieldKey: a.fieldKey(),
		TicketKey: func() (ticket.Key, error) {
			return ticket.SigningKey(a.Keys, a.Provider.Mode() == payment.Test)
		},
		JWKS: func() ([]byte, error) {
			return keys.JWKS(slices.Concat(a.Keys.Checking(keys.Ticket), a.Keys.Checking(keys.TicketTest), a.Keys.Checking(keys.Admission)))
		},
		Door: door.New(door.Options{
			Shard: shard{a}, Events: a.Catalog, Keys: func() ticket.PublicKeys { return ticket.CheckingKeys(a.Keys) }, Test: a.Provider.Mode() == payment.Test,
		}),
		Rooms: a.Rooms, Gate: a.Gate, Presale: a.Presale, Waitlist: a.Waitlist, Blocks: a.blocks, Evidence: a.evidence, EvidenceStore: a.Control.Evidence(), Pictures: a.pictures,
		ObserveHold: a.Rooms.ObserveHold,
		Webhooks:    webhooks, Observe: a.metrics.request, Demo: a.Settings.Demo, Data: shortPath(a.Settings.Data), Version: a.Settings.Version, Logger: a.Log,
	})
	if err != nil || a.Mailbox == nil {
		return api, err
	}
	mux := http.NewServeMux() // a demo shows its mails beside the API
	mux.Handle(MailboxPath, a.Mailbox)
	mux.Handle(MailboxPath+"/", a.Mailbox)
	mux.Handle("/", api)
	return mux, nil
}

type authenticator struct{ v *identity.Verifier }

func (a authenticator) Authenticate(ctx context.Context, token string) (id.ID, error) {
	c, err := a.v.Authenticate(ctx, token)
	return c.ID, err
}

// background starts what runs beside the requests. lost is told that this process must stop.
func (a *App) background(ctx context.Context, work *sync.WaitGroup, lost func(error)) {
	work.Go(func() { a.Inventory.Run(ctx) })
	work.Go(func() { a.writeToPeople(ctx) })
	work.Go(func() { a.Search.Run(ctx, searchEvery, nil) })
	a.relay.Start()
	work.Go(func() { <-ctx.Done(); a.relay.Stop() })
	work.Go(func() {
		for {
			select {
			case event := <-a.stopped:
				a.alertOwners(ctx, mail.AlertInvariant, event)
			case <-ctx.Done():
				return
			}
		}
	})
	a.dispatcher.Start()
	work.Go(func() { <-ctx.Done(); a.dispatcher.Stop() })
	work.Go(func() {
		a.Catalog.Run(ctx, healEvery, func(_ int, failed error) {
			if failed != nil && ctx.Err() == nil {
				a.Log.Warn("events could not be sent to the ledger; they will be", "error", failed)
			}
		})
	})
	a.waiting(ctx, work)
	a.every(ctx, work, loadEvery, "loading events", a.loadEvents)
	a.every(ctx, work, recoverEvery, "recovering bookings", func(ctx context.Context) error {
		for { // after a hot sale there may be thousands of captures due: what a full round leaves need not wait
			done, err := a.Booking.Recover(ctx)
			if err != nil || !done.More {
				return err
			}
		}
	})
	a.every(ctx, work, compareEvery, "comparing with the provider's books", func(ctx context.Context) error {
		for {
			more, err := a.Booking.Compare(ctx)
			if err != nil || !more {
				return err
			}
		}
	})
	a.every(ctx, work, keysEvery, "reading keys that other nodes have made", a.Keys.Reload)
	a.every(ctx, work, erasuresEvery, "keeping the list of erasures", a.keepErasures)
	a.every(ctx, work, nodeTTL/4, "renewing the node number", func(ctx context.Context) error {
		err := a.node.Renew(ctx, nodeTTL)
		if errors.Is(err, control.ErrNodeLost) { // ids made from now on could be another's
			lost(err)
		}
		return err
	})
}

// every repeats a job until ctx ends.
func (a *App) every(ctx context.Context, work *sync.WaitGroup, every time.Duration, what string, job func(context.Context) error) {
	work.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := job(ctx); err != nil && ctx.Err() == nil {
				a.Log.WarnContext(ctx, what+" failed and will be tried again", "error", err)
			}
		}
	})
}

// prepare does what must be done before the first request is served well (B4).
func (a *App) prepare(ctx context.Context) error {
	if a.Settings.Demo {
		if err := a.demoContent(ctx); err != nil {
			return fmt.Errorf("the demo's events: %w", err)
		}
	}
	// One event that is not in order keeps no other from selling; only stores that are away keep the server down.
	_, refused, err := a.Catalog.Restore(ctx)
	if err != nil {
		return err
	}
	for _, e := range refused {
		a.alertEvent(ctx, "the ledger was not told of an event", e.Event, e.Err)
	}
	if err := a.checkPrices(ctx); err != nil {
		return err
	}
	if err := a.loadAll(ctx, func(e *catalog.Event, err error) {
		a.alertEvent(ctx, "an event does not sell: it cannot be loaded", e.ID, err)
	}); err != nil {
		return err
	}
	if _, err = a.Store.NextExpiry(ctx); err != nil { // where the ledger is away, no event was to blame
		return err
	}
	return a.roomsReady(ctx)
}

func (a *App) alertEvent(ctx context.Context, what string, event id.ID, err error) {
	a.metrics.alerts.WithLabelValues("event").Inc()
	a.Log.ErrorContext(ctx, "alert: "+what, "event", event.Text(id.Event), "error", err)
}

// checkPrices refuses to sell for money without anybody to take it (E1).
func (a *App) checkPrices(ctx context.Context) error {
	if a.Provider.Name() != noProvider {
		return nil
	}
	rows, err := a.Store.Events(ctx)
	if err != nil {
		return err
	}
	for _, e := range rows {
		priced := slices.ContainsFunc(e.Tiers, func(t ledger.Tier) bool { return t.Face+t.Fee > 0 })
		if priced && (e.State == ledger.OnSale || e.State == ledger.Paused) && e.SaleCloses > ledger.TimeOf(time.Now()) {
			return fmt.Errorf("event %s has prices and there is no payment provider: set payment.provider: stripe, use --demo for the sandbox, or close the event first", e.ID.Text(id.Event))
		}
	}
	return nil
}

// loadEvents is loadAll, with what failed as one error.
func (a *App) loadEvents(ctx context.Context) error {
	var failed error
	err := a.loadAll(ctx, func(_ *catalog.Event, err error) { failed = errors.Join(failed, err) })
	return errors.Join(failed, err)
}

// loadAll makes the boards of events on sale or opening soon, and lets go of those that are over. failed is told of each
// that cannot be loaded; an error says that the events are not to be had.
func (a *App) loadAll(ctx context.Context, failed func(*catalog.Event, error)) error {
	a.loading.Lock()
	defer a.loading.Unlock()
	now := time.Now()
	wanted := map[id.ID]bool{}
	q := catalog.Query{From: now.Add(-24 * time.Hour), Max: catalog.QueryMax}
	for {
		page, err := a.Catalog.Events(ctx, q)
		if err != nil {
			return err
		}
		for i := range page.Events {
			e := &page.Events[i]
			if e.State == catalog.Draft || e.State == catalog.Cancelled || e.SaleOpens.After(now.Add(loadAhead)) || e.SaleCloses.Add(24*time.Hour).Before(now) {
				continue
			}
			wanted[e.ID] = true
			if err := a.load(ctx, e); err != nil {
				failed(e, err)
			}
		}
		if page.Next == (catalog.Cursor{}) {
			break
		}
		q.After = page.Next
	}
	for event := range a.loaded {
		if !wanted[event] {
			a.Inventory.Unload(event)
			delete(a.loaded, event)
		}
	}
	return nil
}

func (a *App) load(ctx context.Context, e *catalog.Event) error {
	if version, ok := a.loaded[e.ID]; ok && version == e.Version {
		return nil
	}
	plan, err := a.Catalog.Plan(ctx, e.PlanHash)
	if err != nil {
		return err
	}
	if err := a.Inventory.Load(ctx, e.ID, plan, rules(e)); err != nil {
		return err
	}
	a.loaded[e.ID] = e.Version
	return nil
}

// rules are an event's rules about single seats as the inventory takes them.
func rules(e *catalog.Event) inventory.Rules {
	r := inventory.Rules{FewSeats: e.Orphans.FewSeatsLeft, SplitReleaseBefore: e.Orphans.SplitReleaseBefore.Std()}
	switch e.Orphans.Mode {
	case catalog.OrphansWarn:
		r.HandPicked = inventory.OrphanWarn
	case catalog.OrphansRefuse:
		r.HandPicked = inventory.OrphanRefuse
	}
	if r.FewSeats == 0 {
		r.FewSeats = -1
	}
	if r.SplitReleaseBefore == 0 {
		r.SplitReleaseBefore = -1
	}
	return r
}

// derived is a secret made from the webhook key, for one use.
func (a *App) derived(key keys.Key, use string) []byte {
	m := hmac.New(sha256.New, key.Secret())
	m.Write([]byte(use))
	return m.Sum(nil)
}

// webhookURL is where the sandbox sends its notices: to this server, over loopback where it listens there.
func webhookURL(public net.Addr, provider string) string {
	host, port, err := net.SplitHostPort(public.String())
	if ip := net.ParseIP(host); err != nil || ip == nil || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port) + "/v1/payments/" + provider + "/webhook"
}

func (a *App) sandboxSecrets() (apiKey string, webhook [][]byte) {
	for _, key := range a.Keys.Checking(keys.Webhook) {
		webhook = append(webhook, a.derived(key, "sandbox webhook"))
	}
	// The oldest key: the books know their clients by it.
	all := a.Keys.Checking(keys.Webhook)
	return hex.EncodeToString(a.derived(all[len(all)-1], "sandbox api")), webhook
}
