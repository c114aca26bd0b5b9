package demo

import (
	"fmt"
	"math/rand/v2"
)

// A way is how a buyer chooses what to hold.
type way uint8

const (
	wayBest     way = iota // the best available
	wayPicked              // by hand, from the picture of the seats
	wayStanding            // places in a standing area
)

// A card is what the bank makes of a buyer's first payment.
type card uint8

const (
	cardGood          card = iota
	cardDeclined           // a final no
	cardDeclinedSoft       // a no that might have been a yes at another try
	cardPending            // "we shall tell you": paid by a webhook later
	cardPendingNo          // the same, but declined
	cardSilent             // pending, and no webhook comes at all: only recovery finds it
	cardLate               // paid only after the hold has run out
	cardLostAnswer         // paid, and the provider's answer is lost on its way to the server
	cardServerError        // the provider's first answer is an error
	cardWrongAmount        // the provider takes another amount than asked
	cardSecondPayment      // the provider takes the money twice
	cardNoCapture          // reserved, and then not to be had
	cardRepeat             // every webhook comes twice
	cardReorder            // webhooks come in the wrong order
	cardNoRefund           // takes no money back
)

// tokens are the sandbox's names for what the cards do.
var tokens = [...]string{
	cardGood: "tok_sure", cardDeclined: "tok_declined", cardDeclinedSoft: "tok_declined_soft", cardPending: "tok_pending",
	cardPendingNo: "tok_pending_declined", cardSilent: "tok_pending+webhook_never", cardLate: "tok_pay_late",
	cardLostAnswer: "tok_lost_answer", cardServerError: "tok_server_error", cardWrongAmount: "tok_wrong_amount",
	cardSecondPayment: "tok_second_payment", cardNoCapture: "tok_capture_refused", cardRepeat: "tok_webhook_repeat",
	cardReorder: "tok_webhook_reorder", cardNoRefund: "tok_refund_refused",
}

// An ending is what a buyer does once there is a hold.
type ending uint8

const (
	endPays     ending = iota
	endWalks           // goes away without a word: the hold runs out
	endReleases        // gives the hold back
)

// An after is what a buyer does with tickets that are paid for.
type after uint8

const (
	afterNothing    after = iota
	afterRefundAll        // gives all back
	afterRefundSome       // gives one back
	afterRefundRace       // gives one back twice at once, under two keys
	afterOrganizer        // telephones, and the organizer gives the money back
	afterRefused          // the same, and the bank never takes it
	afterDearer           // exchanges for dearer places, and pays the difference
	afterCheaper          // exchanges for cheaper ones, and gets money back
	afterDeclined         // exchanges with a card that is declined
	afterLapse            // holds places for an exchange, and lets the hold run out
	afterTransfer         // passes a ticket on
	afterDoor             // is let in
	afterUndo             // is let in, which is undone, and is let in again
	afterOffline          // is let in by a device without a network
	afterConflict         // is let in twice: at one door, and at another one without a network
	afterDocument         // wants another ticket for the same identity document
	afterCount
)

// A buyer is one person of the demo, decided before the sale begins: only what the others do is left to chance.
type buyer struct {
	number int
	name   string // the sub of the buyer's token
	party  int
	way    way
	ending ending
	card   card
	retry  bool // after a declined card, tries another one

	extend bool // asks for more time
	doubleHeld, doublePaid,
	dropHeld, dropPaid bool // clicks twice; hangs up before the answer
	keyless   bool // holds without an Idempotency-Key, so that the board may say no
	stale     bool // picks what is taken, from an old picture
	otherGood bool // takes other seats as good where these are lost
	showsQR   bool // looks at a ticket
	signsIn   bool // with a code by mail; the others have throw-away tokens
	named     bool // goes to the event for which attendees are named
	middle    bool // takes a category that has dearer and cheaper ones beside it
	after     after

	presale    bool // has a code for the lane that goes before
	tabs       int  // that are open at once; 0 is one
	comesLate  bool // joins after the opening
	oversleeps bool // claims when the turn is over
	rejoins    bool // gives the number up, and takes another
	forgets    bool // goes without leaving: the session runs out
	noShow     bool // joins and never comes

	random *rand.Rand
}

