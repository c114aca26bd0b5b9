package payment

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
)

func TestErrorsAreToldApart(t *testing.T) {
	all := []error{ErrUnknown, ErrConflict, ErrNotFound, ErrInvalid, ErrSignature, ErrStale, ErrWrongAccount, ErrMalformed}
	unknown := fmt.Errorf("order 7: %w", Unknown("charge", io.ErrUnexpectedEOF))
	if !errors.Is(unknown, ErrUnknown) || !errors.Is(unknown, io.ErrUnexpectedEOF) {
		t.Errorf("%v hides what it is or its cause", unknown)
	}
	for _, err := range all[1:] {
		if errors.Is(unknown, err) {
			t.Errorf("an unknown outcome is also %v", err)
		}
	}
	var refused *Refused
	if errors.As(unknown, &refused) {
		t.Error("an unknown outcome is also a refusal")
	}
	if err := error(&Refused{Op: "capture", Code: "expired"}); !errors.As(err, &refused) || errors.Is(err, ErrUnknown) {
		t.Errorf("%v is not a refusal alone", err)
	}
}

func TestStates(t *testing.T) {
	for state, want := range map[State]struct{ paid, ended bool }{
		Pending: {false, false}, Authorized: {true, false}, Captured: {true, true},
		Declined: {false, true}, Voided: {false, true}, Cancelled: {false, true},
	} {
		if state.Paid() != want.paid || state.Ended() != want.ended {
			t.Errorf("%s: paid %v, ended %v", state, state.Paid(), state.Ended())
		}
	}
}

func TestLimitsOfIDs(t *testing.T) {
	for id, ok := range map[string]bool{
		"a": true, "ord_0A1B2C3D4E5F6": true, strings.Repeat("x", IDBytesMax): true, strings.Repeat("x", IDBytesMax+1): false,
		"": false, "a b": false, "a/b": false, "ä": false, "a\x00": false, ".": false,
	} {
		if err := ValidateID("id", id); (err == nil) != ok || !ok && !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// core is a provider that can do nothing but the core.
type core struct{ Provider }

func (core) Name() string { return "core" }

func TestCheckNamesWhatIsMissing(t *testing.T) {
	err := Check(core{})
	if err == nil || !strings.Contains(err.Error(), "refund") || !strings.Contains(err.Error(), "list") {
		t.Errorf("%v", err)
	}
}

// whole can do everything; parts says whether its refunds may be parts.
type whole struct {
	core
	Authorizer
	Refunder
	Notifier
	Lister
	parts bool
}

func (w whole) RefundsParts() bool { return w.parts }

type refunds struct {
	core
	Refunder
}

func TestCapabilities(t *testing.T) {
	for want, p := range map[string]Provider{
		"cancel":                         core{},
		"refund, partial refund, cancel": refunds{},
		"authorize, refund, cancel, notify, list":                 whole{},
		"authorize, refund, partial refund, cancel, notify, list": whole{parts: true},
	} {
		if got := CapabilitiesOf(p).String(); got != want {
			t.Errorf("%T can %q, want %q", p, got, want)
		}
	}
}

// An action lets whoever has it finish a payment: no way of printing a payment may show it.
func TestActionIsNeverShown(t *testing.T) {
	p := Payment{ID: "pay_1", State: Pending, Action: &Action{ClientSecret: "topsecret", RedirectURL: "https://topsecret.example"}}
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, nil))
	logger.Info("payment", "action", *p.Action, "pointer", p.Action, "payment", p)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("payment", "action", *p.Action, "pointer", p.Action, "payment", p)
	stored, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := json.Marshal(p.Action); err == nil {
		t.Error("an action can be stored")
	}
	shown := fmt.Sprintf("%v %+v %#v %s %v %+v %#v", p, p, p, p.Action, *p.Action, *p.Action, *p.Action) + log.String() + string(stored)
	if strings.Contains(shown, "topsecret") {
		t.Errorf("it is shown: %s", shown)
	}
}
