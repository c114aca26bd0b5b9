package ledger

import (
	"strings"
	"unicode/utf8"
)

// A modelText is a text of a command that is kept, and the field that it is of.
type modelText struct {
	field, text string
	bytesMax    int
}

// textProblem is the first field with a text that not every database can keep (A2), "" where all can.
func textProblem(c Command) string {
	var texts []modelText
	add := func(field, text string) { texts = append(texts, modelText{field, text, TextBytesMax}) }
	addKey := func(k Key) {
		texts = append(texts, modelText{"key", k.Value, KeyBytesMax})
		for _, f := range k.Fields {
			add("key", f.Name)
			add("key", f.Hash)
		}
	}
	switch c := c.(type) {
	case SetEvent:
		add("plan_hash", c.Event.PlanHash)
		add("currency", c.Event.Currency)
		for _, t := range c.Event.Tiers {
			add("tiers.name", t.Name)
		}
		add("room.source", c.Event.Room.Source)
		for _, l := range c.Event.Room.Lanes {
			add("room.lanes", l.Key)
		}
	case HoldSeats:
		addKey(c.Key)
	case HoldPlaces:
		addKey(c.Key)
	case BeginPayment:
		addKey(c.Key)
		add("provider", c.Provider)
		for _, d := range c.Documents {
			add("documents", d)
		}
	case Confirm:
		add("payment", c.Payment)
		add("currency", c.Currency)
	case FailPayment:
		add("reason", c.Reason)
	case RecordPayment:
		add("payment", c.Payment)
	case BeginRefund:
		addKey(c.Key)
		add("reason", c.Reason)
	case RefuseRefund:
		add("reason", c.Reason)
	case Transfer:
		addKey(c.Key)
		add("document", c.Document)
	case CheckIn:
		add("gate", c.Gate)
		add("device", c.Device)
	case UndoCheckIn:
		add("reason", c.Reason)
	case AddWish:
		addKey(c.Key)
	case SetReturns:
		for _, c := range c.Line {
			add("line", c.Lane)
		}
	default:
		roomTexts(c, add)
	}
	for _, t := range texts {
		if len(t.text) > t.bytesMax || !utf8.ValidString(t.text) || strings.ContainsRune(t.text, 0) {
			return t.field
		}
	}
	return ""
}

// roomTexts adds the texts of a waiting room's command.
func roomTexts(c Command, add func(field, text string)) {
	switch c := c.(type) {
	case RoomCommit:
		add("commitment", c.Commitment)
		add("source", c.Source)
	case RoomNumbers:
		add("lane", c.Lane)
	case RoomFreeze:
		add("list_hash", c.ListHash)
		for _, l := range c.Lanes {
			add("lanes", l.Lane)
		}
	case RoomDraw:
		add("value", c.Value)
		add("k", c.K)
	case Advance:
		for _, l := range c.Joined {
			add("joined", l.Lane)
		}
	case Enter:
		add("lane", c.Lane)
	case TakeCode:
		add("lane", c.Lane)
		add("code", c.Code)
	}
}
