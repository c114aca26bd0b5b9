package httpapi

import (
	"bytes"
	"compress/gzip"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// read fills v, a pointer to a struct, from a JSON body: at most the route's BodyMax, one object, each field once and written as
// the API writes it. It gives the fields as they were understood, for the idempotency key: a repeat that says the same in
// other words (white space, order, escapes) is the same request.
func read(w http.ResponseWriter, r *request, v any) (map[string]json.RawMessage, error) {
	kind, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if charset := parameters["charset"]; err != nil || kind != "application/json" || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return nil, fault.New(fault.Unsupported, "send Content-Type: application/json")
	}
	body, err := io.ReadAll(http.MaxBytesReader(bare(w), r.Body, r.bodyMax))
	if err != nil {
		return nil, bodyFault(err)
	}
	if !utf8.Valid(body) {
		return nil, fault.New(fault.BadRequest, "the body is not UTF-8")
	}
	if err := checkObject(body, reflect.TypeOf(v).Elem()); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(body, v); err != nil {
		return nil, jsonFault(err)
	}
	understood, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	return fields, json.Unmarshal(understood, &fields)
}

func bodyFault(err error) error {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return fault.New(fault.BodyTooLarge, "at most %d bytes", large.Limit)
	}
	return &fault.Error{Code: fault.BadRequest, Detail: "the body ended early", Cause: err}
}

// checkObject refuses what encoding/json would let pass: a field twice, where it takes the last one, and a field in other
// letters (HOLD_ID), besides unknown fields and whatever stands behind the object.
func checkObject(body []byte, t reflect.Type) error {
	d := json.NewDecoder(bytes.NewReader(body))
	first, err := d.Token()
	if err != nil {
		return jsonFault(err)
	}
	if first != json.Delim('{') {
		return fault.New(fault.BadRequest, "the body must be a JSON object")
	}
	if err := checkFields(d, t, ""); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fault.New(fault.BadRequest, "there is something behind the JSON object")
	}
	return nil
}

// checkFields checks the rest of an object whose brace has been read.
func checkFields(d *json.Decoder, t reflect.Type, path string) error {
	seen := map[string]bool{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return jsonFault(err)
		}
		name, _ := token.(string)
		full := path + name
		kind, known := fieldKind(t, name)
		switch {
		case !known:
			return &fault.Error{Code: fault.Invalid, Field: clipped(full), Detail: "there is no such field"}
		case seen[name]:
			return &fault.Error{Code: fault.Invalid, Field: full, Detail: "the field is there twice"}
		}
		seen[name] = true
		if err := checkValue(d, kind, full); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return jsonFault(err)
}

// checkValue checks one value of a type: objects only where the type is a struct, so that nothing nests deeper than it.
func checkValue(d *json.Decoder, t reflect.Type, path string) error {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	token, err := d.Token()
	switch {
	case err != nil:
		return jsonFault(err)
	case token == json.Delim('{') && t.Kind() == reflect.Struct:
		return checkFields(d, t, path+".")
	case token == json.Delim('{'):
		return &fault.Error{Code: fault.Invalid, Field: path, Detail: "a JSON object does not fit here"}
	case token == json.Delim('[') && t.Kind() != reflect.Slice:
		return &fault.Error{Code: fault.Invalid, Field: path, Detail: "a JSON array does not fit here"}
	case token == json.Delim('['):
		for d.More() {
			if err := checkValue(d, t.Elem(), path); err != nil {
				return err
			}
		}
		_, err = d.Token()
	}
	return jsonFault(err)
}

// fieldKind is the type of a struct's field by its name in JSON.
func fieldKind(t reflect.Type, name string) (reflect.Type, bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		if own, _, _ := strings.Cut(f.Tag.Get("json"), ","); own == name {
			return f.Type, true
		}
	}
	return nil, false
}

// jsonFault says which field of a body is wrong, without Go's words; nil stays nil.
func jsonFault(err error) error {
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &kind):
		what, _, _ := strings.Cut(kind.Value, " ") // "number 1e99": the digits are the client's
		return &fault.Error{Code: fault.Invalid, Field: kind.Field, Detail: "this JSON " + what + " does not fit here"}
	}
	return &fault.Error{Code: fault.BadRequest, Detail: "the body is not valid JSON", Cause: err}
}

// clipped shortens what a client sent, for an answer to the same client, and takes out what cannot be seen.
func clipped(text string) string {
	const most = 40
	var b strings.Builder
	count := 0
	for _, c := range text {
		if count++; count > most {
			return b.String() + "…"
		}
		if !unicode.IsPrint(c) {
			c = unicode.ReplacementChar
		}
		b.WriteRune(c)
	}
	return b.String()
}

