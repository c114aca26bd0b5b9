package decide

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"onsale/internal/ledger"
)

// CheckText refuses a command with a text that not every database can keep (A2): one that is not UTF-8, has a NUL, or is
// too long. It is asked before anything is sent, so that one such command does not fail its whole batch.
func CheckText(c ledger.Command) error {
	var t texts
	switch c := c.(type) {
	case ledger.SetEvent:
		t.text("plan_hash", c.Event.PlanHash)
		t.text("currency", c.Event.Currency)
		for i := range c.Event.Tiers {
			t.text("tiers.name", c.Event.Tiers[i].Name)
		}
		t.text("room.source", c.Event.Room.Source)
		for _, l := range c.Event.Room.Lanes {
			t.text("room.lanes", l.Key)
		}
	case ledger.HoldSeats:
		t.key(c.Key)
	case ledger.HoldPlaces:
		t.key(c.Key)
	case ledger.BeginPayment:
		t.key(c.Key)
		t.text("provider", c.Provider)
		for _, d := range c.Documents {
			t.text("documents", d)
		}
	case ledger.Confirm:
		t.text("payment", c.Payment)
		t.text("currency", c.Currency)
	case ledger.FailPayment:
		t.text("reason", c.Reason)
	case ledger.RecordPayment:
		t.text("payment", c.Payment)
	case ledger.BeginRefund:
		t.key(c.Key)
		t.text("reason", c.Reason)
	case ledger.RefuseRefund:
		t.text("reason", c.Reason)
	case ledger.Transfer:
		t.key(c.Key)
		t.text("document", c.Document)
	case ledger.CheckIn:
		t.text("gate", c.Gate)
		t.text("device", c.Device)
	case ledger.UndoCheckIn:
		t.text("reason", c.Reason)
	case ledger.AddWish:
		t.key(c.Key)
	case ledger.SetReturns:
		for _, c := range c.Line {
			t.text("line", c.Lane)
		}
	default:
		t.room(c)
	}
	return t.err
}

// room checks the texts of a waiting room's commands.
func (t *texts) room(c ledger.Command) {
	switch c := c.(type) {
	case ledger.RoomCommit:
		t.text("commitment", c.Commitment)
		t.text("source", c.Source)
	case ledger.RoomNumbers:
		t.text("lane", c.Lane)
	case ledger.RoomFreeze:
		t.text("list_hash", c.ListHash)
		for _, l := range c.Lanes {
			t.text("lanes", l.Lane)
		}
	case ledger.RoomDraw:
		t.text("value", c.Value)
		t.text("k", c.K)
	case ledger.Advance:
		for _, l := range c.Joined {
			t.text("joined", l.Lane)
		}
	case ledger.Enter:
		t.text("lane", c.Lane)
	case ledger.TakeCode:
		t.text("lane", c.Lane)
		t.text("code", c.Code)
	}
}

// texts keeps the first complaint.
type texts struct{ err error }

func (t *texts) key(k ledger.Key) {
	t.bounded("key", k.Value, ledger.KeyBytesMax)
	for _, f := range k.Fields {
		t.text("key", f.Name)
		t.text("key", f.Hash)
	}
}

func (t *texts) text(field, text string) { t.bounded(field, text, ledger.TextBytesMax) }

func (t *texts) bounded(field, text string, most int) {
	if t.err != nil {
		return
	}
	what := ""
	switch {
	case len(text) > most:
		what = fmt.Sprintf("a text has at most %d bytes", most)
	case !utf8.ValidString(text):
		what = "a text must be UTF-8"
	case strings.IndexByte(text, 0) >= 0:
		what = "a text must not have a NUL"
	default:
		return
	}
	t.err = invalid(field, "%s", what)
}
