// Package sandbox is an honest little payment service: it speaks HTTP, keeps durable books of its own, sends signed
// webhooks, and does wrong exactly what it is told to.
//
// It is for demos, tests and rehearsals. The one idea: it is a stranger. It shares no file, no transaction and no memory
// with the ledger, so that an audit which compares both proves something, and so that whatever a real provider may do to
// us (decline, delay, lose an answer, send a webhook twice, late, in the wrong order or never) happens to us here first.
//
// A payment token says what meets an order. TokenOK ("tok_ok") pays and meets what the FaultPlan draws for the order id;
// TokenSure ("tok_sure") pays and meets nothing; "tok_" and names of faults joined by + asks for exactly these, as in
// "tok_pending+webhook_repeat". At most one of the first five, which decide the outcome. Any other token is declined.
//
//	fault             what happens
//	declined          the card is declined, finally
//	declined_soft     declined, not finally: the next Charge under the order id pays
//	pending           the answer is pending; paid after Delays.Pending, told by webhook; can be cancelled until then
//	pending_declined  the same, but it ends declined
//	pay_late          pending for Delays.Late, and cannot be cancelled: it will be paid, whatever became of the hold
//	server_error      the first Charge answers 500 and does nothing
//	lost_answer       the first Charge that does something is booked, then the connection drops without an answer
//	wrong_amount      one minor unit too little is taken or reserved (too much where the amount is 1)
//	second_payment    the order is paid twice: two payments under its id
//	capture_refused   Capture is refused, finally; the payment is voided
//	refund_refused    every Refund is refused, finally
//	webhook_repeat    each webhook of the order comes twice
//	webhook_reorder   the first webhook comes after a later one (then a plain payment also has a "pending" one)
//	webhook_never     no webhook comes
//
// Each fault is counted when it has really happened (FaultCounts, GET /v1/faults), and the counts are as durable as the
// payments.
//
// Start reading at Service (the books and what is done to them: charge.go, settle.go), then Client, which is the adapter
// to the port. http.go is the wire between the two, deliver.go what happens by itself, books.go the file.
package sandbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// Limits.
const (
	jobsMax             = 4096     // changes waiting for the books' writer
	batchMax            = 256      // changes in one transaction
	readersMax          = 4        // connections that read
	dueMax              = 256      // pending payments ended, and webhooks sent, in one step
	sendersMax          = 32       // webhooks on their way at once
	deliveryTriesMax    = 60       // then a webhook is given up
	refundsOfPaymentMax = 50       // then a refund is refused
	requestBytesMax     = 64 << 10 // of a request to the service
	responseBytesMax    = 8 << 20  // of an answer that the client reads
	listPageSize        = 250      // payments a page that the client asks for
	apiKeyBytesMin      = 16
	secretBytesMin      = 32
	retryDelayMax       = time.Minute // between two tries of one webhook
	webhookTimeout      = 10 * time.Second
)

// Codes of declines and refusals.
const (
	declineCard         = "card_declined"
	declineTryAgain     = "try_again_later"
	declineTokenUnknown = "token_unknown"
	refusalCapture      = "capture_refused"
	refusalRefund       = "refund_refused"
)

// Config is what a Service needs.
type Config struct {
	Path   string // the file of the books; made where missing
	APIKey string // what clients must show; at least 16 bytes
	// Account is the merchant's name in webhooks; books belong to one. Defaults to "sandbox".
	Account       string
	WebhookSecret []byte // signs webhooks; at least 32 bytes
	// WebhookURL is where webhooks go. Empty: they are kept until SetWebhookURL names it.
	WebhookURL string
	Plan       FaultPlan // what meets orders paid with TokenOK. Defaults to nothing
	Delays     Delays
	Listen     string           // address of a Server, on a loopback interface. Defaults to "127.0.0.1:0"
	Now        func() time.Time // Defaults to time.Now
	Random     io.Reader        // source of the books' id. Defaults to crypto/rand
	Log        *slog.Logger     // Defaults to discarding
}

// Delays of what happens by itself.
type Delays struct {
	Pending  time.Duration // until a pending payment ends. Defaults to 2 s
	Late     time.Duration // until a payment that comes late is paid. Defaults to 30 s
	Repeat   time.Duration // between a webhook and its repetition. Defaults to 1 s
	HoldBack time.Duration // how long a reordered webhook waits for a later one at most. Defaults to 10 s
	Retry    time.Duration // before the second try of a webhook; doubles with each, up to a minute. Defaults to 1 s
}

