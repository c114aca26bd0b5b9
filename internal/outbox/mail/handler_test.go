package mail_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"onsale/internal/id"
	"onsale/internal/identity"
	"onsale/internal/ledger"
	"onsale/internal/outbox/mail"
)

const host = "@t.example.com"

var ord = order.Text(id.Order)

func refundBody() string { return fmt.Sprintf(`{"refund_id":%q}`, refund.Text(id.Refund)) }

func TestA18TicketsAreMailedAfterCapture(t *testing.T) {
	for name, test := range map[string]struct {
		amount int64
		states []ledger.PaymentState // as each notice finds the payment
		kinds  []string
		want   int
	}{
		"free":                        {0, []ledger.PaymentState{0}, []string{ledger.NoticePaid}, 1},
		"charged at once":             {100, []ledger.PaymentState{ledger.PaymentCaptured}, []string{ledger.NoticePaid}, 1},
		"reserved":                    {100, []ledger.PaymentState{ledger.PaymentAuthorized, ledger.PaymentAuthorized}, []string{ledger.NoticePaid, ledger.NoticeCaptureDue}, 0},
		"reserved, then captured":     {100, []ledger.PaymentState{ledger.PaymentAuthorized, ledger.PaymentCaptured}, []string{ledger.NoticePaid, ledger.NoticePayment}, 1},
		"all seen late":               {100, []ledger.PaymentState{ledger.PaymentCaptured, ledger.PaymentCaptured}, []string{ledger.NoticePaid, ledger.NoticePayment}, 1},
		"another payment is recorded": {100, []ledger.PaymentState{ledger.PaymentAuthorized, ledger.PaymentAuthorized}, []string{ledger.NoticePaid, ledger.NoticePayment}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			for i, kind := range test.kinds {
				w.sell(order, test.amount, test.states[i], ledger.Ticket{ID: ticket})
				w.notice(kind, int64(i+2), "", order)
			}
			want := []string{}
			if test.want == 1 {
				want = append(want, ord+".tickets"+host)
			}
			w.sent(want...)
		})
	}
}

func TestWhatEachNoticeSends(t *testing.T) {
	note := func(sequence int, kind string) string { return fmt.Sprintf("%s.%d.%s%s", ord, sequence, kind, host) }
	alert := func(sequence int, word string) string {
		return fmt.Sprintf("%s.%d.alert.%s.%s%s", ord, sequence, word, owner.Text(id.Customer), host)
	}
	row := ledger.Refund{ID: refund, Order: order, Amount: 900, FeeKept: 100, Currency: "EUR", Rule: "customer 1000 bp", Reason: ledger.ReasonCustomer, Tickets: []id.ID{ticket}}
	late := ledger.Refund{ID: refund, Order: order, Amount: 1000, Currency: "EUR", Reason: ledger.ReasonLate}
	with := func(r ledger.Refund, change func(*ledger.Refund)) *ledger.Refund { change(&r); return &r }
	for name, test := range map[string]struct {
		kind   string
		refund *ledger.Refund
		want   []string
		says   string
	}{
		"given back":           {ledger.NoticeGiveBack, &late, []string{note(9, "given_back"), alert(9, "give_back")}, "after your hold had run out"},
		"refund asked for":     {ledger.NoticeRefundRequested, &row, []string{note(9, "refund_requested")}, "€9.00"},
		"its second row":       {ledger.NoticeRefundRequested, with(row, func(r *ledger.Refund) { r.Tickets = nil }), nil, ""},
		"of an exchange":       {ledger.NoticeRefundRequested, with(row, func(r *ledger.Refund) { r.Reason = ledger.ReasonDifference }), nil, ""},
		"of a cancellation":    {ledger.NoticeRefundRequested, with(row, func(r *ledger.Refund) { r.Reason = ledger.ReasonEventCancelled }), nil, ""},
		"refund done":          {ledger.NoticeRefundDone, &row, []string{note(9, "refund_done")}, "€9.00"},
		"of nothing":           {ledger.NoticeRefundDone, with(row, func(r *ledger.Refund) { r.Amount = 0 }), nil, ""},
		"refund refused":       {ledger.NoticeRefundRefused, &row, []string{alert(9, "refund_refused")}, "refused a refund"},
		"capture refused":      {ledger.NoticeCaptureRefused, with(late, func(r *ledger.Refund) { r.Amount, r.Reason = 0, ledger.ReasonCaptureRefused }), []string{note(9, "capture_refused"), alert(9, "capture_refused")}, "Your tickets are void"},
		"conflict at the door": {ledger.NoticeCheckInConflict, nil, []string{alert(9, "conflict")}, "used"},
		"refunded":             {ledger.NoticeRefunded, &row, nil, ""},
		"seats released":       {ledger.NoticeSeatsReleased, &row, nil, ""},
		"exchanged, the old":   {ledger.NoticeExchanged, &row, nil, ""},
		"one of the future":    {"booking.dreamt_of", nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.sell(order, 1000, ledger.PaymentCaptured, ledger.Ticket{ID: ticket})
			body := ""
			if test.refund != nil {
				w.facts.refunds[refund] = *test.refund
				body = refundBody()
			}
			w.notice(test.kind, 9, body, order)
			w.sent(test.want...)
			found := test.says == ""
			for _, m := range w.out.mails {
				found = found || strings.Contains(m.Text, test.says)
			}
			if !found {
				t.Errorf("%q is in none of %+v", test.says, w.out.mails)
			}
		})
	}
}

