// Package smtp hands mails to a mail server by SMTP.
//
// The one idea: what the server said decides. A 5xx to the mail is its final no (mail.PermanentError), a 4xx, a broken line
// or a time-out is "later" (mail.TemporaryError, or any other error): also where the line broke after the whole mail was
// sent, and it may have been taken; it then comes twice, with the same Message-ID. A refusal of us (of our password or
// address, of the lack of encryption) is never the mail's fault: it is tried again until somebody has mended the settings.
//
// Connections are kept for a little while, since hundreds of mails go out in a row. Nothing here logs or returns an
// address: servers repeat addresses in their answers, so only codes of answers are told (E10).
//
// Start reading at Sender.Send.
package smtp

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	netmail "net/mail"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	gomail "github.com/wneessen/go-mail"
	wire "github.com/wneessen/go-mail/smtp"

	"onsale/internal/outbox/mail"
)

// Bounds of a sender.
const (
	timeoutDefault = 30 * time.Second
	idleMax        = 4 // connections kept
	idleFor        = 20 * time.Second
)

// Encryption says how the line is protected.
type Encryption string

// The ways.
const (
	StartTLS Encryption = "starttls" // port 587; a server that does not offer it is refused
	TLS      Encryption = "tls"      // port 465: from the first byte
	None     Encryption = "none"     // to a loopback address only
)

// Options say where the server is.
type Options struct {
	Host string
	Port int
	// Encryption defaults to StartTLS; on a loopback address an empty one is None.
	Encryption Encryption
	User       string // "": no sign-in
	Password   string
	From       string // "Tickets <tickets@example.com>"
	ReplyTo    string // "": none
	Helo       string // the name by which we introduce ourselves. Defaults to the machine's
	// Timeout bounds connecting, and then sending one mail. Defaults to 30 s.
	Timeout time.Duration
	// TLS is for tests: roots of their own. Defaults to the system's, TLS 1.2 at least.
	TLS *tls.Config
}

// A Sender is a mail.Sender. Close it.
type Sender struct {
	o      Options
	client *gomail.Client
	config *tls.Config

	mu     sync.Mutex
	idle   []*line
	closed bool
}

// A line is a connection that is signed in.
type line struct {
	client *wire.Client
	conn   net.Conn
	since  time.Time // idle
}

// close hangs up at once, also on somebody who waits for an answer: go-mail's own Close waits for them.
func (l *line) close() { _ = l.conn.Close() }

// New checks the options; it does not connect. Errors name the mend.
func New(o Options) (*Sender, error) {
	o.Timeout = cmp.Or(o.Timeout, timeoutDefault)
	if o.Encryption == "" {
		o.Encryption = StartTLS
		if loopback(o.Host) {
			o.Encryption = None
		}
	}
	if o.Encryption == None && !loopback(o.Host) {
		return nil, fmt.Errorf("smtp: mails to %s would travel in the open: use starttls or tls; none is for a loopback address", o.Host)
	}
	if o.User == "" && o.Password != "" {
		return nil, errors.New("smtp: a password without a user: give both or neither")
	}
	s := &Sender{o: o}
	options := []gomail.Option{gomail.WithPort(o.Port), gomail.WithTimeout(o.Timeout), gomail.WithoutNoop(), gomail.WithDialContextFunc(s.open)}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: o.Host}
	if o.TLS != nil {
		config = o.TLS.Clone()
		config.ServerName = cmp.Or(config.ServerName, o.Host)
	}
	s.config = config
	options = append(options, gomail.WithTLSConfig(config))
	switch o.Encryption {
	case StartTLS:
		options = append(options, gomail.WithTLSPolicy(gomail.TLSMandatory))
	case TLS, None: // of TLS, open has seen to it before go-mail says a word
		options = append(options, gomail.WithTLSPolicy(gomail.NoTLS))
	default:
		return nil, fmt.Errorf("smtp: encryption %q: write starttls, tls or none", o.Encryption)
	}
	if o.Helo != "" {
		options = append(options, gomail.WithHELO(o.Helo))
	}
	var err error
	if s.client, err = gomail.NewClient(o.Host, options...); err != nil {
		return nil, fmt.Errorf("smtp: %w", err)
	}
	if _, err := s.message(mail.Mail{ID: "check@localhost", To: mail.Address{Email: "check@example.com"}}); err != nil {
		return nil, fmt.Errorf("smtp: from or reply-to: %w: write it like Tickets <tickets@example.com>", err)
	}
	return s, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Send implements mail.Sender.