// key makes the ledger's idempotency key of a request: hashes of its fields, never values (A12).
func (a *api) key(r *request, fields map[string]json.RawMessage) ledger.Key {
	if r.key == "" {
		return ledger.Key{}
	}
	k := ledger.Key{Value: r.key}
	for name, value := range fields {
		m := hmac.New(sha256.New, a.FieldKey)
		m.Write([]byte(name))
		m.Write([]byte{0})
		m.Write(value)
		k.Fields = append(k.Fields, ledger.KeyField{Name: name, Hash: hex.EncodeToString(m.Sum(nil)[:16])})
	}
	slices.SortFunc(k.Fields, func(x, y ledger.KeyField) int { return strings.Compare(x.Name, y.Name) })
	return k
}

// parameters are those of the query; what is not one is refused rather than overlooked.
func parameters(r *request) (url.Values, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, &fault.Error{Code: fault.BadRequest, Detail: "the query cannot be read", Cause: err}
	}
	return values, nil
}

// pathID reads an id of the path; what is no id does not exist.
func pathID(r *request, name, prefix string, unknown fault.Code) (id.ID, error) {
	v, err := id.Parse(prefix, r.PathValue(name))
	if err != nil {
		return 0, &fault.Error{Code: unknown, Field: name, Cause: err}
	}
	return v, nil
}

// bodyID reads an id of a body.
func bodyID(field, prefix, text string) (id.ID, error) {
	v, err := id.Parse(prefix, text)
	if err != nil {
		return 0, &fault.Error{Code: fault.Invalid, Field: field, Detail: "not an id of the form " + prefix + "_… that this API gave out", Cause: err}
	}
	return v, nil
}

// write answers with JSON that belongs to one customer, unless Cache-Control says otherwise.
func write(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if w.Header().Get("Cache-Control") == "" {
		w.Header().Set("Cache-Control", "private, no-store")
	}
	send(w, status, "application/json", append(body, '\n'))
	return nil
}

// send answers with a body. A client that has gone away is no error of ours.
func send(w http.ResponseWriter, status int, kind string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// sharedBody is an answer that is the same for everybody.
type sharedBody struct {
	kind, etag, cache string
	body              []byte
	packed            bool // body is gzipped already
}

// shared answers with bytes that are the same for everybody, or says that the client has them.
func shared(w http.ResponseWriter, r *request, s sharedBody) error {
	body := s.body
	packed := s.packed && quality(r.Header.Get("Accept-Encoding"), "gzip").q > 0
	if s.packed && !packed {
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return err
		}
		if body, err = io.ReadAll(z); err != nil {
			return err
		}
	}
	h := w.Header()
	h.Set("Cache-Control", s.cache)
	h.Set("ETag", s.etag)
	if s.packed {
		h.Add("Vary", "Accept-Encoding")
	}
	if matches(r.Header.Values("If-None-Match"), s.etag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	if packed {
		h.Set("Content-Encoding", "gzip")
	}
	send(w, http.StatusOK, s.kind, body)
	return nil
}

// matches compares weakly, as RFC 9110 wants it for If-None-Match.
func matches(headers []string, etag string) bool {
	etag = strings.TrimPrefix(etag, "W/")
	for _, header := range headers {
		for part := range strings.SplitSeq(header, ",") {
			part = strings.TrimSpace(part)
			if part == "*" || strings.TrimPrefix(part, "W/") == etag {
				return true
			}
		}
	}
	return false
}

// wish is how much a client wants something.
type wish struct {
	q     float64 // 0: not at all
	named bool    // by its name, not by a wildcard
}

// quality is how much a list of a header (Accept, Accept-Encoding) wants a value.
func quality(header, value string) wish {
	found := wish{}
	group, _, media := strings.Cut(value, "/")
	for part := range strings.SplitSeq(header, ",") {
		name, q := weighed(part)
		switch {
		case strings.EqualFold(name, value):
			return wish{q, true}
		case name == "*" || media && (name == "*/*" || strings.EqualFold(name, group+"/*")):
			found.q = max(found.q, q)
		}
	}
	return found
}

// weighed is one part of a list with its weight: 1 where it has none, 0 where that cannot be read.
func weighed(part string) (name string, q float64) {
	name, parameters, _ := strings.Cut(part, ";")
	q = 1
	for parameter := range strings.SplitSeq(parameters, ";") {
		if key, value, ok := strings.Cut(strings.TrimSpace(parameter), "="); ok && strings.EqualFold(key, "q") {
			var err error
			if q, err = strconv.ParseFloat(value, 64); err != nil || !(q >= 0 && q <= 1) {
				q = 0
			}
		}
	}
	return strings.TrimSpace(name), q
}