func TestBookingsThatCameToNothing(t *testing.T) {
	for name, test := range map[string]struct {
		kind   string
		waited time.Duration
		refund bool
		want   string
	}{
		"declined while looking on": {ledger.NoticeFailed, 59 * time.Second, false, ""},
		"declined after a wait":     {ledger.NoticeFailed, time.Minute, false, "failed"},
		"expired":                   {ledger.NoticeExpired, time.Hour, false, "expired"},
		"late money tells it":       {ledger.NoticeExpired, time.Hour, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.sell(order, 1000, ledger.PaymentAuthorized)
			if test.refund {
				w.facts.refunds[refund] = ledger.Refund{ID: refund, Order: order, Amount: 1000, Reason: ledger.ReasonLate}
			}
			w.wait(test.waited)
			w.notice(test.kind, 3, "", order)
			if test.want == "" {
				w.sent()
				return
			}
			w.sent(ord + ".3." + test.want + host)
		})
	}
}

func TestAnExchangeIsOneMail(t *testing.T) {
	w := newWorld(t, nil)
	w.sell(oldOrder, 2000, ledger.PaymentCaptured, ledger.Ticket{ID: ticket, State: ledger.TicketVoid, Gone: true})
	o := w.sell(order, 0, 0, ledger.Ticket{ID: ticket + 1})
	o.Exchange = oldOrder
	w.facts.orders[order] = o
	w.facts.refunds[refund] = ledger.Refund{ID: refund, Order: oldOrder, Amount: 700, Currency: "EUR", Reason: ledger.ReasonDifference, Created: o.Created}
	w.notice(ledger.NoticePaid, 2, "", order)
	w.notice(ledger.NoticeExchanged, 5, refundBody(), oldOrder)
	w.notice(ledger.NoticeRefundRequested, 6, refundBody(), oldOrder)
	w.sent(ord + ".exchanged" + host)
	if text := w.out.mails[0].Text; !strings.Contains(text, "€7.00") || !strings.Contains(text, "old ones are void") {
		t.Error(text)
	}
}