// cast decides who comes. The same seed gives the same buyers. The first of them are a procession of every behaviour
// there is, so that none is missing however few come.
func cast(seed uint64, count int, authorize bool) ([]buyer, error) {
	parts := roles(authorize)
	if count < len(parts) {
		return nil, fmt.Errorf("%d buyers are too few to show every behaviour: use at least %d", count, len(parts))
	}
	random := rand.New(rand.NewPCG(seed, 0x64656d6f))
	all := make([]buyer, count)
	for i := range all {
		b := &all[i]
		*b = buyer{number: i, name: fmt.Sprintf("demo-%d-%06d", seed, i), random: rand.New(rand.NewPCG(seed, uint64(i)+1))}
		evening(b, random, authorize)
		if i < len(parts) {
			b.ordinary()
			parts[i](b)
			b.presale = true // early, while there are seats for everything
		}
	}
	return all, nil
}

// ordinary makes a buyer one who takes two seats and pays.
func (b *buyer) ordinary() {
	*b = buyer{number: b.number, name: b.name, random: b.random, party: 2}
}

// evening decides an ordinary evening's buyer.
func evening(b *buyer, random *rand.Rand, authorize bool) {
	b.party = pick(random, parties)
	b.way = pick(random, ways)
	b.retry, b.otherGood = random.IntN(2) == 0, random.IntN(2) == 0
	b.keyless = b.way == wayPicked && random.IntN(2) == 0
	chance := func(percent int) bool { return random.IntN(100) < percent }
	b.extend, b.showsQR = chance(4), chance(2)
	b.stale = b.way == wayPicked && chance(5)
	switch random.IntN(100) {
	case 0, 1, 2:
		b.doubleHeld = true
	case 3, 4:
		b.dropHeld = true
	case 5, 6, 7:
		b.doublePaid = true
	case 8, 9:
		b.dropPaid = true
	}
	if b.doubleHeld || b.dropHeld {
		b.keyless = false
	}
	b.ending = pick(random, endings)
	if b.ending == endPays {
		b.card = pick(random, cards)
	}
	if b.card == cardNoCapture && !authorize {
		b.card = cardGood
	}
	b.signsIn = random.IntN(1000) < signInPerMille
	queueUp(b, chance)
	if b.ending == endPays && b.card == cardGood {
		b.after = pick(random, afters)
	}
}

// queueUp decides how somebody stands in line.
func queueUp(b *buyer, chance func(percent int) bool) {
	b.presale, b.comesLate, b.forgets = chance(5), chance(10), chance(20)
	b.oversleeps, b.rejoins = chance(2), chance(2)
	if chance(12) {
		b.tabs = 3
	}
}

// signInPerMille of the crowd sign in with a code. Each costs a mail, which a person waits for.
const signInPerMille = 30

// A share is how many of a hundred (or so) do something.
type share[T any] struct {
	weight int
	value  T
}

func pick[T any](random *rand.Rand, shares []share[T]) T {
	sum := 0
	for _, s := range shares {
		sum += s.weight
	}
	n := random.IntN(sum)
	for _, s := range shares {
		if n -= s.weight; n < 0 {
			return s.value
		}
	}
	panic("demo: shares without weight")
}

var (
	parties = []share[int]{{40, 2}, {24, 4}, {15, 3}, {12, 1}, {9, 6}} // as in real listings
	ways    = []share[way]{{60, wayBest}, {32, wayPicked}, {8, wayStanding}}
	endings = []share[ending]{{70, endPays}, {18, endWalks}, {12, endReleases}}
	// Of those who pay, per thousand.
	cards = []share[card]{
		{812, cardGood}, {90, cardDeclined}, {10, cardDeclinedSoft}, {24, cardPending}, {4, cardPendingNo}, {2, cardSilent},
		{6, cardLate}, {12, cardLostAnswer}, {8, cardServerError}, {4, cardWrongAmount}, {4, cardSecondPayment},
		{4, cardNoCapture}, {10, cardRepeat}, {10, cardReorder},
	}
)

