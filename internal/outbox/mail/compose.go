package mail

import (
	"embed"
	"encoding/base64"
	"fmt"
	htmltemplate "html/template"
	"net/url"
	"strconv"
	"strings"
	texttemplate "text/template"
	"time"

	"onsale/internal/id"
	"onsale/internal/ticket"
)

//go:embed templates
var files embed.FS

var (
	htmlLayout = htmltemplate.Must(htmltemplate.ParseFS(files, "templates/layout.html"))
	textLayout = texttemplate.Must(texttemplate.ParseFS(files, "templates/layout.txt"))
)

// A page is a mail before it has a form: the one layout shows whatever of it is there.
type page struct {
	Lang      string
	Colon     string
	Site      string
	Title     string
	Preheader string // what lists of mails show after the subject
	Test      string
	Hello     string
	Intro     []string
	Code      string
	Event     *eventView
	Rows      []row
	Changes   []change
	Tickets   []ticketView
	More      string
	Attached  string // in the text part alone: where the codes are
	Button    string
	Link      string
	Notes     []string
	Footer    string
}

type row struct{ Label, Value string }

type change struct{ Old, New row }

type eventView struct{ Title, Date, Place string }

type ticketView struct {
	Heading, First, Second, Category, Attendee, Price, ID string
	Picture                                               string // its content id, "" for none
	Source                                                htmltemplate.URL
	Alt                                                   string
	Test                                                  string
}

// A composer puts one mail together.
type composer struct {
	language
	site  Site
	m     *Message
	page  page
	files []Attachment
}

// Compose writes a message down. It is pure: the same message gives the same mail, byte by byte.
func Compose(site Site, m Message) (Mail, error) {
	c := composer{language: languageOf(m.Locale), site: site, m: &m}
	compose, ok := composers[m.Kind]
	if !ok {
		return Mail{}, fmt.Errorf("mail: nobody knows how to write %q", m.Kind)
	}
	title := line(m.Event.Title)
	c.page = page{Lang: c.tag, Colon: c.say("colon"), Site: line(site.Name), Title: c.word("title"), Footer: c.say("footer", "site", line(site.Name)), Hello: c.hello()}
	subject := c.word("subject", "event", title, "code", m.Code, "organizer", line(m.Organizer), "what", c.alertWord(""))
	if err := compose(&c); err != nil {
		return Mail{}, fmt.Errorf("mail: %s: %w", m.Kind, err)
	}
	if m.Event.Test && c.page.Test == "" { // where tickets are shown they have said it, and more
		c.page.Test = c.say("test.money")
	}
	if c.page.Test != "" {
		subject = c.say("test.subject", "subject", subject)
	}
	if c.page.Preheader == "" && len(c.page.Intro) > 0 {
		c.page.Preheader = c.page.Intro[0]
	}
	var html, plain strings.Builder
	if err := htmlLayout.Execute(&html, &c.page); err != nil {
		return Mail{}, fmt.Errorf("mail: %s: %w", m.Kind, err)
	}
	if err := textLayout.Execute(&plain, &c.page); err != nil {
		return Mail{}, fmt.Errorf("mail: %s: %w", m.Kind, err)
	}
	return Mail{
		ID: messageID(site, m.Key), To: Address{Name: line(m.To.Name), Email: m.To.Email}, Locale: c.tag, Subject: clean(subject, SubjectRunesMax),
		HTML: html.String(), Text: tidy(plain.String()), Attachments: c.files,
	}, nil
}

// messageID is a Message-ID of a job's key: the same mail twice has the same.
func messageID(site Site, key string) string {
	plain := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '-'
	}, key)
	return plain + "@" + site.Host
}

// tidy takes the lines' ends and doubled empty lines out of a text that a template wrote.
func tidy(text string) string {
	var out []string
	text = strings.ReplaceAll(text, noBreak, " ")
	for l := range strings.SplitSeq(text, "\n") {
		l = strings.TrimRight(l, " \t\r")
		if l == "" && (len(out) == 0 || out[len(out)-1] == "") {
			continue
		}
		out = append(out, l)
	}
	return strings.TrimRight(strings.Join(out, "\n"), "\n") + "\n"
}

