package sandbox

import (
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"onsale/internal/payment"
)

// The API, version 1. Bodies are JSON; payments, refunds and endings are written as the port's types are tagged. A
// request shows the API key as "Authorization: Bearer KEY". What is not 200 has a problem.
//
//	POST /v1/charges                 chargeRequest → payment
//	GET  /v1/orders/{order}          → ordersAnswer
//	POST /v1/orders/{order}/cancel   → ending
//	POST /v1/payments/{id}/capture   amountRequest → payment
//	POST /v1/payments/{id}/void      → payment
//	POST /v1/payments/{id}/refunds   refundRequest → refund
//	GET  /v1/payments?cursor=&limit= → listAnswer
//	GET  /v1/faults                  → {fault: count}
type (
	chargeRequest struct {
		OrderID       string `json:"order_id"`
		AmountMinor   int64  `json:"amount_minor"`
		Currency      string `json:"currency"`
		Token         string `json:"token"`
		CustomerRef   string `json:"customer_ref,omitempty"`
		AuthorizeOnly bool   `json:"authorize_only,omitempty"`
	}
	amountRequest struct {
		AmountMinor int64 `json:"amount_minor"`
	}
	refundRequest struct {
		RefundID    string `json:"refund_id"`
		AmountMinor int64  `json:"amount_minor"`
	}
	ordersAnswer struct {
		Payments []payment.Payment `json:"payments"`
	}
	listAnswer struct {
		Payments []payment.Payment `json:"payments"`
		Next     string            `json:"next,omitempty"`
	}
	problem struct {
		Code    string `json:"code"`
		Message string `json:"message,omitempty"`
		Op      string `json:"op,omitempty"`      // of a refusal
		Refusal string `json:"refusal,omitempty"` // of a refusal: the final no's own code
	}
)

// Codes of problems.
const (
	problemInvalid      = "invalid"
	problemConflict     = "conflict"
	problemNotFound     = "not_found"
	problemRefused      = "refused"
	problemUnauthorized = "unauthorized"
	problemInternal     = "internal"
)

// Handler serves the API above.
func (s *Service) Handler() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("POST /v1/charges", s.serveCharge)
	m.HandleFunc("GET /v1/orders/{order}", func(w http.ResponseWriter, q *http.Request) {
		payments, err := s.lookup(q.Context(), q.PathValue("order"))
		s.reply(w, ordersAnswer{payments}, err)
	})
	m.HandleFunc("POST /v1/orders/{order}/cancel", func(w http.ResponseWriter, q *http.Request) {
		ending, err := s.cancel(q.Context(), q.PathValue("order"))
		s.reply(w, ending, err)
	})
	m.HandleFunc("POST /v1/payments/{id}/capture", func(w http.ResponseWriter, q *http.Request) {
		var r amountRequest
		if s.readBody(w, q, &r) {
			p, err := s.capture(q.Context(), q.PathValue("id"), r.AmountMinor)
			s.reply(w, p, err)
		}
	})
	m.HandleFunc("POST /v1/payments/{id}/void", func(w http.ResponseWriter, q *http.Request) {
		p, err := s.void(q.Context(), q.PathValue("id"))
		s.reply(w, p, err)
	})
	m.HandleFunc("POST /v1/payments/{id}/refunds", func(w http.ResponseWriter, q *http.Request) {
		var r refundRequest
		if s.readBody(w, q, &r) {
			refund, err := s.refund(q.Context(), q.PathValue("id"), r.RefundID, r.AmountMinor)
			s.reply(w, refund, err)
		}
	})
	m.HandleFunc("GET /v1/payments", s.serveList)
	m.HandleFunc("GET /v1/faults", func(w http.ResponseWriter, q *http.Request) {
		counts, err := s.FaultCounts(q.Context())
		s.reply(w, counts, err)
	})
	return s.authorized(m)
}

func (s *Service) authorized(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		key, ok := strings.CutPrefix(q.Header.Get("Authorization"), "Bearer ")
		if !ok || subtle.ConstantTimeCompare([]byte(key), []byte(s.apiKey)) != 1 {
			writeJSON(w, http.StatusUnauthorized, problem{Code: problemUnauthorized})
			return
		}
		next.ServeHTTP(w, q)
	})
}

func (s *Service) serveCharge(w http.ResponseWriter, q *http.Request) {
	var r chargeRequest
	if !s.readBody(w, q, &r) {
		return
	}
	c, err := s.charge(q.Context(), payment.Attempt(r))
	switch {
	case err == nil && c.lost:
		panic(http.ErrAbortHandler) // drops the connection without an answer
	case err == nil && c.serverError:
		writeJSON(w, http.StatusInternalServerError, problem{Code: problemInternal, Message: "as the fault plan says"})
	default:
		s.reply(w, c.payment, err)
	}
}

func (s *Service) serveList(w http.ResponseWriter, q *http.Request) {
	limit := payment.PageMax
	if text := q.FormValue("limit"); text != "" {
		var err error
		if limit, err = strconv.Atoi(text); err != nil {
			s.reply(w, nil, payment.ErrInvalid)
			return
		}
	}
	page, err := s.list(q.Context(), q.FormValue("cursor"), limit)
	s.reply(w, listAnswer(page), err)
}

// readBody reads a small JSON body without unknown fields; where it cannot it has answered.
func (s *Service) readBody(w http.ResponseWriter, q *http.Request, into any) bool {
	d := json.NewDecoder(http.MaxBytesReader(w, q.Body, requestBytesMax))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("more than one JSON value")
		}
	}
	if err != nil {
		writeJSON(w, http.StatusBadRequest, problem{Code: problemInvalid, Message: err.Error()})
	}
	return err == nil
}

func (s *Service) reply(w http.ResponseWriter, answer any, err error) {
	var refused *payment.Refused
	switch {
	case err == nil:
		writeJSON(w, http.StatusOK, answer)
	case errors.As(err, &refused):
		writeJSON(w, http.StatusUnprocessableEntity, problem{Code: problemRefused, Op: refused.Op, Refusal: refused.Code})
	case errors.Is(err, payment.ErrInvalid):
		writeJSON(w, http.StatusBadRequest, problem{Code: problemInvalid, Message: err.Error()})
	case errors.Is(err, payment.ErrConflict):
		writeJSON(w, http.StatusConflict, problem{Code: problemConflict, Message: err.Error()})
	case errors.Is(err, payment.ErrNotFound):
		writeJSON(w, http.StatusNotFound, problem{Code: problemNotFound})
	default:
		s.log.Error("sandbox request failed", "error", err)
		writeJSON(w, http.StatusInternalServerError, problem{Code: problemInternal})
	}
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the caller has gone: nobody is left to tell
}