func (s *Sender) Send(ctx context.Context, m mail.Mail) error {
	message, err := s.message(m)
	if err != nil {
		return &mail.PermanentError{Status: "address"} // the only thing in it that somebody else chose
	}
	for {
		l, fresh, err := s.line(ctx)
		if err != nil {
			return judge(err, false)
		}
		stop := context.AfterFunc(ctx, l.close)
		err = s.client.SendWithSMTPClient(l.client, message)
		if stop() && err == nil {
			s.keep(l)
			return nil
		}
		l.close()
		switch {
		case err == nil || message.IsDelivered():
			return nil // it was taken; only what came after failed
		case !fresh && ctx.Err() == nil && beforeAnything(err):
			continue // the server had hung up on the idle line
		}
		return judge(errors.Join(err, ctx.Err()), true)
	}
}

// beforeAnything says that a line broke before the server had heard of the mail.
func beforeAnything(err error) bool {
	var failed *gomail.SendError
	if !errors.As(err, &failed) {
		return false
	}
	return failed.Reason == gomail.ErrConnCheck || failed.Reason == gomail.ErrSMTPMailFrom && failed.ErrorCode() == 0
}

// line is an idle connection, or a fresh one.
func (s *Sender) line(ctx context.Context) (l *line, fresh bool, err error) {
	for {
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			return nil, false, errors.New("the sender is closed")
		}
		if len(s.idle) == 0 {
			s.mu.Unlock()
			l, err := s.dial(ctx)
			return l, true, err
		}
		l = s.idle[len(s.idle)-1]
		s.idle = s.idle[:len(s.idle)-1]
		s.mu.Unlock()
		if time.Since(l.since) < idleFor {
			return l, false, nil
		}
		l.close()
	}
}

// opened is a context's place for the connection that open makes: go-mail keeps it to itself, and forgets it on errors.
type opened struct {
	ctx  context.Context
	conn net.Conn
	stop func() bool
}

type openedKey struct{}

func (s *Sender) open(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if s.o.Encryption == TLS {
		protected := tls.Client(conn, s.config)
		if err := protected.HandshakeContext(ctx); err != nil {
			_ = conn.Close()
			return nil, err
		}
		conn = protected
	}
	o := ctx.Value(openedKey{}).(*opened)
	o.conn, o.stop = conn, context.AfterFunc(o.ctx, // not ctx, which go-mail ends when it has connected
		func() { _ = conn.Close() })
	return conn, nil
}

func (s *Sender) dial(ctx context.Context) (*line, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	o := opened{ctx: ctx}
	client, err := s.client.DialToSMTPClientWithContext(context.WithValue(ctx, openedKey{}, &o))
	if err == nil {
		err = s.signIn(client)
	}
	if o.stop != nil && !o.stop() {
		err = errors.Join(err, ctx.Err())
	}
	if err != nil {
		if o.conn != nil {
			_ = o.conn.Close()
		}
		return nil, err
	}
	return &line{client: client, conn: o.conn}, nil
}

