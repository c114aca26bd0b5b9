package mail

import (
	"bytes"
	"crypto/ed25519"
	"flag"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"onsale/internal/id"
	"onsale/internal/identity"
	"onsale/internal/ledger"
	"onsale/internal/ticket"
)

var update = flag.Bool("update", false, "write the golden files anew")

// previews names a folder to which whole mails are written for looking at, with their pictures inside.
var previews = flag.String("previews", "", "folder for previews")

var site = Site{Name: "Onsale", URL: "https://tickets.example.com", Host: "tickets.example.com"}

var made = id.NewGenerator(1, func() time.Time { return time.Date(2027, 3, 1, 9, 30, 0, 0, time.UTC) }, 0, nil)

var (
	orderID = made.MustNext(0)
	eventID = made.MustNext(0)
	otherID = made.MustNext(0)
)

func hamburg() Event {
	return Event{
		ID: eventID, Organizer: otherID, Version: 3, Title: "Aurora: The Long Night", Starts: time.Date(2027, 6, 12, 17, 30, 0, 0, time.UTC),
		Doors: time.Date(2027, 6, 12, 16, 0, 0, 0, time.UTC), Venue: "Elbe Arena", City: "Hamburg", Zone: "Europe/Berlin",
	}
}

func shanghai() Event {
	return Event{
		ID: eventID, Organizer: otherID, Version: 3, Title: "韦礼安「如果可以」巡回演唱会 上海站", Starts: time.Date(2027, 6, 12, 11, 30, 0, 0, time.UTC),
		Doors: time.Date(2027, 6, 12, 10, 0, 0, 0, time.UTC), Venue: "梅赛德斯-奔驰文化中心", City: "上海", Zone: "Asia/Shanghai",
	}
}

func code(t *testing.T, number id.ID, index int32, area, test bool) string {
	t.Helper()
	key := ticket.Key{KID: "K1111111", Private: ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize)), Test: test}
	text, err := ticket.Sign(key, ticket.Ticket{ID: int64(number), EventID: int64(eventID), Index: index, Area: area, Test: test})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func tickets(t *testing.T, zh, test bool) []Ticket {
	a, b := orderID+10, orderID+11
	all := []Ticket{
		{ID: a, Section: "Lower 104", Row: "12", Seat: "7", Category: "Category 1", Attendee: "Ada Lovelace", Total: 12_900, Code: code(t, a, 1041, false, test), Test: test},
		{ID: b, Area: "Standing floor", Category: "Standing", Total: 7_900, Code: code(t, b, 0, true, test), Test: test},
	}
	if zh {
		all[0].Section, all[0].Category, all[0].Attendee, all[0].Total = "A", "看台 1280", "王小明", 128_000
		all[1].Area, all[1].Category, all[1].Total = "内场站席", "内场 880", 88_000
	}
	return all
}

