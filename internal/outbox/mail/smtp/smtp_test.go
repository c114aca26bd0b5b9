package smtp

import (
	"context"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	netmail "net/mail"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"onsale/internal/outbox/mail"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func sender(t *testing.T, s *server, adapt func(*Options)) *Sender {
	t.Helper()
	o := Options{Host: "127.0.0.1", Port: s.addr.Port, From: "Onsale 票务 <tickets@example.com>", ReplyTo: "help@example.com", Helo: "onsale.example.com", Timeout: 5 * time.Second}
	if adapt != nil {
		adapt(&o)
	}
	made, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = made.Close() })
	return made
}

func letter() mail.Mail {
	return mail.Mail{
		ID: "ord_1.tickets@example.com", To: mail.Address{Name: "王小明 \"x\" (y), \r\nBcc: x@example.com", Email: "ada@example.com"}, Locale: "zh-CN", Subject: "您的门票：极光",
		HTML: `<p>中文 <img src="cid:a@example.com"></p>`, Text: "中文\n.\nlast\n",
		Attachments: []mail.Attachment{
			{Name: "a.png", Type: "image/png", ContentID: "a@example.com", Data: []byte{0x89, 'P', 'N', 'G', 0, 1, 2}},
			{Name: "event.ics", Type: "text/calendar; charset=utf-8; method=PUBLISH", Data: []byte("BEGIN:VCALENDAR\r\n")},
		},
	}
}

func wantPermanent(t *testing.T, err error, status string) {
	t.Helper()
	var p *mail.PermanentError
	if !errors.As(err, &p) || !strings.HasPrefix(p.Status, status) {
		t.Fatalf("got %v, want the final %s", err, status)
	}
}

func wantTemporary(t *testing.T, err error, status string) {
	t.Helper()
	var later *mail.TemporaryError
	if !errors.As(err, &later) || !strings.HasPrefix(later.Status, status) {
		t.Fatalf("got %v, want the temporary %s", err, status)
	}
}

// parts are all parts of a mail that hold no others, by their type.
func parts(t *testing.T, header map[string][]string, body io.Reader, into map[string]string, kinds *[]string) {
	t.Helper()
	kind, parameters, err := mime.ParseMediaType(header["Content-Type"][0])
	if err != nil {
		t.Fatal(err)
	}
	*kinds = append(*kinds, kind)
	if !strings.HasPrefix(kind, "multipart/") {
		b, err := io.ReadAll(body)
		if err != nil {
			t.Fatal(err)
		}
		into[kind] = string(b)
		into[kind+" id"] = strings.Join(header["Content-Id"], "")
		return
	}
	r := multipart.NewReader(body, parameters["boundary"])
	for {
		p, err := r.NextPart()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		parts(t, p.Header, p, into, kinds)
	}
}

