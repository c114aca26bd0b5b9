package decide

import (
	"reflect"
	"testing"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

// What is kept as text comes back as it was; lines of which none is gone are written as older programs read them.
func TestCodecOfWhatChangesAfterASale(t *testing.T) {
	lines := []ledger.Line{{Seat: 3, Epoch: 7, Category: 1, Face: 5000, Fee: 100, Tax: 9, Total: 5109}, {Seat: -1, Total: 1}}
	if text := string(AppendLines(nil, lines)); text != `[[1],[3,7,1,5000,100,9,5109],[-1,0,0,0,0,0,1]]` {
		t.Errorf("lines: %s", text)
	}
	lines[1].Gone = true
	text := string(AppendLines(nil, lines))
	if text != `[[2],[3,7,1,5000,100,9,5109],[-1,0,0,0,0,0,1,1]]` {
		t.Errorf("lines, one gone: %s", text)
	}
	same(t, lines, text, ParseLines)

	places := []ledger.ExchangedPlace{{Ticket: 1 << 62, Event: 2, Category: 3}, {Ticket: 4, Event: 5, Category: 0}}
	same(t, places, string(AppendExchanged(nil, places)), ParseExchanged)
	same(t, nil, string(AppendExchanged(nil, nil)), ParseExchanged)

	funds := []ledger.Fund{{Order: 1 << 62, Provider: "stripe", Payment: `pi_"1"`, Left: 700}, {Order: 2, Provider: "sandbox", Payment: "x"}}
	same(t, funds, EncodeFunds(funds), DecodeFunds)
	same(t, nil, EncodeFunds(nil), DecodeFunds)

	tickets := []id.ID{1 << 62, 5}
	if text := EncodeTickets(tickets); text != `[4611686018427387904,5]` {
		t.Errorf("tickets: %s", text)
	}
	same(t, tickets, EncodeTickets(tickets), DecodeTickets)
	same(t, nil, EncodeTickets(nil), DecodeTickets)

	claims := Transition{Seats: []int32{4, 5}, Epoch: []int64{1, 2}}
	same(t, claims.Seats, string(claims.AppendClaims(nil)), ParseClaims)
	for _, bad := range []string{"", "[", "[[1]]", `[["a",1]]`, "[[1,2,3,4]]"} {
		if got, err := ParseExchanged(bad); err == nil {
			t.Errorf("%q was read as %+v", bad, got)
		}
	}
}

func same[T any](t *testing.T, want []T, text string, parse func(string) ([]T, error)) {
	t.Helper()
	if got, err := parse(text); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s came back as %+v, %v", text, got, err)
	}
}