// golden are one message or more of each kind, for each language.
func golden(t *testing.T, locale string) map[string]Message {
	zh := locale == "zh-CN"
	event, name, other, organizer, money := hamburg(), "Ada Lovelace", "Grace Hopper", "Nordlicht Konzerte", "EUR"
	if zh {
		event, name, other, organizer, money = shanghai(), "王小明", "李雷", "北极光演出", "CNY"
	}
	was := event
	was.Starts, was.Doors = was.Starts.Add(-24*7*time.Hour), was.Doors.Add(-24*7*time.Hour)
	was.Venue = "Old Harbour Hall"
	if zh {
		was.Venue = "上海大舞台"
	}
	both, one := tickets(t, zh, false), tickets(t, zh, false)[:1]
	all := map[string]Message{
		"code":             {Kind: KindCode, Code: "40718265", Count: 10},
		"code_owner":       {Kind: KindCode, Code: "407182659911", Count: 10},
		"invitation":       {Kind: KindInvitation, Organizer: organizer, Role: string(identity.Operator), Token: "q1w2e3r4t5", Expires: time.Date(2027, 3, 8, 9, 0, 0, 0, time.UTC)},
		"tickets":          {Kind: KindTickets, Amount: both[0].Total + both[1].Total, Tickets: both},
		"tickets_free":     {Kind: KindTickets, Tickets: one[:1]},
		"tickets_test":     {Kind: KindTickets, Amount: both[0].Total, Tickets: tickets(t, zh, true)[:1]},
		"exchanged_paid":   {Kind: KindExchanged, Amount: 2_500, Kept: 500, Tickets: one},
		"exchanged_back":   {Kind: KindExchanged, Back: 3_000, Tickets: one},
		"given_back_late":  {Kind: KindGivenBack, Amount: 20_800, Reason: ledger.ReasonLate},
		"given_back_twice": {Kind: KindGivenBack, Amount: 20_800, Reason: ledger.ReasonSecondPayment},
		"given_back_wrong": {Kind: KindGivenBack, Amount: 1, Reason: ledger.ReasonWrongAmount},
		"failed":           {Kind: KindFailed},
		"expired":          {Kind: KindExpired},
		"refund_requested": {Kind: KindRefundRequested, Amount: 11_410, Kept: 1_490, Rule: "customer 1000 bp + 200", Reason: ledger.ReasonCustomer, Tickets: one},
		"refund_cancelled": {Kind: KindRefundDone, Amount: 12_900, Rule: "organizer", Reason: ledger.ReasonEventCancelled},
		"refund_done":      {Kind: KindRefundDone, Amount: 11_410, Kept: 1_490, Rule: "customer 1000 bp + 200", Reason: ledger.ReasonCustomer},
		"received":         {Kind: KindReceived, Other: other, Tickets: one, Order: 0},
		"passed_on":        {Kind: KindPassedOn, Tickets: one},
		"capture_refused":  {Kind: KindCaptureRefused},
		"event_changed":    {Kind: KindEventChanged, Was: &was, Changes: 1},
		"event_cancelled":  {Kind: KindEventCancelled, Changes: 2},
		"offered":          {Kind: KindOffered, Count: 2, Amount: 25_800, Expires: time.Date(2027, 6, 1, 17, 45, 0, 0, time.UTC)},
		"waitlist_over":    {Kind: KindWishEnded},
		"alert_give_back":  {Kind: KindAlert, Alert: AlertGiveBack, Organizer: organizer, Amount: 20_800},
		"alert_refused":    {Kind: KindAlert, Alert: AlertRefundRefused, Organizer: organizer, Amount: 20_800},
		"alert_conflict":   {Kind: KindAlert, Alert: AlertConflict, Organizer: organizer},
		"alert_invariant":  {Kind: KindAlert, Alert: AlertInvariant, Organizer: organizer},
		"alert_capture":    {Kind: KindAlert, Alert: AlertCaptureRefused, Organizer: organizer},
		"alert_dead":       {Kind: KindAlert, Alert: AlertDeadLetter, Organizer: organizer},
	}
	for key, m := range all {
		m.Locale, m.Currency, m.Key = locale, money, "ord-"+key
		m.To = Address{Name: name, Email: "ada@example.com"}
		if m.Kind != KindCode && m.Kind != KindInvitation {
			m.Event, m.Order = event, orderID
		}
		if m.Kind == KindExchanged || m.Kind == KindRefundRequested || m.Kind == KindPassedOn {
			m.Tickets = append([]Ticket(nil), m.Tickets...)
		}
		all[key] = m
	}
	return all
}

// Every mail about what was sold for a sandbox's money says so, not only those with tickets.
func TestMailsAboutSandboxMoneySaySo(t *testing.T) {
	for locale, mark := range map[string]string{"en": "[TEST] ", "zh-CN": "[测试] "} {
		for name, m := range golden(t, locale) {
			if name == "tickets_test" || m.Event.ID == 0 {
				continue
			}
			for _, test := range []bool{false, true} {
				m.Event.Test = test
				got, err := Compose(site, m)
				if err != nil {
					t.Fatal(err)
				}
				if strings.HasPrefix(got.Subject, mark) != test || strings.Contains(got.Text, "*** ") != test {
					t.Errorf("%s %s, test %t: %s\n%s", locale, name, test, got.Subject, got.Text)
				}
			}
		}
	}
}

func TestGolden(t *testing.T) {
	for _, locale := range identity.Locales {
		for name, m := range golden(t, locale) {
			t.Run(locale+"/"+name, func(t *testing.T) {
				got, err := Compose(site, m)
				if err != nil {
					t.Fatal(err)
				}
				again, err := Compose(site, m)
				if err != nil || again.HTML != got.HTML || again.Text != got.Text {
					t.Errorf("the same message gave another mail (%v)", err)
				}
				stem := filepath.Join("testdata", "golden", locale, name)
				check(t, stem+".txt", summary(t, got))
				check(t, stem+".html", got.HTML)
				preview(t, locale+"-"+name, got)
			})
		}
	}
}

