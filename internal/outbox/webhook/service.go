package webhook

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
)

// A Service is what commands and the organizer API call.
type Service struct {
	store   Store
	sealer  Sealer
	newID   func(shard int) (id.ID, error)
	allowed []netip.Prefix
	now     func() time.Time
	wake    func()
}

// NewService makes one. allowed are the operator's exceptions from public addresses; now and wake (Dispatcher.Wake) may be nil.
func NewService(store Store, sealer Sealer, newID func(shard int) (id.ID, error), allowed []netip.Prefix, now func() time.Time, wake func()) *Service {
	if now == nil {
		now = time.Now
	}
	if wake == nil {
		wake = func() {}
	}
	return &Service{store: store, sealer: sealer, newID: newID, allowed: allowed, now: now, wake: wake}
}

// ListMax is how many deliveries one call lists at most.
const ListMax = 1000

// Add makes an endpoint and answers it with its secret, which is never shown again. Faults: invalid; conflict.
func (s *Service) Add(ctx context.Context, organizer id.ID, url string, kinds []string) (Endpoint, string, error) {
	if err := s.check(url, kinds); err != nil {
		return Endpoint{}, "", err
	}
	number, err := s.newID(0)
	if err != nil {
		return Endpoint{}, "", err
	}
	e := Endpoint{ID: number, Organizer: organizer, URL: url, Kinds: kinds, On: true, Created: s.now()}
	secret := newSecret()
	if e.Sealed, err = s.sealer.Seal(sealName(e.ID), []byte(secret)); err != nil {
		return Endpoint{}, "", err
	}
	return e, secret, asFault(s.store.AddEndpoint(ctx, e, EndpointsPerOrganizerMax))
}

func (s *Service) check(url string, kinds []string) error {
	if err := CheckURL(url, s.allowed); err != nil {
		return &fault.Error{Code: fault.Invalid, Field: "url", Detail: err.Error()}
	}
	if len(kinds) > KindsMax {
		return &fault.Error{Code: fault.Invalid, Field: "kinds", Detail: "that are more kinds than there are"}
	}
	for _, kind := range kinds {
		if !slices.Contains(Kinds, kind) {
			return fault.New(fault.Invalid, "there is no kind %.60q; there are: %q", kind, Kinds)
		}
	}
	return nil
}

func asFault(err error) error {
	switch {
	case errors.Is(err, ErrUnknown):
		return fault.New(fault.NotFound, "there is no such webhook; see onsale webhook list")
	case errors.Is(err, ErrTaken):
		return fault.New(fault.Conflict, "there is a webhook with this URL already")
	case errors.Is(err, ErrTooMany):
		return fault.New(fault.Conflict, "an organizer has at most %d webhooks: remove one first", EndpointsPerOrganizerMax)
	}
	return err
}

// Get is one endpoint of an organizer's. Faults: not_found, also for another's.
func (s *Service) Get(ctx context.Context, organizer, endpoint id.ID) (Endpoint, error) {
	e, err := s.store.Endpoint(ctx, endpoint)
	if err == nil && e.Organizer != organizer {
		err = ErrUnknown
	}
	return e, asFault(err)
}

// List are an organizer's endpoints, with how their deliveries stand.
func (s *Service) List(ctx context.Context, organizer id.ID) ([]Endpoint, []Counts, error) {
	all, err := s.store.Endpoints(ctx, organizer)
	if err != nil {
		return nil, nil, err
	}
	counts := make([]Counts, len(all))
	for i := range all {
		if counts[i], err = s.store.Count(ctx, all[i].ID); err != nil {
			return nil, nil, err
		}
	}
	return all, counts, nil
}

// Change sets URL, kinds and whether it is on. Faults: invalid; not_found; conflict.
func (s *Service) Change(ctx context.Context, organizer, endpoint id.ID, url string, kinds []string, on bool) (Endpoint, error) {
	e, err := s.Get(ctx, organizer, endpoint)
	if err != nil {
		return e, err
	}
	if err := s.check(url, kinds); err != nil {
		return e, err
	}
	e.URL, e.Kinds, e.On = url, kinds, on
	err = asFault(s.store.SetEndpoint(ctx, e))
	s.wake()
	return e, err
}

// Rotate makes a new secret and answers it; the old one signs too for a day. Faults: not_found.
func (s *Service) Rotate(ctx context.Context, organizer, endpoint id.ID) (string, error) {
	e, err := s.Get(ctx, organizer, endpoint)
	if err != nil {
		return "", err
	}
	secret, was := newSecret(), e.Sealed
	e.OldSealed, e.OldUntil = was, s.now().Add(rotateTime)
	if e.Sealed, err = s.sealer.Seal(sealName(e.ID), []byte(secret)); err != nil {
		return "", err
	}
	if err := asFault(s.store.RotateEndpoint(ctx, e, was)); err != nil {
		return "", err // somebody else has removed or rotated it meanwhile: their secret signs
	}
	return secret, nil
}

// Remove removes an endpoint and its deliveries. Faults: not_found.
func (s *Service) Remove(ctx context.Context, organizer, endpoint id.ID) error {
	if _, err := s.Get(ctx, organizer, endpoint); err != nil {
		return err
	}
	return asFault(s.store.RemoveEndpoint(ctx, endpoint))
}

// Deliveries are an endpoint's in a state ("" for any), newest first. Faults: not_found; invalid.
func (s *Service) Deliveries(ctx context.Context, organizer, endpoint id.ID, state string, max int) ([]Delivery, error) {
	if _, err := s.Get(ctx, organizer, endpoint); err != nil {
		return nil, err
	}
	if !slices.Contains([]string{"", Due, Ended, Dead}, state) {
		return nil, fault.New(fault.Invalid, "state %.20q: write due, ended or dead", state)
	}
	return s.store.List(ctx, endpoint, state, min(max, ListMax))
}

// Replay delivers again and says how many. Faults: not_found; invalid where it is not said what.
func (s *Service) Replay(ctx context.Context, organizer, endpoint id.ID, r Replay) (int, error) {
	if _, err := s.Get(ctx, organizer, endpoint); err != nil {
		return 0, err
	}
	chosen := 0
	for _, named := range []bool{r.Message != "", r.Dead, !r.Since.IsZero()} {
		if named {
			chosen++
		}
	}
	if chosen != 1 {
		return 0, fault.New(fault.Invalid, "say which: one message, all dead ones, or all since a time")
	}
	n, err := s.store.Replay(ctx, endpoint, r)
	if err == nil && n == 0 && r.Message != "" {
		return 0, fault.New(fault.NotFound, "there is no message %.80q that is not waiting already", r.Message)
	}
	s.wake()
	return n, err
}