func TestATicketPassedOn(t *testing.T) {
	w := newWorld(t, nil)
	was := ledger.Ticket{ID: ticket, State: ledger.TicketVoid, Gone: true, Total: 4200}
	now := ledger.Ticket{ID: ticket + 1, Was: ticket, Customer: friend, Total: 4200}
	w.sell(order, 4200, ledger.PaymentCaptured, was, now)
	w.notice(ledger.NoticeTransferred, 5, fmt.Sprintf(`{"ticket_id":%q,"was":%q,"to":%q}`, now.ID.Text(id.Ticket), was.ID.Text(id.Ticket), friend.Text(id.Customer)), order)
	w.sent(ord+".5.received"+host, ord+".5.passed_on"+host)
	for _, m := range w.out.mails {
		if m.To.Email == "li@example.com" && (strings.Contains(m.Text, "42") || !strings.Contains(m.Text, "Ada")) {
			t.Error("what was paid is told, or not who it is from:", m.Text)
		}
		if m.To.Email == "ada@example.com" && (strings.Contains(m.Text, "李雷") || strings.Contains(m.Text, "Named")) {
			t.Error("the recipient's name is told:", m.Text)
		}
		if m.To.Email == "ada@example.com" && (!strings.Contains(m.Text, was.ID.Text(id.Ticket)) || strings.Contains(m.Text, now.ID.Text(id.Ticket))) {
			t.Error("it names the new ticket, not the one they had:", m.Text)
		}
	}
}

func TestWhatIsGoneMeanwhileIsNotMailed(t *testing.T) {
	w := newWorld(t, nil)
	o := w.sell(order, 100, ledger.PaymentCaptured, ledger.Ticket{ID: ticket})
	w.notice(ledger.NoticePaid, 2, "", order)
	o.Tickets[0].State, o.State = ledger.TicketVoid, ledger.OrderRefunded
	w.facts.orders[order] = o
	w.sent()
	if s := w.desk.Stats(); s.Nothing != 1 {
		t.Errorf("%+v", s)
	}
}

func TestWhoHasNoAddressGetsNone(t *testing.T) {
	w := newWorld(t, nil)
	o := w.sell(order, 0, 0, ledger.Ticket{ID: ticket, Customer: nobody})
	o.Customer = nobody
	w.facts.orders[order] = o
	w.notice(ledger.NoticePaid, 2, "", order)
	w.notice(ledger.NoticePaid, 2, "", order+5) // and of an order that is not there, nothing is said
	w.sent()
	if s := w.desk.Stats(); s.NoAddress != 0 || s.Dead != 0 { // there was not even a job
		t.Errorf("%+v", s)
	}
	// Who has lost it since the notice gets none either.
	w.facts.set(func() { w.facts.people[nobody] = mail.Person{Customer: nobody, Email: "soon@example.com"} })
	w.notice(ledger.NoticePaid, 3, "", order)
	w.facts.set(func() { w.facts.people[nobody] = mail.Person{Customer: nobody} })
	w.sent()
	if s := w.desk.Stats(); s.NoAddress != 1 || s.Dead != 0 {
		t.Errorf("%+v", s)
	}
}

func TestFactsThatCannotBeHadComeAgain(t *testing.T) {
	w := newWorld(t, nil)
	w.sell(order, 0, 0, ledger.Ticket{ID: ticket})
	away := errors.New("the database is away")
	w.facts.set(func() { w.facts.fail = away })
	n := ledger.Notice{Order: order, Sequence: 2, Kind: ledger.NoticePaid, Body: []byte("{}"), At: ledger.TimeOf(start)}
	if err := w.handler.Handle(t.Context(), n); !errors.Is(err, away) {
		t.Fatal(err)
	}
	w.facts.set(func() { w.facts.fail = nil })
	w.ok(w.handler.Handle(t.Context(), n))
	w.sent(ord + ".tickets" + host)
}