func (c *Config) fill() error {
	if c.Path == "" {
		return errors.New("sandbox: Path is empty; name a file for the books")
	}
	if len(c.APIKey) < apiKeyBytesMin {
		return fmt.Errorf("sandbox: APIKey has %d bytes; use at least %d", len(c.APIKey), apiKeyBytesMin)
	}
	if len(c.WebhookSecret) < secretBytesMin {
		return fmt.Errorf("sandbox: WebhookSecret has %d bytes; use at least %d", len(c.WebhookSecret), secretBytesMin)
	}
	if err := c.Plan.Validate(); err != nil {
		return err
	}
	if c.WebhookURL != "" {
		if err := checkURL(c.WebhookURL); err != nil {
			return fmt.Errorf("sandbox: WebhookURL: %w", err)
		}
	}
	if c.Account == "" {
		c.Account = "sandbox"
	}
	if c.Listen == "" {
		c.Listen = "127.0.0.1:0"
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Random == nil {
		c.Random = rand.Reader
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	for _, d := range []struct {
		delay    *time.Duration
		standard time.Duration
	}{
		{&c.Delays.Pending, 2 * time.Second}, {&c.Delays.Late, 30 * time.Second}, {&c.Delays.Repeat, time.Second},
		{&c.Delays.HoldBack, 10 * time.Second}, {&c.Delays.Retry, time.Second},
	} {
		if *d.delay < 0 {
			return errors.New("sandbox: Delays must not be negative")
		}
		if *d.delay == 0 {
			*d.delay = d.standard
		}
	}
	return nil
}

func checkURL(text string) error {
	u, err := url.Parse(text)
	if err != nil {
		return err
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("%q is not an http or https URL", text)
	}
	return nil
}

// Service is the payment service without a listener: Handler serves its API, RunDue or Run does what happens by itself.
type Service struct {
	books      *books
	account    string
	apiKey     string
	secret     []byte
	plan       FaultPlan
	delays     Delays
	now        func() time.Time
	log        *slog.Logger
	webhookURL atomic.Pointer[string]
	sender     *http.Client

	// One place each, so that news is never lost and never blocks.
	completeWake, deliverWake chan struct{}
	background                sync.WaitGroup
}

// Open opens the books and answers a service on them. Close it.
func Open(c Config) (*Service, error) {
	if err := c.fill(); err != nil {
		return nil, err
	}
	s := &Service{
		account: c.Account, apiKey: c.APIKey, secret: c.WebhookSecret, plan: c.Plan, delays: c.Delays,
		now:          func() time.Time { return c.Now().UTC().Truncate(time.Millisecond) }, // as fine as the books keep it
		log:          c.Log,
		sender:       newSender(),
		completeWake: make(chan struct{}, 1), deliverWake: make(chan struct{}, 1),
	}
	s.webhookURL.Store(&c.WebhookURL)
	var err error
	s.books, err = openBooks(c.Path, c.Account, c.Random, s.wake)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Close closes the books. Calls after it fail; Run must have ended.
func (s *Service) Close() error {
	s.background.Wait()
	s.sender.CloseIdleConnections()
	return s.books.close()
}

// SetWebhookURL says where webhooks go from now on; empty keeps them.
func (s *Service) SetWebhookURL(text string) error {
	if text != "" {
		if err := checkURL(text); err != nil {
			return fmt.Errorf("sandbox: webhook URL: %w", err)
		}
	}
	s.webhookURL.Store(&text)
	s.wake()
	return nil
}

// FaultCounts says how often each fault has happened, over the life of the books; faults that never did are 0.
func (s *Service) FaultCounts(ctx context.Context) (map[Fault]int64, error) {
	counts := map[Fault]int64{}
	for _, f := range Faults() {
		counts[f] = 0
	}
	rows, err := s.books.read.QueryContext(ctx, "SELECT fault, occurred_count FROM faults")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var f Fault
		var n int64
		if err := rows.Scan(&f, &n); err != nil {
			return nil, err
		}
		counts[f] = n
	}
	return counts, rows.Err()
}

// Server is a Service on a listener of its own.
type Server struct {
	*Service
	http     *http.Server
	listener net.Listener
	stopRun  context.CancelFunc
	served   chan error
}

// Start opens the books, listens, and does what is due from now on. It refuses an address that is not loopback: whoever
// reaches the sandbox can pay without money.
func Start(c Config) (*Server, error) {
	s, err := Open(c)
	if err != nil {
		return nil, err
	}
	listen := c.Listen
	if listen == "" {
		listen = "127.0.0.1:0"
	}
	host, _, err := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); err == nil && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		err = fmt.Errorf("sandbox: listen address %q is not loopback; use 127.0.0.1 or [::1]", listen)
	}
	var listener net.Listener
	if err == nil {
		listener, err = net.Listen("tcp", listen)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	v := &Server{Service: s, listener: listener, stopRun: cancel, served: make(chan error, 1)}
	v.http = &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	s.background.Go(func() { s.Run(ctx) })
	go func() { v.served <- v.http.Serve(listener) }()
	return v, nil
}

// URL is where the service listens, without a path.
func (v *Server) URL() string { return "http://" + v.listener.Addr().String() }

// Stop ends the service: requests under way are answered unless ctx ends first, then the books are closed.
func (v *Server) Stop(ctx context.Context) error {
	v.stopRun()
	err := v.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, v.http.Close())
	}
	if served := <-v.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return errors.Join(err, v.Close())
}