// composers add to the page what each kind says.
var composers map[Kind]func(*composer) error

func init() { // it would refer to itself otherwise
	composers = map[Kind]func(*composer) error{
		KindCode: (*composer).code, KindInvitation: (*composer).invitation, KindTickets: (*composer).tickets,
		KindExchanged: (*composer).exchanged, KindGivenBack: (*composer).givenBack, KindFailed: (*composer).ended,
		KindExpired: (*composer).ended, KindRefundRequested: (*composer).refundRequested, KindRefundDone: (*composer).refundDone,
		KindReceived: (*composer).received, KindPassedOn: (*composer).passedOn, KindCaptureRefused: (*composer).captureRefused,
		KindEventChanged: (*composer).eventChanged, KindEventCancelled: (*composer).eventCancelled, KindAlert: (*composer).alert,
		KindOffered: (*composer).offered, KindWishEnded: (*composer).wishEnded,
	}
}

// word is a phrase of this kind.
func (c *composer) word(name string, pairs ...string) string {
	if c.m.Kind == KindAlert && name == "title" {
		return c.alertTitle()
	}
	return c.say(string(c.m.Kind)+"."+name, pairs...)
}

func (c *composer) hello() string {
	switch name := line(c.m.To.Name); {
	case c.m.Kind == KindCode || c.m.Kind == KindAlert:
		return ""
	case name == "":
		return c.say("hello.none")
	default:
		return c.say("hello", "name", name)
	}
}

func (c *composer) intro(phrases ...string) { c.page.Intro = append(c.page.Intro, phrases...) }
func (c *composer) note(phrases ...string)  { c.page.Notes = append(c.page.Notes, phrases...) }
func (c *composer) row(key, value string) {
	c.page.Rows = append(c.page.Rows, row{c.say("row." + key), value})
}

func (c *composer) button(key, path string) {
	if c.page.Link = c.site.link(path); c.page.Link != "" {
		c.page.Button = c.say("button." + key)
	}
}

// event shows which event it is about.
func (c *composer) event() {
	e := &c.m.Event
	c.page.Event = &eventView{Title: line(e.Title), Date: c.date(e.Starts, e.Zone), Place: c.place(e)}
	if !e.Doors.IsZero() {
		c.row("doors", c.clock(e.Doors, e.Starts, e.Zone))
	}
}

func (c *composer) booking() {
	if c.m.Order == 0 {
		return
	}
	c.row("booking", c.m.Order.Text(id.Order))
	c.button("booking", bookingPath+c.m.Order.Text(id.Order))
}

// show adds tickets, with their codes as pictures where they are good.
func (c *composer) show(good bool) error {
	all := c.m.Tickets
	if len(all) > TicketsPerMailMax {
		c.page.More = c.say("ticket.more", "count", strconv.Itoa(len(all)-TicketsPerMailMax))
		all = all[:TicketsPerMailMax]
	}
	for i := range all {
		t := &all[i]
		v := ticketView{Category: line(t.Category), Attendee: line(t.Attendee), ID: t.ID.Text(id.Ticket)}
		v.First, v.Second = t.where(c.language)
		v.Heading = c.say("row.ticket")
		if len(c.m.Tickets) > 1 {
			v.Heading = c.say("ticket", "n", strconv.Itoa(i+1), "count", strconv.Itoa(len(c.m.Tickets)))
		}
		if c.m.Currency != "" {
			v.Price = c.priced(t.Total, c.m.Currency)
		}
		if t.Test {
			v.Test, c.page.Test = c.say("test.ticket"), c.say("test")
		}
		if good && t.Code != "" {
			if err := c.picture(t, &v); err != nil {
				return err
			}
		}
		c.page.Tickets = append(c.page.Tickets, v)
	}
	if good && len(c.page.Tickets) > 0 {
		c.note(c.say("ticket.show"))
		c.page.Attached = c.say("ticket.text")
	}
	return nil
}

