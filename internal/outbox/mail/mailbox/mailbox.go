// Package mailbox is a demo's mail server: mails end in memory, and a page shows them (E1). It is the only place beside the
// control database where names and addresses are seen; it exists only with --demo.
//
// Start reading at Mailbox.Send and ServeHTTP.
package mailbox

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"html/template"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"onsale/internal/outbox/mail"
)

// Bounds of a mailbox. The oldest mails go when a new one needs the room.
const (
	MailsMax = 500
	BytesMax = 64 << 20
	listMax  = 100
)

//go:embed page.html
var files embed.FS

var page = template.Must(template.ParseFS(files, "page.html"))

// A Mailbox is a mail.Sender, and an http.Handler of GET Prefix and below.
type Mailbox struct {
	prefix string
	now    func() time.Time

	mu    sync.Mutex
	kept  []kept // oldest first
	bytes int
	next  int
}

type kept struct {
	Number int
	At     time.Time
	Mail   mail.Mail
	size   int
}

// New makes an empty one whose pages lie at a path, "/dev/mailbox". now may be nil.
func New(prefix string, now func() time.Time) *Mailbox {
	if now == nil {
		now = time.Now
	}
	return &Mailbox{prefix: strings.TrimSuffix(prefix, "/"), now: now, next: 1}
}

// Send implements mail.Sender. A mail that is there already, by its Message-ID, takes the place of the first.
func (b *Mailbox) Send(_ context.Context, m mail.Mail) error {
	k := kept{At: b.now(), Mail: m, size: len(m.HTML) + len(m.Text) + len(m.Subject)}
	for _, a := range m.Attachments {
		k.size += len(a.Data)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drop(func(i int, old *kept) bool { return old.Mail.ID == m.ID && old.Mail.To.Email == m.To.Email })
	k.Number = b.next
	b.next++
	b.kept = append(b.kept, k)
	b.bytes += k.size
	for len(b.kept) > MailsMax || b.bytes > BytesMax && len(b.kept) > 1 {
		b.drop(func(i int, _ *kept) bool { return i == 0 })
	}
	return nil
}

// drop takes the first mail that one is out. The lock is held.
func (b *Mailbox) drop(one func(int, *kept) bool) {
	for i := range b.kept {
		if one(i, &b.kept[i]) {
			b.bytes -= b.kept[i].size
			b.kept = slices.Delete(b.kept, i, i+1)
			return
		}
	}
}

// Mails are those kept, newest first: to an address, "" for all.
func (b *Mailbox) Mails(to string) []mail.Mail {
	var all []mail.Mail
	for _, k := range b.list(to, MailsMax) {
		all = append(all, k.Mail)
	}
	return all
}

func (b *Mailbox) list(to string, most int) []kept {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []kept
	for i := len(b.kept) - 1; i >= 0 && len(all) < most; i-- {
		if to == "" || strings.EqualFold(to, b.kept[i].Mail.To.Email) {
			all = append(all, b.kept[i])
		}
	}
	return all
}

func (b *Mailbox) find(text string) (kept, bool) {
	number, err := strconv.Atoi(text)
	b.mu.Lock()
	defer b.mu.Unlock()
	i, found := slices.BinarySearchFunc(b.kept, number, func(k kept, n int) int { return cmp.Compare(k.Number, n) })
	if err != nil || !found {
		return kept{}, false
	}
	return b.kept[i], true
}

// A Letter is a mail as a program reads it.
type Letter struct {
	Number  int       `json:"number"`
	At      time.Time `json:"at"`
	To      string    `json:"to"`
	Subject string    `json:"subject"`
	Text    string    `json:"text"`
}

// letters answers with the list for a program, newest first.
func letters(w http.ResponseWriter, all []kept) {
	list := make([]Letter, 0, len(all))
	for i := range all {
		m := &all[i].Mail
		list = append(list, Letter{Number: all[i].Number, At: all[i].At, To: m.To.Email, Subject: m.Subject, Text: m.Text})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(list)
}

// ServeHTTP answers: Prefix the list (?to=ADDRESS narrows it; with Accept: application/json a list of Letter), Prefix/N one mail, Prefix/N/html its HTML alone,
// Prefix/N/text its text, Prefix/N/files/I an attachment.
func (b *Mailbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the mailbox is only for reading", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Referrer-Policy", "no-referrer")
	rest := strings.Trim(strings.TrimPrefix(r.URL.Path, b.prefix), "/")
	if rest == "" {
		to := r.URL.Query().Get("to")
		if r.Header.Get("Accept") == "application/json" {
			letters(w, b.list(to, listMax))
			return
		}
		b.show(w, view{Prefix: b.prefix, To: to, Mails: b.list(to, listMax)})
		return
	}
	parts := strings.Split(rest, "/")
	k, ok := b.find(parts[0])
	switch {
	case !ok:
		http.NotFound(w, r)
	case len(parts) == 1:
		b.show(w, view{Prefix: b.prefix, One: &k})
	case len(parts) == 2 && parts[1] == "html":
		b.html(w, &k.Mail)
	case len(parts) == 2 && parts[1] == "text":
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte(k.Mail.Text))
	case len(parts) == 3 && parts[1] == "files":
		file(w, r, &k.Mail, parts[2])
	default:
		http.NotFound(w, r)
	}
}

// html is a mail's HTML as a mail program shows it: no scripts, nothing from elsewhere, its pictures inside.
func (b *Mailbox) html(w http.ResponseWriter, m *mail.Mail) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'; img-src data:; style-src 'unsafe-inline'")
	_, _ = w.Write([]byte(m.Standalone()))
}

func file(w http.ResponseWriter, r *http.Request, m *mail.Mail, text string) {
	i, err := strconv.Atoi(text)
	if err != nil || i < 0 || i >= len(m.Attachments) {
		http.NotFound(w, r)
		return
	}
	a := &m.Attachments[i]
	w.Header().Set("Content-Type", a.Type)
	w.Header().Set("Content-Security-Policy", "sandbox; default-src 'none'")
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": a.Name}))
	_, _ = w.Write(a.Data)
}

type view struct {
	Prefix string
	To     string
	Mails  []kept
	One    *kept
}

func (b *Mailbox) show(w http.ResponseWriter, v view) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-src 'self'; form-action 'self'; frame-ancestors 'none'")
	var out strings.Builder
	if err := page.Execute(&out, v); err != nil {
		http.Error(w, "the page cannot be shown", http.StatusInternalServerError)
		return
	}
	_, _ = w.Write([]byte(out.String()))
}
