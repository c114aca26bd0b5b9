package httpapi

import (
	"encoding/json"
	"errors"
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
	// First is for doors.
	First *FirstUse `json:"first_use,omitempty" doc:"ticket_used: how the ticket was used"`

	Problems []ProblemItem `json:"problems,omitempty" doc:"all that is wrong with a plan or an event"`
}

const problemType = "application/problem+json"

// problem answers with a fault. What is no fault is internal: its cause goes to the log, under the request's id. Where the
// answer has begun, or the client has gone, there is only the log.
func (a *api) problem(w *recorder, r *request, err error) {
	f := faultOf(r, err)
	entry := fault.Lookup(f.Code)
	gone := r.client.Err() != nil
	if entry.Status >= http.StatusInternalServerError {
		level := slog.LevelError
		if f.Code == fault.Busy || gone {
			level = slog.LevelDebug // under load there are many, and the metrics count them
		}
		a.Logger.Log(r.Context(), level, "request failed", "request", r.id, "route", r.route, "code", string(f.Code), "error", err)
	}
	switch {
	case w.status != 0:
		return
	case gone:
		w.status = statusGone
		return
	}
	language, text := title(entry, r.Header.Values("Accept-Language"))
	p := Problem{Type: "/docs#" + string(entry.Code), Title: text, Status: entry.Status, Code: string(entry.Code), Retry: entry.Retry, RequestID: r.id}
	if entry.Code != fault.Internal { // whose details are nobody's business
		p.Detail, p.Field, p.Seats = f.Detail, f.Field, a.seatNames(r, f.Seats)
		p.Problems = refusedItems(err)
		if used := (*usedError)(nil); errors.As(err, &used) {
			p.First = &used.first
		}
		if f.Order != 0 {
			p.Booking = f.Order.Text(id.Order)
		}
	}
	body, err := json.Marshal(p)
	if err != nil {
		a.Logger.ErrorContext(r.Context(), "a problem cannot be written", "request", r.id, "error", err)
	}
	problemHeader(w.Header(), entry, f)
	w.Header().Set("Content-Language", language)
	send(w, entry.Status, problemType, append(body, '\n'))
}

// problemHeader takes away what was meant for a success and adds what a refusal needs.
func problemHeader(h http.Header, entry fault.Entry, f *fault.Error) {
	for _, name := range []string{"Content-Disposition", "Content-Encoding", "ETag", "Location", "Retry-After", "Vary"} {
		h.Del(name)
	}
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", contentPolicy)
	after := f.RetryAfter
	if entry.Status == http.StatusServiceUnavailable || entry.Status == http.StatusTooManyRequests {
		after = max(after, time.Second)
	}
	if after > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(after.Seconds()))))
	}
	switch {
	case entry.Code == fault.TokenInvalid:
		h.Set("WWW-Authenticate", `Bearer error="invalid_token"`)
	case entry.Status == http.StatusUnauthorized:
		h.Set("WWW-Authenticate", "Bearer")
	}
}

// title is the text of a code in the one of our languages that the reader likes most, English where they like neither.
func title(e fault.Entry, accept []string) (language, text string) {
	best := 0.0
	language, text = "en", e.En
	for part := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		tag, q := weighed(part)
		primary, _, _ := strings.Cut(strings.ToLower(tag), "-")
		if q <= best {
			continue
		}
		switch primary {
		case "zh":
			best, language, text = q, "zh-CN", e.Zh
		case "en":
			best, language, text = q, "en", e.En
		}
	}
	return language, text
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