func (c *composer) picture(t *Ticket, v *ticketView) error {
	png, err := ticket.PNG(t.Code, qrPixels)
	if err != nil {
		return err
	}
	v.Picture = v.ID + "@" + c.site.Host
	v.Source = htmltemplate.URL("cid:" + v.Picture) //nolint:gosec // an id of ours and the configured host
	v.Alt = c.say("ticket.alt", "ticket", v.ID)
	c.files = append(c.files, Attachment{Name: v.ID + ".png", Type: "image/png", ContentID: v.Picture, Data: png})
	return nil
}

func (c *composer) calendar() { c.files = append(c.files, calendar(c.site, c.language, c.m)) }

func (c *composer) code() error {
	minutes := "10"
	if c.m.Count > 0 {
		minutes = strconv.Itoa(c.m.Count)
	}
	c.page.Code = grouped(c.m.Code)
	c.intro(c.word("intro", "minutes", minutes))
	c.note(c.word("notice"))
	return nil
}

// grouped sets digits in fours, so that they are read without a mistake.
func grouped(code string) string {
	var b strings.Builder
	for i, r := range clean(code, 32) {
		if i > 0 && i%4 == 0 {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
	}
	return b.String()
}

func (c *composer) invitation() error {
	c.page.Title = c.word("title", "organizer", line(c.m.Organizer))
	c.intro(c.word("intro", "organizer", line(c.m.Organizer), "site", line(c.site.Name)))
	c.row("role", c.or("role."+c.m.Role, "none"))
	c.row("expires", c.date(c.m.Expires, "UTC"))
	c.button("invitation", invitationPath+url.PathEscape(c.m.Token))
	if c.page.Link == "" {
		c.intro(c.word("nolink", "organizer", line(c.m.Organizer), "token", clean(c.m.Token, 128)))
	}
	c.note(c.word("notice"))
	return nil
}

func (c *composer) tickets() error {
	c.event()
	if c.m.Amount > 0 {
		c.intro(c.word("intro"))
	} else {
		c.intro(c.word("free"))
	}
	if c.m.Amount > 0 {
		c.row("paid", c.money(c.m.Amount, c.m.Currency))
	}
	c.booking()
	c.calendar()
	return c.show(true)
}

func (c *composer) exchanged() error {
	c.event()
	c.intro(c.word("intro"))
	switch {
	case c.m.Amount > 0:
		c.intro(c.word("paid"))
		c.row("paid", c.money(c.m.Amount, c.m.Currency))
	case c.m.Back > 0:
		c.intro(c.word("back"))
		c.row("back", c.money(c.m.Back, c.m.Currency))
	}
	c.kept("exchange")
	c.booking()
	c.calendar()
	return c.show(true)
}

// kept says which fee is kept, and why.
func (c *composer) kept(rule string) {
	if c.m.Kept > 0 {
		c.row("kept", c.money(c.m.Kept, c.m.Currency))
		word, _, _ := strings.Cut(rule, " ")
		c.note(c.or("rule."+word, "rule.organizer"))
	}
}

func (c *composer) givenBack() error {
	c.event()
	c.intro(c.or("reason."+c.m.Reason, "reason.other"))
	c.row("amount", c.money(c.m.Amount, c.m.Currency))
	c.booking()
	c.note(c.word("notice"))
	return nil
}

func (c *composer) ended() error {
	c.event()
	c.intro(c.word("intro"))
	c.booking()
	return nil
}

func (c *composer) refundRequested() error {
	c.event()
	if c.m.Amount > 0 {
		c.intro(c.word("intro"))
		c.row("back", c.money(c.m.Amount, c.m.Currency))
	} else {
		c.intro(c.word("nothing"))
	}
	c.kept(c.m.Rule)
	c.booking()
	return c.show(false)
}

func (c *composer) refundDone() error {
	c.event()
	c.intro(c.word("intro"))
	if c.m.Reason != "customer" {
		c.intro(c.or("reason."+c.m.Reason, "reason.other"))
	}
	c.row("back", c.money(c.m.Amount, c.m.Currency))
	c.kept(c.m.Rule)
	c.booking()
	return nil
}

func (c *composer) received() error {
	c.event()
	other := line(c.m.Other)
	if other == "" {
		other = c.word("nobody")
	}
	c.intro(c.word("intro", "other", other))
	c.m.Currency = "" // what the other person paid is theirs to tell
	c.button("tickets", ticketsPath)
	c.calendar()
	return c.show(true)
}

func (c *composer) passedOn() error {
	c.event()
	c.intro(c.word("intro"))
	c.booking()
	c.note(c.word("notice"))
	return c.show(false)
}

func (c *composer) captureRefused() error {
	c.event()
	c.intro(c.word("intro"))
	c.booking()
	c.note(c.word("notice"))
	return c.show(false)
}

func (c *composer) eventChanged() error {
	was, now := c.m.Was, &c.m.Event
	if was == nil {
		return fmt.Errorf("it is not said how event %s was", now.ID.Text(id.Event))
	}
	c.page.Event = &eventView{Title: line(now.Title), Date: c.date(now.Starts, now.Zone), Place: c.place(now)}
	c.intro(c.word("intro"))
	compare := func(key, old, new string) {
		if old != new {
			c.page.Changes = append(c.page.Changes, change{row{c.say("row.was." + key), old}, row{c.say("row.now." + key), new}})
		}
	}
	compare("date", c.date(was.Starts, was.Zone), c.date(now.Starts, now.Zone))
	compare("doors", c.clock(was.Doors, was.Starts, was.Zone), c.clock(now.Doors, now.Starts, now.Zone))
	compare("place", c.place(was), c.place(now))
	c.booking()
	c.calendar()
	return nil
}

func (c *composer) offered() error {
	e := &c.m.Event
	c.event()
	c.intro(c.word("intro", "time", c.clock(c.m.Expires, e.Starts, e.Zone)))
	c.row("offer.until", c.date(c.m.Expires, e.Zone))
	c.row("offer.places", strconv.Itoa(c.m.Count))
	c.row("amount", c.priced(c.m.Amount, c.m.Currency))
	c.note(c.word("notice"))
	return nil
}

func (c *composer) wishEnded() error {
	c.event()
	c.intro(c.word("intro"))
	return nil
}

func (c *composer) eventCancelled() error {
	c.event()
	c.intro(c.word("intro"))
	c.booking()
	c.calendar()
	return nil
}

func (c *composer) alertWord(suffix string) string {
	if c.m.Kind != KindAlert {
		return ""
	}
	return c.or("alert."+c.m.Alert+suffix, "alert.invariant"+suffix)
}

func (c *composer) alertTitle() string {
	word := c.alertWord("")
	if c.zh {
		return word
	}
	return strings.ToUpper(word[:1]) + word[1:]
}

func (c *composer) alert() error {
	c.intro(c.alertWord(".text"))
	c.page.Footer = c.say("footer.alert", "organizer", line(c.m.Organizer))
	if c.m.Event.Title != "" {
		c.event()
		c.page.Rows = nil
	}
	if c.m.Order != 0 {
		c.row("booking", c.m.Order.Text(id.Order))
		c.button("alert", alertPath+c.m.Order.Text(id.Order))
	}
	if c.m.Amount > 0 {
		c.row("amount", c.money(c.m.Amount, c.m.Currency))
	}
	return nil
}

// minutesLeft is how long something is good, in whole minutes.
func minutesLeft(now, until time.Time) int { return max(1, int(until.Sub(now).Minutes()+0.5)) }

// Standalone is the HTML with its pictures inside, for looking at without a mail program.
func (m *Mail) Standalone() string {
	html := m.HTML
	for i := range m.Attachments {
		if a := &m.Attachments[i]; a.ContentID != "" {
			html = strings.ReplaceAll(html, `"cid:`+a.ContentID+`"`, `"data:`+a.Type+`;base64,`+base64.StdEncoding.EncodeToString(a.Data)+`"`)
		}
	}
	return html
}