func TestNewsOfAnEvent(t *testing.T) {
	w := newWorld(t, func(o *mail.Options) { o.BulkPerSecond = 1000 })
	const orders = 230 // of two pages
	for i := range id.ID(orders) {
		w.sell(order+i, 0, 0, ledger.Ticket{ID: 10_000 + i})
	}
	// One passed a ticket on, one gave it back, one never paid.
	w.sell(order, 0, 0, ledger.Ticket{ID: 1, State: ledger.TicketVoid, Gone: true}, ledger.Ticket{ID: 2, Was: 1, Customer: friend}, ledger.Ticket{ID: 3}, ledger.Ticket{ID: 4})
	w.sell(order+1, 0, 0, ledger.Ticket{ID: 5, State: ledger.TicketVoid, Refund: refund})
	w.sell(order+2, 0, 0)
	w.notice(ledger.NoticeEvent, 1, "", event) // what it was from the first
	same := w.facts.events[event]
	same.Version, same.Title = 2, "Prices changed"
	w.facts.set(func() { w.facts.events[event] = same })
	w.notice(ledger.NoticeEvent, 2, "", event)
	w.sent()
	moved := same
	moved.Version, moved.Starts = 3, same.Starts.AddDate(0, 0, 7)
	w.facts.set(func() { w.facts.events[event] = moved })
	w.notice(ledger.NoticeEvent, 3, "", event)
	w.desk.Start()
	run(w, mail.KindEventChanged, 3, orders-1) // 227 others, and two of the first order
	text := ""
	for _, m := range w.out.mails {
		if m.To.Email == "li@example.com" {
			text = m.Text
		}
	}
	if !strings.Contains(text, "原时间") {
		t.Errorf("who got a ticket from somebody is not told: %q", text)
	}
	ids := w.out.ids()
	for i := 1; i < len(ids); i++ {
		if ids[i] == ids[i-1] {
			t.Fatalf("%s twice", ids[i])
		}
	}
	// Cancelled, and refunds are faster than the mails.
	cancelled := moved
	cancelled.Version, cancelled.Cancelled, cancelled.Test = 4, true, true
	w.facts.set(func() {
		w.facts.events[event] = cancelled
		w.facts.refunds[refund+1] = ledger.Refund{ID: refund + 1, Order: order + 7, Reason: ledger.ReasonEventCancelled}
		o := w.facts.orders[order+7]
		o.Tickets[0].State, o.Tickets[0].Refund, o.State = ledger.TicketVoid, refund+1, ledger.OrderRefunded
		w.facts.orders[order+7] = o
		w.out.mails = nil
	})
	w.notice(ledger.NoticeEvent, 4, "", event)
	run(w, mail.KindEventCancelled, 4, orders-1)
	for _, m := range w.out.mails {
		if !strings.Contains(m.Subject, "[TEST]") && !strings.Contains(m.Subject, "[测试]") {
			t.Fatalf("it is not said that it was a sandbox's money: %s", m.Subject)
		}
	}
}

// run ticks until a run's mails are sent, and no more.
func run(w *world, kind mail.Kind, version int64, want int) {
	w.t.Helper()
	for range 4000 {
		w.wait(time.Second)
		w.tick <- time.Time{}
		<-w.passed
		r, err := w.store.Run(w.t.Context(), event, kind, version)
		w.ok(err)
		waiting, _, _, err := w.store.CountJobs(w.t.Context())
		w.ok(err)
		if r.Done && waiting == 0 {
			break
		}
	}
	if got := len(w.out.ids()); got != want {
		w.t.Fatalf("%d mails, want %d", got, want)
	}
}

