package waitingroom

import (
	"bytes"
	"encoding/base64"
	"errors"
	"testing"
	"time"

	"onsale/internal/keys"
	"onsale/internal/keys/keystest"
)

// newRing makes keys as a running program has them.
func newRing(t testing.TB) *keys.Ring {
	t.Helper()
	master, err := keys.NewMaster(bytes.Repeat([]byte{7}, keys.MasterBytes))
	if err != nil {
		t.Fatal(err)
	}
	ring, err := keys.Load(t.Context(), &keystest.Memory{}, master, keys.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []keys.Purpose{keys.Queue, keys.Admission, keys.Ticket} {
		if _, err := ring.EnsureActive(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	return ring
}

var ticketOfTest = queueTicket{event: 1<<62 + 5, customer: 1<<61 + 7, lane: 3, number: 1<<40 - 1, drawn: true, issued: 1_800_000_000}

func TestQueueTicket(t *testing.T) {
	ring := newRing(t)
	s := sealer{keys: ring}
	now := time.Unix(1_800_000_000, 0)
	text, err := s.sign(ticketOfTest, now)
	if err != nil || len(text) != QueueIDLength {
		t.Fatal(text, err)
	}
	if got, err := s.read(t.Context(), text); err != nil || got != ticketOfTest {
		t.Fatalf("%+v, %v", got, err)
	}
	// Another node, which has not seen the key yet, and after the key was rotated.
	if _, err := ring.Rotate(t.Context(), keys.Queue); err != nil {
		t.Fatal(err)
	}
	other := sealer{keys: ring}
	if got, err := other.read(t.Context(), text); err != nil || got != ticketOfTest {
		t.Fatalf("%+v, %v", got, err)
	}
	second, err := s.sign(ticketOfTest, now.Add(2*activeFor))
	if err != nil || second[:12] == text[:12] {
		t.Fatalf("the new key is not used: %s, %v", second, err)
	}
	if got, err := other.read(t.Context(), second); err != nil || got != ticketOfTest {
		t.Fatalf("%+v, %v", got, err)
	}
}

// E4: no bit of a ticket can be changed, and it has one spelling.
func TestQueueTicketForged(t *testing.T) {
	s := sealer{keys: newRing(t)}
	text, err := s.sign(ticketOfTest, time.Unix(1_800_000_000, 0))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	refuse := func(what, text string) {
		t.Helper()
		if got, err := s.read(t.Context(), text); !errors.Is(err, errTicket) {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
	for bit := range len(raw) * 8 {
		forged := bytes.Clone(raw)
		forged[bit/8] ^= 1 << (bit % 8)
		refuse("a bit", base64.RawURLEncoding.EncodeToString(forged))
	}
	refuse("nothing", "")
	refuse("cut", text[:len(text)-1])
	refuse("longer", text+"A")
	refuse("a line break", text[:len(text)-1]+"\n")
	refuse("another secret", mustSign(t, &sealer{keys: newRing(t)}))
	// The last digit has bits that stand for nothing.
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	same := 0
	for _, d := range digits {
		if _, err := s.read(t.Context(), text[:len(text)-1]+string(d)); err == nil {
			same++
		}
	}
	if same != 1 {
		t.Errorf("%d spellings of one ticket are good", same)
	}
}

func mustSign(t testing.TB, s *sealer) string {
	t.Helper()
	text, err := s.sign(ticketOfTest, time.Unix(1_800_000_000, 0))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func FuzzQueueTicket(f *testing.F) {
	s := sealer{keys: newRing(f)}
	good := mustSign(f, &s)
	f.Add(good)
	f.Add(good[:40])
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := s.read(t.Context(), text)
		if (err == nil) != (text == good) {
			t.Fatalf("%q: %+v, %v", text, got, err)
		}
	})
}