// afters are what is done with tickets later, per thousand of those who pay with a good card.
var afters = []share[after]{
	{940, afterNothing}, {7, afterRefundAll}, {9, afterRefundSome}, {2, afterRefundRace}, {3, afterOrganizer}, {8, afterDearer}, {8, afterCheaper},
	{2, afterDeclined}, {3, afterLapse}, {6, afterTransfer}, {10, afterDoor}, {1, afterUndo}, {1, afterConflict},
}

// roles are one buyer for each behaviour. Late money comes first, while the seats may still be free when it arrives.
func roles(authorize bool) []func(*buyer) {
	all := []func(*buyer){
		func(b *buyer) { b.card, b.otherGood = cardLate, true },
		func(b *buyer) { b.card, b.otherGood, b.way = cardLate, true, wayStanding },
		func(b *buyer) { b.card, b.otherGood, b.party = cardLate, true, 1 },
		func(b *buyer) { b.ending = endWalks },
		func(b *buyer) { b.ending, b.way = endWalks, wayStanding },
		func(b *buyer) { b.ending = endReleases },
		func(b *buyer) { b.extend = true },
		func(b *buyer) { b.extend, b.ending = true, endWalks },
		func(b *buyer) { b.way = wayPicked },
		func(b *buyer) { b.way, b.keyless = wayPicked, true },
		func(b *buyer) { b.way = wayStanding },
		func(b *buyer) { b.party = 6 },
		func(b *buyer) { b.doubleHeld = true },
		func(b *buyer) { b.doublePaid = true },
		func(b *buyer) { b.dropHeld = true },
		func(b *buyer) { b.dropPaid = true },
		func(b *buyer) { b.card = cardDeclined },
		func(b *buyer) { b.card, b.retry = cardDeclined, true },
		func(b *buyer) { b.card, b.retry = cardDeclinedSoft, true },
		func(b *buyer) { b.card = cardPending },
		func(b *buyer) { b.card = cardPendingNo },
		func(b *buyer) { b.card = cardSilent },
		func(b *buyer) { b.card = cardLostAnswer },
		func(b *buyer) { b.card = cardServerError },
		func(b *buyer) { b.card = cardWrongAmount },
		func(b *buyer) { b.card = cardSecondPayment },
		func(b *buyer) { b.card = cardRepeat },
		func(b *buyer) { b.card = cardReorder },
		func(b *buyer) { b.showsQR = true },
		func(b *buyer) { b.way, b.stale = wayPicked, true },
		func(b *buyer) { b.way, b.stale, b.keyless = wayPicked, true, true },
		func(b *buyer) { b.tabs = 3 },
		func(b *buyer) { b.rejoins = true },
		func(b *buyer) { b.oversleeps = true },
	}
	if authorize {
		all = append(all, func(b *buyer) { b.card = cardNoCapture })
	}
	return append(all, laterRoles()...)
}

// laterRoles are those who do something with their tickets, each twice: a kill may keep one from it.
func laterRoles() []func(*buyer) {
	var all []func(*buyer)
	for _, signsIn := range []bool{true, false} {
		for a := afterNothing + 1; a < afterDocument; a++ {
			all = append(all, func(b *buyer) {
				b.after, b.signsIn, b.middle = a, signsIn, true
				if a == afterRefused {
					b.card = cardNoRefund
				}
			})
		}
		all = append(all,
			func(b *buyer) { b.signsIn, b.named, b.after = signsIn, true, afterDocument },
			func(b *buyer) { b.signsIn, b.named, b.after = signsIn, true, afterDoor },
		)
	}
	return all
}