func TestAMailArrivesWhole(t *testing.T) {
	s := serve(t, nil)
	out := sender(t, s, nil)
	if err := out.Send(t.Context(), letter()); err != nil {
		t.Fatal(err)
	}
	got := s.mails()
	if len(got) != 1 || !strings.HasPrefix(got[0].from, "FROM:<tickets@example.com>") || !strings.HasPrefix(got[0].to, "TO:<ada@example.com>") {
		t.Fatalf("%+v", got)
	}
	m, err := netmail.ReadMessage(strings.NewReader(got[0].data))
	if err != nil {
		t.Fatal(err)
	}
	words := new(mime.WordDecoder)
	to, err := m.Header.AddressList("To")
	if err != nil || len(to) != 1 || !strings.HasPrefix(to[0].Name, "王小明 \"x\" (y), ") || to[0].Address != "ada@example.com" {
		t.Errorf("%+v, %v", to, err)
	}
	subject, err := words.DecodeHeader(m.Header.Get("Subject"))
	if err != nil || subject != letter().Subject {
		t.Errorf("%q, %v", subject, err)
	}
	for name, want := range map[string]string{
		"Message-Id": "<ord_1.tickets@example.com>", "Auto-Submitted": "auto-generated", "Content-Language": "zh-CN", "Reply-To": "<help@example.com>", "Bcc": "",
	} {
		if got := m.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	found, kinds := map[string]string{}, []string{}
	parts(t, m.Header, m.Body, found, &kinds)
	for kind, holds := range map[string]string{"text/plain": "last", "text/html": "cid", "text/calendar": "", "image/png": "", "image/png id": "<a@example.com>"} {
		if text, ok := found[kind]; !ok || !strings.Contains(text, holds) {
			t.Errorf("%s: %q in %v", kind, text, kinds)
		}
	}
	if all := strings.Join(kinds, " "); all != "multipart/mixed multipart/related multipart/alternative text/plain text/html image/png text/calendar" {
		t.Errorf("its form is %s", all)
	}
}

func TestTheServersNo(t *testing.T) {
	for name, test := range map[string]struct {
		command, answer string
		final           string // status of a permanent error
		later           string // of a temporary one
	}{
		"no such mailbox":         {"RCPT", "550 5.1.1 <ada@example.com> unknown", "550", ""},
		"mailbox is full":         {"RCPT", "452 4.2.2 full", "", "452"},
		"we may not send":         {"MAIL", "550 5.7.1 not you", "", "550"},
		"busy":                    {"MAIL", "451 4.3.2 later", "", "451"},
		"no data now":             {"DATA", "451 4.3.0 later", "", "451"},
		"content refused":         {"END", "554 5.7.1 spam to ada@example.com", "554", ""},
		"content refused for now": {"END", "451 4.7.1 greylisted", "", "451"},
		"no greeting":             {"GREETING", "421 4.3.2 too many", "", ""},
		"hangs up at once":        {"GREETING", "hangup", "", ""},
		"hangs up at EHLO":        {"EHLO", "hangup", "", ""},
		"hangs up at MAIL":        {"MAIL", "hangup", "", ""},
		"hangs up at RCPT":        {"RCPT", "hangup", "", ""},
		"hangs up at DATA":        {"DATA", "hangup", "", ""},
		"hangs up in the body":    {"BODY", "hangup", "", ""},
		"hangs up at the end":     {"END", "hangup", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(s *server) { s.answers[test.command] = []string{test.answer, test.answer} })
			out := sender(t, s, nil)
			err := out.Send(t.Context(), letter())
			switch {
			case test.final != "":
				wantPermanent(t, err, test.final)
			default:
				wantTemporary(t, err, test.later)
			}
			if strings.Contains(err.Error(), "ada@") {
				t.Errorf("it tells the address: %v", err)
			}
			if n := len(s.mails()); n != 0 {
				t.Errorf("%d mails were taken", n)
			}
			s.mu.Lock()
			s.answers = map[string][]string{}
			s.mu.Unlock()
			if err := out.Send(t.Context(), letter()); err != nil {
				t.Errorf("the next one: %v", err)
			}
		})
	}
}

func TestAMailThatWasTakenIsNotSentAgainForWhatComesAfter(t *testing.T) {
	s := serve(t, func(s *server) { s.answers["RSET"] = []string{"hangup"} })
	out := sender(t, s, nil)
	if err := out.Send(t.Context(), letter()); err != nil {
		t.Fatal(err)
	}
	if n := len(s.mails()); n != 1 {
		t.Errorf("%d mails", n)
	}
}

func TestALineThatBrokeAfterTheMailIsUnknown(t *testing.T) {
	s := serve(t, func(s *server) { s.answers["END"] = []string{"taken hangup"} })
	out := sender(t, s, nil)
	wantTemporary(t, out.Send(t.Context(), letter()), "")
	if err := out.Send(t.Context(), letter()); err != nil {
		t.Fatal(err)
	}
	got := s.mails()
	id := "Message-ID: <ord_1.tickets@example.com>"
	if len(got) != 2 || !strings.Contains(got[0].data, id) || !strings.Contains(got[1].data, id) {
		t.Errorf("the double is not known by its Message-ID: %d mails", len(got))
	}
}

func TestASlowServer(t *testing.T) {
	for _, command := range []string{"GREETING", "EHLO", "MAIL", "RCPT", "DATA", "END"} {
		t.Run(command, func(t *testing.T) {
			s := serve(t, func(s *server) { s.answers[command] = []string{"silence"} })
			out := sender(t, s, func(o *Options) { o.Timeout = 50 * time.Millisecond })
			wantTemporary(t, out.Send(t.Context(), letter()), "")
		})
		t.Run(command+" and the caller gives up", func(t *testing.T) {
			s := serve(t, func(s *server) { s.answers[command] = []string{"silence"} })
			out := sender(t, s, func(o *Options) { o.Timeout = time.Hour })
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			wantTemporary(t, out.Send(ctx, letter()), "")
		})
	}
}

