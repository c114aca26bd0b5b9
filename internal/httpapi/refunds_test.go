package httpapi

import (
	"testing"

	"onsale/internal/ledger"
)

// A program reads the rule and whether the money is back, and need not take a text apart.
func TestRefundsAsProgramsReadThem(t *testing.T) {
	for text, want := range map[string]KeptRule{
		"customer 1000 bp + 200": {Kind: "customer", FeeBP: 1000, FeePlace: 200}, "customer 0 bp + 0": {Kind: "customer"},
		"organizer": {Kind: "organizer"}, "exchange": {Kind: "exchange"}, "": {}, "customer": {}, "customer x bp + 1": {},
	} {
		shown := showRefund(&ledger.Refund{Rule: text, State: ledger.RefundRequested})
		if (shown.By == nil) != (want == KeptRule{}) || shown.By != nil && *shown.By != want {
			t.Errorf("%q: %+v, want %+v", text, shown.By, want)
		}
	}
	for state, want := range map[ledger.RefundState]bool{ledger.RefundRequested: false, ledger.RefundDone: true, ledger.RefundSeatReleased: true} {
		if shown := showRefund(&ledger.Refund{State: state}); shown.Back != want {
			t.Errorf("%s: back is %t", state, shown.Back)
		}
	}
}
