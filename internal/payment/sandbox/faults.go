package sandbox

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// A Fault is one thing that goes wrong, or otherwise than a caller hopes, for one order. The package comment has the
// table of what each one does.
type Fault string

const (
	FaultDeclined        Fault = "declined"
	FaultDeclinedSoft    Fault = "declined_soft"
	FaultPending         Fault = "pending"
	FaultPendingDeclined Fault = "pending_declined"
	FaultPayLate         Fault = "pay_late"

	FaultServerError    Fault = "server_error"
	FaultLostAnswer     Fault = "lost_answer"
	FaultWrongAmount    Fault = "wrong_amount"
	FaultSecondPayment  Fault = "second_payment"
	FaultCaptureRefused Fault = "capture_refused"
	FaultRefundRefused  Fault = "refund_refused"

	FaultWebhookRepeat  Fault = "webhook_repeat"
	FaultWebhookReorder Fault = "webhook_reorder"
	FaultWebhookNever   Fault = "webhook_never"
)

// outcomes exclude each other: an order has at most one of them.
var outcomes = []Fault{FaultDeclined, FaultDeclinedSoft, FaultPending, FaultPendingDeclined, FaultPayLate}

// sideFaults go with any outcome and with each other.
var sideFaults = []Fault{
	FaultServerError, FaultLostAnswer, FaultWrongAmount, FaultSecondPayment, FaultCaptureRefused, FaultRefundRefused,
	FaultWebhookRepeat, FaultWebhookReorder, FaultWebhookNever,
}

// Faults lists every fault there is, in the order of the package comment's table.
func Faults() []Fault { return slices.Concat(outcomes, sideFaults) }

// Token is the payment token that asks for exactly these faults; without any it is TokenSure.
func Token(faults ...Fault) string {
	if len(faults) == 0 {
		return TokenSure
	}
	names := make([]string, len(faults))
	for i, f := range faults {
		names[i] = string(f)
	}
	return tokenPrefix + strings.Join(names, "+")
}

const (
	TokenOK   = "tok_ok"   // pays, and meets the faults that the FaultPlan draws for its order
	TokenSure = "tok_sure" // pays and meets no fault, whatever the FaultPlan says

	tokenPrefix = "tok_"
)

// A FaultPlan says how often each fault meets an order paid with TokenOK. What meets which order follows from Seed and
// the order id alone, so a run can be repeated whatever the interleaving. The zero plan has no faults.
type FaultPlan struct {
	Seed  uint64
	Rates map[Fault]float64 // share of orders, 0 to 1; outcomes (which exclude each other) sum to 1 at most
}

// Validate names what is wrong with the plan and how to mend it.
func (p FaultPlan) Validate() error {
	sum := 0.0
	known := Faults()
	for _, f := range slices.Sorted(maps.Keys(p.Rates)) {
		rate := p.Rates[f]
		if !slices.Contains(known, f) {
			return fmt.Errorf("sandbox: fault %q is unknown; use one of %v", f, known)
		}
		if math.IsNaN(rate) || rate < 0 || rate > 1 {
			return fmt.Errorf("sandbox: rate of fault %q is %v; use 0 to 1", f, rate)
		}
		if slices.Contains(outcomes, f) {
			sum += rate
		}
	}
	if sum > 1 {
		return fmt.Errorf("sandbox: rates of %v sum to %v; they exclude each other, use at most 1", outcomes, sum)
	}
	return nil
}

// draw is what the plan has for one order.
func (p FaultPlan) draw(orderID string) faultSet {
	var set faultSet
	u := p.chance("outcome", orderID)
	for _, f := range outcomes {
		if u < p.Rates[f] {
			set = append(set, f)
			break
		}
		u -= p.Rates[f]
	}
	for _, f := range sideFaults {
		if p.Rates[f] > 0 && p.chance(string(f), orderID) < p.Rates[f] {
			set = append(set, f)
		}
	}
	return set
}

// chance is a number in [0, 1) that depends on seed, what and order alone.
func (p FaultPlan) chance(what, orderID string) float64 {
	text := binary.BigEndian.AppendUint64(nil, p.Seed)
	text = append(text, what+"\x00"+orderID...)
	sum := sha256.Sum256(text)
	return float64(binary.BigEndian.Uint64(sum[:8])>>11) / (1 << 53)
}

// faultSet is what meets one order, drawn once at its first attempt and kept in the books.
type faultSet []Fault

func (s faultSet) has(f Fault) bool { return slices.Contains(s, f) }

// outcome is the set's one outcome, or empty where the order is simply paid.
func (s faultSet) outcome() Fault {
	for _, f := range s {
		if slices.Contains(outcomes, f) {
			return f
		}
	}
	return ""
}

func (s faultSet) String() string {
	names := make([]string, len(s))
	for i, f := range s {
		names[i] = string(f)
	}
	return strings.Join(names, "+")
}

// parseFaults reads what String wrote, or the part of a token after its prefix. ok is false where a name is unknown, one
// stands twice or two outcomes stand together.
func parseFaults(text string) (set faultSet, ok bool) {
	if text == "" {
		return nil, true
	}
	known := Faults()
	outcome := false
	for name := range strings.SplitSeq(text, "+") {
		f := Fault(name)
		if !slices.Contains(known, f) || set.has(f) {
			return nil, false
		}
		if slices.Contains(outcomes, f) {
			if outcome {
				return nil, false
			}
			outcome = true
		}
		set = append(set, f)
	}
	return set, true
}

// faultsOf is what meets an order paid with a token; ok is false where no bank knows the token.
func (p FaultPlan) faultsOf(token, orderID string) (set faultSet, ok bool) {
	switch token {
	case TokenOK:
		return p.draw(orderID), true
	case TokenSure:
		return nil, true
	}
	names, isToken := strings.CutPrefix(token, tokenPrefix)
	if !isToken || names == "" {
		return nil, false
	}
	return parseFaults(names)
}
