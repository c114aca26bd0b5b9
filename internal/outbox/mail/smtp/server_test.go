package smtp

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// A server is a small mail server on a loopback address. It speaks as much SMTP as these tests need, and can be told to
// refuse, hang up or fall silent at any command.
type server struct {
	t    *testing.T
	addr *net.TCPAddr
	tls  *tls.Config // nil: it does not offer STARTTLS
	user string      // base64 of the expected PLAIN answer, "" for no AUTH
	all  bool        // TLS from the first byte

	mu          sync.Mutex
	answers     map[string][]string // by command: answers to give first; "hangup", "silence"
	taken       []taken
	connections int
	open        map[net.Conn]bool
	done        sync.WaitGroup
}

type taken struct {
	from, to, data string
	secured, auth  bool
}

func serve(t *testing.T, adapt func(*server)) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, addr: l.Addr().(*net.TCPAddr), answers: map[string][]string{}, open: map[net.Conn]bool{}}
	if adapt != nil {
		adapt(s)
	}
	s.done.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if s.all {
				c = tls.Server(c, s.tls)
			}
			s.mu.Lock()
			s.connections++
			s.open[c] = true
			s.mu.Unlock()
			s.done.Go(func() { s.talk(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		s.hangUp()
		s.done.Wait()
	})
	return s
}

func (s *server) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		_ = c.Close()
	}
}

// next is the answer to give instead of the usual one.
func (s *server) next(command, usual string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if waiting := s.answers[command]; len(waiting) > 0 {
		s.answers[command] = waiting[1:]
		return waiting[0]
	}
	return usual
}

func (s *server) talk(raw net.Conn) {
	c := raw
	defer func() {
		_ = c.Close()
		s.mu.Lock()
		delete(s.open, raw)
		s.mu.Unlock()
	}()
	r := bufio.NewReader(c)
	say := func(command, usual string) bool {
		switch answer := s.next(command, usual); answer {
		case "hangup":
			return false
		case "silence":
			_, _ = r.ReadByte() // until the other side gives up
			return false
		default:
			_, err := fmt.Fprintf(c, "%s\r\n", answer)
			return err == nil
		}
	}
	if !say("GREETING", "220 here ESMTP") {
		return
	}
	var mail taken
	mail.secured = s.all
	for {
		text, err := r.ReadString('\n')
		if err != nil {
			return
		}
		text = strings.TrimSpace(text)
		command, argument, _ := strings.Cut(text, " ")
		switch command = strings.ToUpper(command); command {
		case "EHLO", "HELO":
			offers := "250-here\r\n250-8BITMIME\r\n250-ENHANCEDSTATUSCODES"
			if s.tls != nil && !mail.secured {
				offers += "\r\n250-STARTTLS"
			}
			if s.user != "" {
				offers += "\r\n250-AUTH PLAIN"
			}
			if !say(command, offers+"\r\n250 SIZE 10000000") {
				return
			}
		case "STARTTLS":
			if !say(command, "220 go on") {
				return
			}
			secured := tls.Server(c, s.tls)
			if secured.Handshake() != nil {
				return
			}
			c, r, mail.secured = secured, bufio.NewReader(secured), true
		case "AUTH":
			mail.auth = strings.TrimPrefix(argument, "PLAIN ") == s.user
			usual := "235 2.7.0 welcome"
			if !mail.auth {
				usual = "535 5.7.8 who are you"
			}
			if !say(command, usual) {
				return
			}
		case "MAIL":
			mail.from = argument
			if !say(command, "250 2.1.0 ok") {
				return
			}
		case "RCPT":
			mail.to = argument
			if !say(command, "250 2.1.5 ok") {
				return
			}
		case "DATA":
			if !say(command, "354 go on") {
				return
			}
			if s.next("BODY", "") == "hangup" {
				return
			}
			var b strings.Builder
			for {
				line, err := r.ReadString('\n')
				if err != nil {
					return
				}
				if line == ".\r\n" {
					break
				}
				b.WriteString(strings.TrimPrefix(line, "."))
			}
			mail.data = b.String()
			answer := s.next("END", "250 2.0.0 taken")
			if answer[0] == '2' || answer == "taken hangup" {
				s.mu.Lock()
				s.taken = append(s.taken, mail)
				s.mu.Unlock()
			}
			if answer == "hangup" || answer == "taken hangup" {
				return
			}
			if answer == "silence" {
				_, _ = r.ReadByte()
				return
			}
			fmt.Fprintf(c, "%s\r\n", answer)
		case "RSET", "NOOP":
			if !say(command, "250 2.0.0 ok") {
				return
			}
		case "QUIT":
			say(command, "221 bye")
			return
		default:
			fmt.Fprintf(c, "500 5.5.2 what\r\n")
		}
	}
}

func (s *server) mails() []taken {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]taken(nil), s.taken...)
}

// certificate is one for 127.0.0.1, with the roots that believe it.
func certificate(t *testing.T) (serving, asking *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
}

func plain(user, password string) string {
	return base64.StdEncoding.EncodeToString([]byte("\x00" + user + "\x00" + password))
}