// summary is what a mail is beside its HTML.
func summary(t *testing.T, m Mail) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Message-ID: %s\nTo: %s <%s>\nContent-Language: %s\nSubject: %s\n\n%s", m.ID, m.To.Name, m.To.Email, m.Locale, m.Subject, m.Text)
	for _, a := range m.Attachments {
		fmt.Fprintf(&b, "\n==> %s (%s) %s\n", a.Name, a.Type, a.ContentID)
		if strings.HasPrefix(a.Type, "text/") {
			b.WriteString(strings.ReplaceAll(string(a.Data), "\r\n", "\n"))
			continue
		}
		picture, err := png.Decode(bytes.NewReader(a.Data))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%dx%d\n", picture.Bounds().Dx(), picture.Bounds().Dy())
	}
	return b.String()
}

func check(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: go test -update writes it; look at it before it is committed", err)
	}
	if got != string(want) {
		t.Errorf("%s differs: go test -update writes it anew; look at the difference. Got:\n%s", path, got)
	}
}

func preview(t *testing.T, name string, m Mail) {
	if *previews == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(*previews, name+".html"), []byte(m.Standalone()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestNoTextIsMissing(t *testing.T) {
	value := regexp.MustCompile(`\{[a-z]+\}`)
	for key, text := range texts {
		if text.en == "" || text.zh == "" {
			t.Errorf("%s: a language is missing", key)
		}
		if key == "code.subject" {
			continue
		}
		in := func(phrase string) map[string]bool {
			found := map[string]bool{}
			for _, v := range value.FindAllString(phrase, -1) {
				found[v] = true
			}
			return found
		}
		if en, zh := in(text.en), in(text.zh); fmt.Sprint(en) != fmt.Sprint(zh) {
			t.Errorf("%s: %v in English, %v in Chinese", key, en, zh)
		}
		if !strings.ContainsFunc(text.zh, func(r rune) bool { return r > 0x2000 }) && key != "calendar.summary" && key != "colon" && key != "date.utc" {
			t.Errorf("%s: %q is not Chinese", key, text.zh)
		}
	}
	// Every key that the code names is there, and every text is named.
	source := ""
	for _, file := range []string{"compose.go", "format.go", "calendar.go"} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source += string(b)
	}
	named := map[string]bool{}
	for _, m := range regexp.MustCompile(`"([a-z_]+(?:\.[a-z_]+)*)"`).FindAllStringSubmatch(source, -1) {
		named[m[1]] = true
	}
	for _, m := range regexp.MustCompile(`\.say\("([^"]+)"`).FindAllStringSubmatch(source, -1) {
		if _, ok := texts[m[1]]; !ok && !strings.HasSuffix(m[1], ".") {
			t.Errorf("there is no text %q", m[1])
		}
	}
	for kind := range composers {
		for _, word := range []string{"subject", "title"} {
			if kind == KindAlert && word == "title" {
				continue
			}
			if _, ok := texts[string(kind)+"."+word]; !ok {
				t.Errorf("there is no text %s.%s", kind, word)
			}
		}
	}
	for key := range texts {
		last := key[strings.LastIndexByte(key, '.')+1:]
		prefix, rest, _ := strings.Cut(key, ".")
		switch {
		case named[key], named[last], prefix == "reason", prefix == "rule", prefix == "role", prefix == "alert":
		case prefix == "row" && (named[rest] || strings.HasPrefix(rest, "was.") || strings.HasPrefix(rest, "now.")), prefix == "button" && named[rest]:
		default:
			t.Errorf("text %q is used nowhere", key)
		}
	}
	for _, role := range identity.Roles {
		if _, ok := texts["role."+string(role)]; !ok {
			t.Errorf("role %s has no text", role)
		}
	}
}

const nasty = "<script>alert(1)</script>\r\nBcc: everybody@example.com\u202e\x00" + `"' & {{.Title}} javascript:x`

// nastyMessages have hostile text wherever somebody else's text can be.
func nastyMessages(t *testing.T) []Message {
	var all []Message
	for _, m := range golden(t, "en") {
		m.Event.Title, m.Event.Venue, m.Event.City, m.To.Name, m.Other, m.Organizer = nasty, nasty, nasty, nasty, nasty, nasty
		m.Token, m.Role, m.Reason, m.Rule, m.Alert = nasty, nasty, nasty, nasty, nasty
		m.Tickets = append([]Ticket(nil), m.Tickets...)
		for i := range m.Tickets {
			k := &m.Tickets[i]
			k.Section, k.Row, k.Seat, k.Category, k.Attendee = nasty, nasty, nasty, nasty, nasty
		}
		if m.Was != nil {
			was := *m.Was
			was.Venue = nasty + "!"
			m.Was = &was
		}
		all = append(all, m)
	}
	return all
}

func TestOthersTextIsText(t *testing.T) {
	for _, m := range nastyMessages(t) {
		got, err := Compose(site, m)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(got.HTML, "<script") || strings.Contains(got.HTML, "\u202e") || regexp.MustCompile(`(src|href)="(?:javascript|http:)`).MatchString(got.HTML) {
			t.Errorf("%s: it is in the HTML: %s", m.Kind, got.HTML)
		}
		for _, header := range []string{got.Subject, got.To.Name, got.ID} {
			if strings.ContainsAny(header, "\r\n\x00\u202e") {
				t.Errorf("%s: a header has a line break: %q", m.Kind, header)
			}
		}
		if strings.Contains(got.Text, "\nBcc") || strings.ContainsAny(got.Text, "\r\x00\u202e") {
			t.Errorf("%s: the text has lines of its own: %q", m.Kind, got.Text)
		}
		for _, a := range got.Attachments {
			if strings.HasPrefix(a.Type, "text/calendar") && strings.Contains(string(a.Data), "\nBcc") {
				t.Errorf("%s: the calendar has lines of its own", m.Kind)
			}
		}
	}
}

func TestNothingIsLoadedFromElsewhere(t *testing.T) {
	for _, locale := range identity.Locales {
		for name, m := range golden(t, locale) {
			got, err := Compose(site, m)
			if err != nil {
				t.Fatal(err)
			}
			ids := map[string]bool{}
			for _, a := range got.Attachments {
				if a.ContentID != "" {
					ids["cid:"+a.ContentID] = true
				}
			}
			for _, source := range regexp.MustCompile(`src="([^"]*)"`).FindAllStringSubmatch(got.HTML, -1) {
				if !ids[source[1]] {
					t.Errorf("%s: %s is not in the mail", name, source[1])
				}
			}
			if regexp.MustCompile(`url\(|@import|<link|<script|<iframe`).MatchString(got.HTML) {
				t.Errorf("%s: it loads something", name)
			}
		}
	}
}

func TestLongTitlesAreCut(t *testing.T) {
	m := golden(t, "en")["tickets_test"]
	m.Event.Title = strings.Repeat("很长 ", 500)
	got, err := Compose(site, m)
	if err != nil {
		t.Fatal(err)
	}
	if n := len([]rune(got.Subject)); n != SubjectRunesMax || !strings.HasPrefix(got.Subject, "[TEST] ") || !strings.HasSuffix(got.Subject, "…") {
		t.Errorf("%d runes: %q", n, got.Subject)
	}
}

func TestManyTicketsAreBounded(t *testing.T) {
	m := golden(t, "en")["tickets"]
	one := m.Tickets[0]
	m.Tickets = nil
	for i := range TicketsPerMailMax + 7 {
		next := one
		next.ID += id.ID(i)
		m.Tickets = append(m.Tickets, next)
	}
	got, err := Compose(site, m)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(got.Attachments); n != TicketsPerMailMax+1 || !strings.Contains(got.Text, "7 more tickets") || !strings.Contains(got.HTML, "7 more tickets") {
		t.Errorf("%d attachments:\n%s", n, got.Text)
	}
}

func TestVoidTicketsHaveNoCode(t *testing.T) {
	for _, name := range []string{"refund_requested", "passed_on", "capture_refused"} {
		got, err := Compose(site, golden(t, "en")[name])
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Attachments) != 0 || strings.Contains(got.HTML, "<img") {
			t.Errorf("%s brings a code", name)
		}
	}
}

func TestWhatWasPaidForAPassedOnTicketIsNotTold(t *testing.T) {
	got, err := Compose(site, golden(t, "en")["received"])
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(got.HTML, "129") && strings.Contains(got.HTML, "€") || strings.Contains(got.Text, orderID.Text(id.Order)+"\n") {
		t.Error(got.Text)
	}
}

func TestUnknownKind(t *testing.T) {
	if _, err := Compose(site, Message{Kind: "riddle"}); err == nil {
		t.Error("a mail of an unknown kind was written")
	}
}

// Where nobody said at which address the pages are, an invitation names the route that takes its word.
func TestAnInvitationWithoutALinkSaysHowItIsAccepted(t *testing.T) {
	for _, locale := range identity.Locales {
		m := golden(t, locale)["invitation"]
		got, err := Compose(Site{Name: "Onsale", Host: "tickets.example.com"}, m)
		if err != nil || !strings.Contains(got.Text, "POST /v1/invitations/accept") || !strings.Contains(got.Text, m.Token) {
			t.Errorf("%v: %s", err, got.Text)
		}
	}
}