func TestConnectionsAreKept(t *testing.T) {
	s := serve(t, nil)
	out := sender(t, s, nil)
	for range 5 {
		if err := out.Send(t.Context(), letter()); err != nil {
			t.Fatal(err)
		}
	}
	if s.connections != 1 || len(s.mails()) != 5 {
		t.Errorf("%d connections for %d mails", s.connections, len(s.mails()))
	}
	s.hangUp() // while it is idle: the next mail gets a fresh one
	if err := out.Send(t.Context(), letter()); err != nil {
		t.Fatal(err)
	}
	if s.connections != 2 || len(s.mails()) != 6 {
		t.Errorf("%d connections for %d mails", s.connections, len(s.mails()))
	}
}

func TestEncryption(t *testing.T) {
	serving, asking := certificate(t)
	secured := func(s *server) { s.tls, s.user = serving, plain("me", "secret") }
	signIn := func(o *Options) { o.TLS, o.User, o.Password = asking, "me", "secret" }
	t.Run("starttls", func(t *testing.T) {
		s := serve(t, secured)
		out := sender(t, s, func(o *Options) { signIn(o); o.Encryption = StartTLS })
		if err := out.Send(t.Context(), letter()); err != nil {
			t.Fatal(err)
		}
		if got := s.mails(); len(got) != 1 || !got[0].secured || !got[0].auth {
			t.Errorf("%+v", got)
		}
	})
	t.Run("tls", func(t *testing.T) {
		s := serve(t, func(s *server) { secured(s); s.all = true })
		out := sender(t, s, func(o *Options) { signIn(o); o.Encryption = TLS })
		if err := out.Send(t.Context(), letter()); err != nil {
			t.Fatal(err)
		}
		if got := s.mails(); len(got) != 1 || !got[0].secured || !got[0].auth {
			t.Errorf("%+v", got)
		}
	})
	t.Run("a server without it gets nothing", func(t *testing.T) {
		s := serve(t, func(s *server) { s.user = plain("me", "secret") })
		out := sender(t, s, func(o *Options) { signIn(o); o.Encryption = StartTLS })
		wantTemporary(t, out.Send(t.Context(), letter()), "")
		if n := len(s.mails()); n != 0 {
			t.Errorf("%d mails travelled in the open", n)
		}
	})
	t.Run("a certificate that nobody believes", func(t *testing.T) {
		s := serve(t, secured)
		out := sender(t, s, func(o *Options) { signIn(o); o.TLS, o.Encryption = nil, StartTLS })
		wantTemporary(t, out.Send(t.Context(), letter()), "")
	})
	t.Run("a wrong password is no fault of the mail", func(t *testing.T) {
		s := serve(t, secured)
		out := sender(t, s, func(o *Options) { signIn(o); o.Password, o.Encryption = "wrong", StartTLS })
		wantTemporary(t, out.Send(t.Context(), letter()), "535")
		wantTemporary(t, out.Check(t.Context()), "535")
	})
}

func TestOptions(t *testing.T) {
	good := Options{Host: "mail.example.com", Port: 587, From: "tickets@example.com"}
	for name, adapt := range map[string]func(*Options){
		"in the open":      func(o *Options) { o.Encryption = None },
		"another way":      func(o *Options) { o.Encryption = "ssl3" },
		"no sender":        func(o *Options) { o.From = "" },
		"sender is none":   func(o *Options) { o.From = "nobody\r\nBcc: x@example.com" },
		"reply-to is none": func(o *Options) { o.ReplyTo = "nobody" },
		"password alone":   func(o *Options) { o.Password = "x" },
	} {
		o := good
		adapt(&o)
		if _, err := New(o); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	if s, err := New(good); err != nil || s.o.Encryption != StartTLS {
		t.Errorf("%v", err)
	}
}

func TestABadAddressIsFinal(t *testing.T) {
	s := serve(t, nil)
	out := sender(t, s, nil)
	m := letter()
	m.To.Email = "ada@example.com>\r\nRCPT TO:<x@example.com"
	wantPermanent(t, out.Send(t.Context(), m), "address")
	if len(s.mails()) != 0 || s.connections != 0 {
		t.Error("the server has heard of it")
	}
}

func TestAClosedSenderSendsNothing(t *testing.T) {
	s := serve(t, nil)
	out := sender(t, s, nil)
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if out.Send(t.Context(), letter()) == nil {
		t.Error("it was sent")
	}
}
