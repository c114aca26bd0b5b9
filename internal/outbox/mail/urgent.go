package mail

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"time"

	"onsale/internal/identity"
)

// Bounds of what is urgent. It is never stored: a code is a secret, and good for minutes.
const (
	urgentTriesMax   = 5
	urgentRetry      = 3 * time.Second // doubled each time
	codeAgeMax       = 10 * time.Minute
	invitationAgeMax = time.Hour
)

// Errors of urgent mails.
var (
	ErrTooMany = errors.New("mail: too many codes and invitations wait to be sent")
	errStopped = errors.New("mail: the program stops")
	errTooOld  = errors.New("mail: it could not be sent in time")
)

// An urgent is a mail that waits in memory.
type urgent struct {
	mail  Mail
	kind  Kind
	until time.Time // it is of no use afterwards
	due   time.Time
	tries int
	done  chan error // of one place
	gone  <-chan struct{}
}

func (u *urgent) answer(err error) { u.done <- err }

var _ identity.Sender = (*Desk)(nil)

// SendCode implements identity.CodeSender. It tries again while the code is good, ctx lives and tries are left.
// ErrTooMany where too many wait.
func (d *Desk) SendCode(ctx context.Context, m identity.CodeMail) error {
	now := d.o.Now()
	until := now.Add(codeAgeMax)
	if m.Expires.Before(until) {
		until = m.Expires
	}
	return d.send(ctx, until, Message{
		Kind: KindCode, Locale: m.Locale, To: Address{Email: string(m.To)}, Code: m.Code, Count: minutesLeft(now, m.Expires),
	})
}

// SendInvitation implements identity.InvitationSender.
func (d *Desk) SendInvitation(ctx context.Context, m identity.InvitationMail) error {
	return d.send(ctx, d.o.Now().Add(invitationAgeMax), Message{
		Kind: KindInvitation, Locale: m.Locale, To: Address{Email: string(m.To)}, Organizer: m.Name, Role: string(m.Role), Token: m.Token, Expires: m.Expires,
	})
}

func (d *Desk) send(ctx context.Context, until time.Time, m Message) error {
	m.Key = string(m.Kind) + "." + rand.Text()
	composed, err := Compose(d.o.Site, m)
	if err != nil {
		return err
	}
	u := &urgent{mail: composed, kind: m.Kind, until: until, due: d.o.Now(), done: make(chan error, 1), gone: ctx.Done()}
	d.mu.Lock()
	if len(d.urgent) >= d.o.UrgentMax {
		d.stats.Dropped++
		d.mu.Unlock()
		return ErrTooMany
	}
	d.urgent = append(d.urgent, u)
	d.mu.Unlock()
	d.wakeWorkers()
	select {
	case err := <-u.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// takeUrgent takes the first urgent mail that is due, nil where none is.
func (d *Desk) takeUrgent() *urgent {
	now := d.o.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, u := range d.urgent {
		if !u.due.After(now) {
			d.urgent = append(d.urgent[:i:i], d.urgent[i+1:]...)
			return u
		}
	}
	return nil
}

func (d *Desk) sendUrgent(ctx context.Context, u *urgent) {
	select {
	case <-u.gone:
		return // who asked waits no more, and may have asked again
	default:
	}
	if !d.o.Now().Before(u.until) {
		d.drop(u, errTooOld)
		return
	}
	timeout, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	err := d.o.Sender.Send(timeout, u.mail)
	if err == nil {
		d.count(func(s *Stats) { s.Sent++ })
		u.answer(nil)
		return
	}
	u.tries++
	if _, final := permanent(err); final || u.tries >= urgentTriesMax || ctx.Err() != nil {
		d.o.Log.LogAttrs(ctx, slog.LevelWarn, "urgent mail not sent", slog.String("kind", string(u.kind)), slog.Int("tries", u.tries), slog.Any("error", err))
		d.drop(u, err)
		return
	}
	u.due = d.o.Now().Add(urgentRetry << (u.tries - 1))
	d.mu.Lock()
	d.stats.Retried++
	d.urgent = append(d.urgent, u)
	d.mu.Unlock()
}

func (d *Desk) drop(u *urgent, err error) {
	d.count(func(s *Stats) { s.Dropped++ })
	u.answer(err)
}

// expireUrgent drops what is too old, also while all workers are busy.
func (d *Desk) expireUrgent() {
	now := d.o.Now()
	var old []*urgent
	d.mu.Lock()
	kept := d.urgent[:0]
	for _, u := range d.urgent {
		if now.Before(u.until) {
			kept = append(kept, u)
		} else {
			old = append(old, u)
		}
	}
	clear(d.urgent[len(kept):])
	d.urgent = kept
	d.mu.Unlock()
	for _, u := range old {
		d.drop(u, errTooOld)
	}
}
