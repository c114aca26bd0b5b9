package httpapi

import (
	"encoding/json"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
)

// A Problem is an answer to a request that was refused or failed (RFC 9457). Clients switch on Code.
type Problem struct {
	Type   string `json:"type" doc:"a link to what the code means"`
	Title  string `json:"title" doc:"what the code means, for people"`
	Status int    `json:"status"`
	Code   string `json:"code" doc:"stable; see the catalogue in docs"`
	Detail string `json:"detail,omitempty" doc:"what to mend, in this case"`
	Field  string `json:"field,omitempty" doc:"the part of the request that is wrong"`
	Retry  bool   `json:"retry" doc:"whether the same request may succeed later, unchanged"`
	// RequestID is what a person should tell who asks for help.
	RequestID string   `json:"request_id"`
	Seats     []string `json:"seat_ids,omitempty" doc:"the seats that are taken, unknown, or would be left alone"`
	Booking   string   `json:"booking_id,omitempty" doc:"the booking in whose way the request was"`
}

const problemType = "application/problem+json"

// problem answers with a fault. What is no fault is internal: its cause goes to the log, under the request's id.
func (a *api) problem(w *recorder, r *request, err error) {
	f := fault.Of(err)
	entry := fault.Lookup(f.Code)
	if entry.Status >= http.StatusInternalServerError {
		level := slog.LevelError
		if f.Code == fault.Busy {
			level = slog.LevelDebug // under load there are many, and the metrics count them
		}
		a.Logger.Log(r.Context(), level, "request failed", "request", r.id, "path", r.URL.Path, "code", string(f.Code), "error", err)
	}
	if w.status != 0 {
		return // the answer has begun: it can only be cut off
	}
	p := Problem{
		Type: "/docs#" + string(f.Code), Title: title(entry, r.Header.Get("Accept-Language")), Status: entry.Status, Code: string(f.Code),
		Detail: f.Detail, Field: f.Field, Retry: entry.Retry, RequestID: r.id,
		Seats: a.seatNames(r, f.Seats),
	}
	if f.Order != 0 {
		p.Booking = f.Order.Text(id.Order)
	}
	after := f.RetryAfter
	if entry.Status == http.StatusServiceUnavailable || entry.Status == http.StatusTooManyRequests {
		after = max(after, time.Second)
	}
	if after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(after.Seconds()))))
	}
	if entry.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	w.Header().Set("Content-Type", problemType)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(entry.Status)
	_ = json.NewEncoder(w).Encode(p) // a client that has gone away is no error of ours
}

// title is the text of a code in the reader's language.
func title(e fault.Entry, accept string) string {
	if strings.HasPrefix(strings.ToLower(strings.TrimSpace(accept)), "zh") {
		return e.Zh
	}
	return e.En
}

// seatNames turns seat indexes into labels, where the request's event has told us the plan.
func (a *api) seatNames(r *request, seats []int32) []string {
	if len(seats) == 0 {
		return nil
	}
	plan, ok := r.Context().Value(planOfRequest{}).(planNames)
	if !ok {
		return nil
	}
	names := make([]string, 0, len(seats))
	for _, s := range seats {
		if name := plan.seat(s); name != "" {
			names = append(names, name)
		}
	}
	return names
}
