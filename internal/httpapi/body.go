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
	"slices"
	"strings"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// read fills v from a JSON body: at most BodyBytesMax, no unknown fields, one value. It gives the fields as they were
// sent, for the idempotency key.
func read(w http.ResponseWriter, r *request, v any) (map[string]json.RawMessage, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, fault.New(fault.Unsupported, "send Content-Type: application/json")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, BodyBytesMax))
	if err != nil {
		return nil, bodyFault(err)
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return nil, jsonFault(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fault.New(fault.BadRequest, "there is something behind the JSON object")
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil || fields == nil {
		return nil, fault.New(fault.BadRequest, "the body must be a JSON object")
	}
	return fields, nil
}

func bodyFault(err error) error {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return fault.New(fault.BodyTooLarge, "at most %d bytes", large.Limit)
	}
	return &fault.Error{Code: fault.BadRequest, Detail: "the body ended early", Cause: err}
}

// jsonFault says which field of a body is wrong, without Go's words.
func jsonFault(err error) error {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return &fault.Error{Code: fault.Invalid, Field: kind.Field, Detail: "a JSON " + kind.Value + " does not fit here"}
	}
	if field, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return &fault.Error{Code: fault.Invalid, Field: strings.Trim(field, `"`), Detail: "there is no such field"}
	}
	return &fault.Error{Code: fault.BadRequest, Detail: "the body is not valid JSON", Cause: err}
}

// key makes the ledger's idempotency key of a request: hashes of its fields, never values (A12).
func (a *api) key(r *request, fields map[string]json.RawMessage) ledger.Key {
	if r.key == "" {
		return ledger.Key{}
	}
	k := ledger.Key{Value: r.key}
	for name, value := range fields {
		var compact bytes.Buffer
		if json.Compact(&compact, value) != nil {
			compact.Reset()
			compact.Write(value)
		}
		m := hmac.New(sha256.New, a.FieldKey)
		m.Write([]byte(name))
		m.Write([]byte{0})
		m.Write(compact.Bytes())
		k.Fields = append(k.Fields, ledger.KeyField{Name: name, Hash: hex.EncodeToString(m.Sum(nil)[:16])})
	}
	slices.SortFunc(k.Fields, func(x, y ledger.KeyField) int { return strings.Compare(x.Name, y.Name) })
	return k
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

// write answers with JSON that belongs to one customer.
func write(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if w.Header().Get("Cache-Control") == "" {
		w.Header().Set("Cache-Control", "private, no-store")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // a client that has gone away is no error of ours
	return nil
}

// shared answers with bytes that are the same for everybody. packed says that they are gzipped already.
func shared(w http.ResponseWriter, r *request, kind, etag, cache string, body []byte, packed bool) error {
	h := w.Header()
	h.Set("Cache-Control", cache)
	h.Set("ETag", etag)
	if packed {
		h.Add("Vary", "Accept-Encoding")
	}
	if matches(r.Header.Get("If-None-Match"), etag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	if packed {
		if accepts(r.Header.Get("Accept-Encoding"), "gzip") {
			h.Set("Content-Encoding", "gzip")
		} else {
			z, err := gzip.NewReader(bytes.NewReader(body))
			if err != nil {
				return err
			}
			if body, err = io.ReadAll(z); err != nil {
				return err
			}
		}
	}
	h.Set("Content-Type", kind)
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(body)
	return nil
}

func matches(header, etag string) bool {
	for part := range strings.SplitSeq(header, ",") {
		part = strings.TrimSpace(part)
		if part == "*" || strings.TrimPrefix(part, "W/") == etag {
			return true
		}
	}
	return false
}

// accepts says whether a list of a header names a value without refusing it.
func accepts(header, value string) bool {
	for part := range strings.SplitSeq(header, ",") {
		name, parameters, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.EqualFold(strings.TrimSpace(name), value) {
			q := strings.ReplaceAll(parameters, " ", "")
			return q != "q=0" && !strings.HasPrefix(q, "q=0.000")
		}
	}
	return false
}
