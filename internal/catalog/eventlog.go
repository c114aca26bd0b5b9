package catalog

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
)

// Limits of an event's log.
const (
	LogPageMax      = 200
	LogValueBytes   = 4_096 // of a value before or after a change that is kept; a longer one is said to be so
	logChangesMax   = 200
	tooLongToBeKept = `"(too long to be shown)"`
)

// An Actor is who changes an event, and what they are doing. The zero value is the operator's command.
type Actor struct {
	Customer id.ID
	Role     string
	Action   string // "room.pause"; "": "event.make" or "event.change"
}

type actorKey struct{}

// WithActor says who makes the changes that are made with a context. Each is written into the event's log in the
// transaction that makes it, so there is none without a line, and no line without a change.
func WithActor(ctx context.Context, a Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, a)
}

// ActorOf is who WithActor named.
func ActorOf(ctx context.Context) Actor {
	a, _ := ctx.Value(actorKey{}).(Actor)
	return a
}

// A LogEntry is a line of an event's log.
type LogEntry struct {
	Seq     int64
	At      time.Time
	Actor   id.ID // 0: the operator's command, or the program itself
	Role    string
	Action  string
	Version int64 // of the event after it, 0 where it is no edit
	Changes []Change
}

// A Change is a field of an event, before and after. What was not there is null.
type Change struct {
	Field  string          `json:"field"` // "room.rate"
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
}

// Changes are what differs between two versions of an event, by field: groups of settings field by field, lists as a whole.
func Changes(before, after *Event) ([]Change, error) {
	old, err := flat(before)
	if err != nil {
		return nil, err
	}
	next, err := flat(after)
	if err != nil {
		return nil, err
	}
	fields := maps.Clone(old)
	maps.Copy(fields, next)
	changes := []Change{}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		switch field {
		case "version", "updated_at", "format":
			continue
		}
		b, a := old[field], next[field]
		if !bytes.Equal(b, a) && len(changes) < logChangesMax {
			changes = append(changes, Change{Field: field, Before: shown(b), After: shown(a)})
		}
	}
	return changes, nil
}

// shown is a value as the log keeps it.
func shown(value json.RawMessage) json.RawMessage {
	switch {
	case value == nil:
		return json.RawMessage("null")
	case len(value) > LogValueBytes:
		return json.RawMessage(tooLongToBeKept)
	}
	return value
}

// flat is an event's JSON with its groups taken apart: "room.rate".
func flat(e *Event) (map[string]json.RawMessage, error) {
	if e == nil {
		return map[string]json.RawMessage{}, nil
	}
	text, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	var top map[string]json.RawMessage
	if err := json.Unmarshal(text, &top); err != nil {
		return nil, err
	}
	all := map[string]json.RawMessage{}
	for key, value := range top {
		if len(value) == 0 || value[0] != '{' {
			all[key] = value
			continue
		}
		var group map[string]json.RawMessage
		if err := json.Unmarshal(value, &group); err != nil {
			return nil, err
		}
		for inner, value := range group {
			all[key+"."+inner] = value
		}
	}
	return all, nil
}

// NewLogEntry is the line of a change of an event from one version to the next; nil before: it is made.
func NewLogEntry(ctx context.Context, before, after *Event) (LogEntry, error) {
	a := ActorOf(ctx)
	e := LogEntry{At: after.Updated, Actor: a.Customer, Role: a.Role, Action: cmp.Or(a.Action, "event.change"), Version: after.Version, Changes: []Change{}}
	if before == nil {
		e.Action = cmp.Or(a.Action, "event.make")
		return e, nil
	}
	var err error
	e.Changes, err = Changes(before, after)
	return e, err
}

// Log is what was done to an event, the newest first, before the given line (0: from the newest).
func (s *Service) Log(ctx context.Context, event id.ID, before int64, max int) ([]LogEntry, error) {
	return s.o.Store.Log(ctx, event, before, min(max, LogPageMax))
}

// Note writes into an event's log what is done to it beside its own settings: codes, a draw's value. It comes before the
// deed, so that none is without a line.
func (s *Service) Note(ctx context.Context, event id.ID, changes ...Change) error {
	a := ActorOf(ctx)
	if a.Action == "" {
		return fault.New(fault.Internal, "a line of the log without an action")
	}
	if changes == nil {
		changes = []Change{}
	}
	return s.o.Store.AddLog(ctx, event, LogEntry{At: s.now(), Actor: a.Customer, Role: a.Role, Action: a.Action, Changes: changes})
}

// NewChange is a change of a field that is not one of an event's own. A value that JSON cannot say is a bug.
func NewChange(field string, before, after any) Change {
	b, errB := json.Marshal(before)
	a, errA := json.Marshal(after)
	if errA != nil || errB != nil {
		panic("catalog: a change that JSON cannot say")
	}
	return Change{Field: field, Before: shown(b), After: shown(a)}
}