// signIn proves who we are, where there is a user.
func (s *Sender) signIn(client *wire.Client) error {
	if s.o.User == "" {
		return nil
	}
	_, offered := client.Extension("AUTH")
	local := s.o.Encryption == None // the line stays in this machine
	switch {
	case strings.Contains(offered, "PLAIN"):
		return client.Auth(wire.PlainAuth("", s.o.User, s.o.Password, s.o.Host, local))
	case strings.Contains(offered, "LOGIN"):
		return client.Auth(wire.LoginAuth(s.o.User, s.o.Password, s.o.Host, local))
	}
	return fmt.Errorf("the mail server offers neither AUTH PLAIN nor LOGIN, but %q", offered)
}

// keep lets the next mail have the line.
func (s *Sender) keep(l *line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.idle) >= idleMax {
		l.close()
		return
	}
	l.since = time.Now()
	s.idle = append(s.idle, l)
}

// Close ends the idle connections.
func (s *Sender) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, l := range s.idle {
		l.close()
	}
	s.idle = nil
	return nil
}

// Check connects and signs in, for doctor.
func (s *Sender) Check(ctx context.Context) error {
	l, _, err := s.line(ctx)
	if err != nil {
		return judge(err, false)
	}
	s.keep(l)
	return nil
}

// judge turns what went wrong into the port's words. about says that the mail was being spoken of; before, a refusal is of
// us.
func judge(err error, about bool) error {
	var failed *gomail.SendError
	if errors.As(err, &failed) && failed.ErrorCode() != 0 {
		status := strings.TrimSpace(fmt.Sprintf("%d %s", failed.ErrorCode(), failed.EnhancedStatusCode()))
		// A refused sender address is a fault of ours, not of this mail.
		if about && failed.ErrorCode()/100 == 5 && failed.Reason != gomail.ErrSMTPMailFrom {
			return &mail.PermanentError{Status: status}
		}
		return &mail.TemporaryError{Status: status}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &mail.TemporaryError{Status: "no answer in time"}
	}
	var answer *textproto.Error
	if errors.As(err, &answer) {
		return &mail.TemporaryError{Status: strconv.Itoa(answer.Code)}
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return &mail.TemporaryError{Status: "no answer in time"}
	}
	if !about {
		return &mail.TemporaryError{Status: "not reached"}
	}
	return &mail.TemporaryError{Status: "the line broke"}
}

// message is the mail in go-mail's form. Errors are of addresses.
func (s *Sender) message(m mail.Mail) (*gomail.Msg, error) {
	message := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	if err := message.From(s.o.From); err != nil {
		return nil, err
	}
	if s.o.ReplyTo != "" {
		if err := message.ReplyTo(s.o.ReplyTo); err != nil {
			return nil, err
		}
	}
	if err := address(message, m.To); err != nil {
		return nil, err
	}
	message.Subject(m.Subject)
	message.SetDate()
	message.SetMessageIDWithValue(m.ID)
	message.SetGenHeader("Auto-Submitted", "auto-generated")
	message.SetGenHeader("Content-Language", m.Locale)
	message.SetBodyString(gomail.TypeTextPlain, m.Text)
	message.AddAlternativeString(gomail.TypeTextHTML, m.HTML)
	for _, a := range m.Attachments {
		options := []gomail.FileOption{gomail.WithFileContentType(gomail.ContentType(a.Type))}
		put := message.AttachReader
		if a.ContentID != "" {
			options = append(options, gomail.WithFileContentID("<"+a.ContentID+">"))
			put = message.EmbedReader
		}
		if err := put(a.Name, strings.NewReader(string(a.Data)), options...); err != nil {
			return nil, err
		}
	}
	return message, nil
}

// address sets who gets it. The name is quoted and encoded whatever it is; the address must be one and nothing else.
func address(message *gomail.Msg, to mail.Address) error {
	parsed, err := netmail.ParseAddress(to.Email)
	if err != nil || parsed.Address != to.Email || parsed.Name != "" {
		return errors.New("it is not an address")
	}
	name := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, to.Name)
	message.AddToMailAddress(&netmail.Address{Name: name, Address: parsed.Address})
	return nil
}
