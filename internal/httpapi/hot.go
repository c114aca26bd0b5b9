package httpapi

import (
	"maps"
	"net/http"
	"strings"
	"sync"

	"onsale/internal/catalog"
	"onsale/internal/id"
)

// Two million people ask how the line stands, and few of them through the cache. So the status of a line and the position of
// a number have a short way in front of the table: no request id, no log, no limits, which cost more than the answer. It
// answers only what is as it should be; whatever is not goes the way of all requests, which finds the words for it.

const (
	statusCache = "public, max-age=1"
	jsonType    = "application/json"
)

// Header values that never change, so that no request makes them.
var (
	jsonTypeValues    = []string{jsonType}
	statusCacheValues = []string{statusCache}
	noStoreValues     = []string{"no-store"}
)

// positions are buffers for positions.
var positions = sync.Pool{New: func() any { b := make([]byte, 0, 512); return &b }}

// hot answers a status or a position, and says whether it did.
func (a *api) hot(w http.ResponseWriter, r *http.Request) bool {
	if a.Rooms == nil || r.Method != http.MethodGet || r.URL.RawQuery != "" || r.URL.RawPath != "" {
		return false
	}
	rest, ok := strings.CutPrefix(r.URL.Path, "/v1/events/")
	if !ok {
		return false
	}
	event, rest, _ := strings.Cut(rest, "/")
	rest, ok = strings.CutPrefix(rest, "queue")
	if !ok {
		return false
	}
	switch {
	case rest == "":
		return a.hotStatus(w, r, event)
	case len(rest) > 1 && rest[0] == '/' && len(rest) <= queueIDBytesMax && strings.IndexByte(rest[1:], '/') < 0:
		return a.hotPosition(w, r, event, rest[1:])
	}
	return false
}

// hotRoom is an event whose room is in force, as far as memory knows.
func (a *api) hotRoom(r *http.Request, text string) (e *catalog.Event, ok bool) {
	number, err := id.Parse(id.Event, text)
	if err != nil {
		return nil, false
	}
	e, err = a.Catalog.Event(r.Context(), number)
	return e, err == nil && e.State != catalog.Draft && e.Room.Active()
}

func (a *api) hotStatus(w http.ResponseWriter, r *http.Request, event string) bool {
	start := a.Now()
	e, ok := a.hotRoom(r, event)
	if !ok {
		return false
	}
	page, err := a.Rooms.Status(r.Context(), e.ID)
	if err != nil {
		return false
	}
	h := w.Header()
	maps.Copy(h, a.secure)
	h["Cache-Control"] = statusCacheValues
	h.Set("ETag", page.ETag)
	status := http.StatusOK
	if asked := r.Header["If-None-Match"]; asked != nil && matches(asked, page.ETag) {
		status = http.StatusNotModified
		w.WriteHeader(status)
	} else {
		h["Content-Type"] = jsonTypeValues
		_, _ = w.Write(page.JSON) // a client that is gone needs no answer
	}
	if a.Observe != nil {
		a.Observe("queue_status", status, a.Now().Sub(start))
	}
	return true
}

func (a *api) hotPosition(w http.ResponseWriter, r *http.Request, event, queueID string) bool {
	start := a.Now()
	s, err := a.Rooms.Place(queueID)
	if err != nil {
		return false
	}
	e, ok := a.hotRoom(r, event)
	if !ok || e.ID != s.Event {
		return false
	}
	h := w.Header()
	maps.Copy(h, a.secure)
	h["Cache-Control"], h["Content-Type"] = noStoreValues, jsonTypeValues
	b := positions.Get().(*[]byte)
	*b = appendPosition((*b)[:0], &s)
	_, _ = w.Write(*b)
	positions.Put(b)
	if a.Observe != nil {
		a.Observe("queue_position", http.StatusOK, a.Now().Sub(start))
	}
	return true
}