func TestACodeGoesBeforeAllElse(t *testing.T) {
	w := newWorld(t, func(o *mail.Options) { o.Workers = 1 })
	for i := range id.ID(20) {
		w.sell(order+i, 0, 0, ledger.Ticket{ID: ticket + i})
		w.notice(ledger.NoticePaid, 2, "", order+i)
	}
	stuck, began := make(chan struct{}), make(chan struct{}, 100)
	w.out.fail = func(m mail.Mail) error {
		if strings.HasPrefix(m.ID, "ord_") {
			w.out.mu.Unlock()
			began <- struct{}{}
			<-stuck
			w.out.mu.Lock()
		}
		return nil
	}
	w.desk.Start()
	<-began
	for range 20 { // were worker 0 one that takes jobs, it would have one by now
		w.tick <- time.Time{}
		<-w.passed
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	err := w.desk.SendCode(ctx, identity.CodeMail{To: "ada@example.com", Code: "12345678", Locale: "en", Expires: start.Add(10 * time.Minute)})
	if got := w.out.ids(); err != nil || len(got) != 1 || !strings.HasPrefix(got[0], "code.") {
		t.Errorf("%v, %v", got, err)
	}
	close(stuck)
	w.desk.Stop()
}

func TestUrgentMailsAreBounded(t *testing.T) {
	w := newWorld(t, func(o *mail.Options) { o.UrgentMax = 3 })
	code := identity.CodeMail{To: "ada@example.com", Code: "12345678", Locale: "en", Expires: start.Add(10 * time.Minute)}
	ctx, giveUp := context.WithCancel(t.Context())
	results := make(chan error, 4)
	for range 4 { // three wait; whichever comes last is refused, and so the first to have an answer
		go func() { results <- w.desk.SendCode(ctx, code) }()
	}
	if err := <-results; !errors.Is(err, mail.ErrTooMany) {
		t.Fatal(err)
	}
	giveUp()
	for range 3 {
		if err := <-results; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	w.settle()
	if n := len(w.out.ids()); n != 0 {
		t.Errorf("%d codes were sent for which nobody waits", n)
	}
}

func TestACodeIsTriedAgainAndDroppedWhenOld(t *testing.T) {
	w := newWorld(t, nil)
	tries := map[bool]int{} // of codes; its lock is the outbox's
	w.out.fail = func(m mail.Mail) error {
		tries[strings.HasPrefix(m.ID, "code.")]++
		w.wait(4 * time.Minute)
		return &mail.TemporaryError{Status: "451"}
	}
	w.desk.Start()
	done := make(chan error, 2)
	go func() {
		done <- w.desk.SendInvitation(t.Context(), identity.InvitationMail{To: "a@example.com", Name: "House", Role: identity.Viewer, Token: "t", Expires: start.AddDate(0, 0, 7)})
		done <- w.desk.SendCode(t.Context(), identity.CodeMail{To: "a@example.com", Code: "1", Expires: w.now().Add(time.Hour)})
	}()
	for answered := 0; answered < 2; {
		select {
		case err := <-done:
			answered++
			if err == nil {
				t.Error("it was sent")
			}
		case w.tick <- time.Time{}:
			w.wait(time.Second)
		}
	}
	w.out.mu.Lock()
	defer w.out.mu.Unlock()
	if tries[false] != 5 || tries[true] != 3 { // five tries; ten minutes are over after three
		t.Errorf("%v", tries)
	}
	if s := w.desk.Stats(); s.Dropped != 2 || s.Urgent != 0 {
		t.Errorf("%+v", s)
	}
}

func TestAFinalNoIsKeptAndTold(t *testing.T) {
	w := newWorld(t, nil)
	w.out.fail = func(m mail.Mail) error {
		if m.To.Email == "ada@example.com" {
			return &mail.PermanentError{Status: "550 5.1.1"}
		}
		return nil
	}
	w.sell(order, 0, 0, ledger.Ticket{ID: ticket})
	w.notice(ledger.NoticePaid, 2, "", order)
	w.settle()
	w.settle() // the alert
	dead, err := w.store.DeadJobs(t.Context(), 10)
	w.ok(err)
	if len(dead) != 1 || dead[0].Key != ord+".tickets" || dead[0].Last != "550 5.1.1" || !slices.Equal(w.toldDead(), []mail.Kind{mail.KindTickets}) {
		t.Fatalf("%+v, told of %v", dead, w.toldDead())
	}
	if len(w.out.mails) != 1 || w.out.mails[0].To.Email != "owner@example.com" || strings.Contains(w.out.mails[0].HTML, "ada@") {
		t.Fatalf("%+v", w.out.mails)
	}
	w.out.fail = nil
	n, err := w.desk.Revive(t.Context(), []string{dead[0].Key})
	w.ok(err)
	w.settle()
	if n != 1 || len(w.out.mails) != 2 {
		t.Errorf("%d revived, %d mails", n, len(w.out.mails))
	}
}

func TestATemporaryNoIsTriedAgain(t *testing.T) {
	w := newWorld(t, nil)
	w.out.fail = func(mail.Mail) error { return &mail.TemporaryError{Status: "451 4.3.2"} }
	w.sell(order, 0, 0, ledger.Ticket{ID: ticket})
	w.notice(ledger.NoticePaid, 2, "", order)
	w.settle()
	waiting, _, dead, err := w.store.CountJobs(t.Context())
	w.ok(err)
	if s := w.desk.Stats(); waiting != 1 || dead != 0 || s.Retried != 1 || s.Sent != 0 {
		t.Errorf("%d waiting, %d dead, %+v", waiting, dead, s)
	}
}

func TestResend(t *testing.T) {
	w := newWorld(t, nil)
	o := w.sell(order, 0, 0, ledger.Ticket{ID: ticket})
	w.notice(ledger.NoticePaid, 2, "", order)
	w.settle()
	for range 3 {
		w.ok(w.desk.Resend(t.Context(), o))
	}
	w.settle()
	if n := len(w.out.mails); n != 2 {
		t.Errorf("%d mails", n)
	}
}

func TestStartAndStopTwice(t *testing.T) {
	w := newWorld(t, nil)
	for range 20 {
		w.desk.Start()
		w.desk.Start()
		w.desk.Stop()
		w.desk.Stop()
	}
}

func TestTheWaitlistIsWrittenTo(t *testing.T) {
	w := newWorld(t, nil)
	const wish, hold id.ID = 7001, 7002
	notice := func(kind string, sequence int64, state ledger.WishState) {
		t.Helper()
		n := ledger.Notice{Order: wish, Sequence: sequence, Kind: kind, At: ledger.TimeOf(w.now()), Body: fmt.Appendf(nil,
			`{"v":1,"wish_id":%q,"event_id":%q,"customer_id":%q,"state":%q,"hold_id":%q}`,
			wish.Text(id.Wish), event.Text(id.Event), customer.Text(id.Customer), state, hold.Text(id.Hold))}
		if err := w.handler.Handle(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	name := wish.Text(id.Wish)
	live := ledger.Hold{ID: hold, Customer: customer, State: ledger.HoldLive, Lines: make([]ledger.Line, 2), Currency: "EUR", Expires: ledger.TimeOf(w.now()) + 900_000}
	w.facts.set(func() { w.facts.holds = map[id.ID]ledger.Hold{hold: live} })
	notice(ledger.NoticeWishAdded, 1, ledger.WishWaiting)
	notice(ledger.NoticeWishOffered, 2, ledger.WishOffered)
	notice(ledger.NoticeWishOffered, 2, ledger.WishOffered) // it comes twice
	w.sent(name + ".2.offered" + host)
	w.facts.set(func() { live.State = ledger.HoldReleased; w.facts.holds[hold] = live })
	notice(ledger.NoticeWishOffered, 4, ledger.WishOffered) // it is over when the mail is written
	notice(ledger.NoticeWishLapsed, 5, ledger.WishWaiting)
	notice(ledger.NoticeWishEnded, 6, ledger.WishTaken)
	notice(ledger.NoticeWishEnded, 6, ledger.WishWithdrawn)
	w.sent(name + ".2.offered" + host)
	notice(ledger.NoticeWishEnded, 7, ledger.WishEnded)
	w.sent(name+".2.offered"+host, name+".7.waitlist_over"+host)
}
