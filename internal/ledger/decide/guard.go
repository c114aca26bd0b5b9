package decide

// A Guard names one of the conditions on which a promise rests.
type Guard string

// The guards, with the invariant that breaks without each.
const (
	GuardSeatFree  Guard = "seat-free"  // I1: a seat must be free to be held
	GuardPlaces    Guard = "places"     // I2: an area must have the places
	GuardHoldLive  Guard = "hold-live"  // I4: a hold must be live to become a ticket
	GuardOwner     Guard = "owner"      // I1: a seat is written only for the claim that owns it
	GuardKey       Guard = "key"        // I5: a repeat has no second effect
	GuardAmount    Guard = "amount"     // I6: the amount must be the order's
	GuardOneOrder  Guard = "one-order"  // A13: a hold has one order PENDING or PAID
	GuardSamePaid  Guard = "same-paid"  // I6: a second payment is given back
	GuardLimit     Guard = "limit"      // I9: limits
	GuardDocument  Guard = "document"   // I9: one document's limit
	GuardQuota     Guard = "quota"      // A11: what the organizer keeps back
	GuardWindow    Guard = "window"     // A6: state and window
	GuardCustomer  Guard = "customer"   // a hold is its customer's
	GuardCancelled Guard = "cancelled"  // A6: nothing of a cancelled event is sold
	GuardReturned  Guard = "returned"   // A23: a returned seat is promised
	GuardExtend    Guard = "extend-max" // A14: extensions are bounded

	GuardRefundOnce     Guard = "refund-once"     // A21: a ticket is in at most one refund
	GuardRefundAmount   Guard = "refund-amount"   // I6: no more is given back than is left
	GuardRefundCaptured Guard = "refund-captured" // I6: only what was captured is given back
	GuardExchangeMark   Guard = "exchange-mark"   // A22: a ticket is exchanged, refunded or passed on, one at a time
	GuardExchangeValid  Guard = "exchange-valid"  // A22: what is exchanged is VALID at the swap
	GuardReleaseEpoch   Guard = "release-epoch"   // A8: ReleaseSeats frees a seat only of its own sale, once
	GuardTransferValid  Guard = "transfer-valid"  // I7: only a VALID ticket is passed on
	GuardCheckInOnce    Guard = "checkin-once"    // E6: a ticket lets in once

	GuardOfferReturned Guard = "offer-returned" // A23: an offer takes what is promised to the list, and nothing else
	GuardOfferFits     Guard = "offer-fits"     // A23: nobody is offered what they do not want
	GuardOneWish       Guard = "one-wish"       // A23: a customer waits once
	GuardOfferMax      Guard = "offer-max"      // A23: offers to one person are bounded
	GuardLineFirst     Guard = "line-first"     // A23: the line goes before the list
	GuardSession       Guard = "session"        // I11: a hold needs a live session while the room is not off
	GuardRate          Guard = "rate"           // I10: at most R enter in a second
	GuardActive        Guard = "active-max"     // I10: at most ActiveMax are inside
	GuardNumberOnce    Guard = "number-once"    // I10: a number enters once
	GuardCalled        Guard = "called"         // I10: only who was called enters
	GuardKnockOrder    Guard = "knock-order"    // C7: who was called before goes before
	GuardCodeMax       Guard = "code-max"       // C1: a presale code is used so often
	GuardHoldRest      Guard = "hold-rest"      // C15: who lets holds run out rests
)

// Guards are all of them, for a test to walk.
var Guards = []Guard{
	GuardSeatFree, GuardPlaces, GuardHoldLive, GuardOwner, GuardKey, GuardAmount, GuardOneOrder, GuardSamePaid, GuardLimit,
	GuardDocument, GuardQuota, GuardWindow, GuardCustomer, GuardCancelled, GuardReturned, GuardExtend,
	GuardRefundOnce, GuardRefundAmount, GuardRefundCaptured, GuardExchangeMark, GuardExchangeValid, GuardReleaseEpoch,
	GuardTransferValid, GuardCheckInOnce,
	GuardOfferReturned, GuardOfferFits, GuardOneWish, GuardOfferMax, GuardLineFirst,
	GuardSession, GuardRate, GuardActive, GuardNumberOnce, GuardCalled, GuardKnockOrder, GuardCodeMax, GuardHoldRest,
}
