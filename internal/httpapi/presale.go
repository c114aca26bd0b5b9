package httpapi

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"onsale/internal/catalog"
	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/identity"
	"onsale/internal/presale"
)

// CodesUpload are presale codes for a lane.
type CodesUpload struct {
	Lane  string       `json:"lane"`
	Codes []CodeUpload `json:"codes" doc:"at most 100,000"`
}

// A CodeUpload is one of them.
type CodeUpload struct {
	Code  string `json:"code" doc:"case, blanks and hyphens do not matter"`
	Uses  int    `json:"uses_max,omitempty" doc:"customers who may use it; 1 where it is missing"`
	Label string `json:"label,omitempty" doc:"by which you know it again: the code itself is not kept. Its place in the list where it is missing"`
}

// MembersUpload are addresses for a lane.
type MembersUpload struct {
	Lane    string   `json:"lane"`
	Members []string `json:"members" doc:"mail addresses, at most 100,000; only keyed hashes of them are kept"`
}

// Uploaded says how many are new.
type Uploaded struct {
	Added int `json:"added_count" doc:"those that were there already are not counted"`
}

// PresaleCodeList is a page of a lane's codes and how often they were used.
type PresaleCodeList struct {
	Codes []PresaleCode `json:"codes"`
	Next  string        `json:"next_cursor,omitempty"`
}

// A PresaleCode is one of them.
type PresaleCode struct {
	Label   string    `json:"label"`
	Uses    int       `json:"uses_max"`
	Used    int       `json:"used_count"`
	Created time.Time `json:"created_at"`
}

// Limits of uploads.
const (
	uploadBytesMax = 16 << 20
	uploadTakesMax = 2 * time.Minute
	codesPage      = 200
	csvType        = "text/csv"
)

func (a *api) presaleRoutes() []route {
	const tag = "Organizers"
	look, do := atLeast(identity.Viewer, "event_id"), atLeast(identity.Operator, "event_id")
	bad := []fault.Code{fault.Invalid, fault.Conflict}
	lane := []parameter{{"lane", "its key", "string"}, pageQuery}
	return []route{
		{Method: "POST", Path: roomPath + "/codes", ID: "codes_upload", Who: do, Tag: tag, Summary: "Presale codes for a lane",
			Notes: "All or none; one that is there gets the new uses and label. As JSON, or as text/csv with columns code, uses_max, label and the lane in the query.",
			Query: lane[:1], Body: CodesUpload{}, BodyMax: uploadBytesMax, AlsoBody: csvType, Answer: Uploaded{}, Faults: bad, Takes: uploadTakesMax, handle: a.codesUpload},
		{Method: "GET", Path: roomPath + "/codes", ID: "codes_list", Who: look, Tag: tag, Summary: "Presale codes of a lane, and how often each was used",
			Query: lane, Answer: PresaleCodeList{}, Faults: bad, handle: a.codesList},
		{Method: "POST", Path: roomPath + "/members", ID: "members_upload", Who: do, Tag: tag, Summary: "Members for a lane",
			Notes: "All or none; they are added to those that are there. As JSON, or as text/csv with the addresses in the first column and the lane in the query.",
			Query: lane[:1], Body: MembersUpload{}, BodyMax: uploadBytesMax, AlsoBody: csvType, Answer: Uploaded{}, Faults: bad, Takes: uploadTakesMax, handle: a.membersUpload},
	}
}

// laneWith is a lane of the path's event that is for those whom an upload is about.
func (a *api) laneWith(r *request, key string, access catalog.LaneAccess) error {
	if a.Presale == nil || !r.event.Room.Active() {
		return errNoRoom
	}
	room := r.event.Room.Filled()
	lane, ok := room.Lane(key)
	switch {
	case !ok:
		return &fault.Error{Code: fault.Invalid, Field: "lane", Detail: "the event has no lane " + quoted(key)}
	case lane.Access != access:
		return &fault.Error{Code: fault.Invalid, Field: "lane", Detail: fmt.Sprintf("this lane is not for %s: set its access", access)}
	}
	return nil
}

// csvRows are the rows of a body that is CSV, nil where it is something else, with the lane of the query. A first row with this
// name in its first column is a head.
func csvRows(w http.ResponseWriter, r *request, head string) (rows [][]string, lane string, is bool, err error) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind != csvType {
		return nil, "", false, nil
	}
	asked, err := parameters(r)
	if err != nil {
		return nil, "", true, err
	}
	body, err := io.ReadAll(http.MaxBytesReader(bare(w), r.Body, uploadBytesMax))
	if err != nil {
		return nil, "", true, bodyFault(err)
	}
	rows, err = readCSV(body, head)
	return rows, asked.Get("lane"), true, err
}

// readCSV reads rows of one to three columns, with commas or semicolons between them.
func readCSV(body []byte, head string) ([][]string, error) {
	body = bytes.TrimPrefix(body, []byte("\ufeff"))
	reader := csv.NewReader(bytes.NewReader(body))
	reader.FieldsPerRecord, reader.TrimLeadingSpace, reader.ReuseRecord = -1, true, false
	if line, _, _ := bytes.Cut(body, []byte("\n")); bytes.Count(line, []byte(";")) > bytes.Count(line, []byte(",")) {
		reader.Comma = ';'
	}
	var rows [][]string
	for {
		row, err := reader.Read()
		var parse *csv.ParseError
		switch {
		case errors.Is(err, io.EOF):
			return rows, nil
		case errors.As(err, &parse):
			return nil, fault.New(fault.Invalid, "line %d is not CSV", parse.Line)
		case err != nil:
			return nil, err
		case len(row) > 3:
			line, _ := reader.FieldPos(3)
			return nil, fault.New(fault.Invalid, "line %d has %d columns; at most 3", line, len(row))
		case len(rows) == presale.CodesPerUploadMax+1:
			return nil, fault.New(fault.Invalid, "at most %d rows", presale.CodesPerUploadMax)
		}
		if len(rows) == 0 && strings.EqualFold(strings.TrimSpace(row[0]), head) {
			head = "\x00" // only once
			continue
		}
		rows = append(rows, row)
	}
}

func (a *api) codesUpload(w http.ResponseWriter, r *request) error {
	rows, lane, isCSV, err := csvRows(w, r, "code")
	if err != nil {
		return err
	}
	var uploads []presale.Upload
	if isCSV {
		for i, row := range rows {
			u := presale.Upload{Code: row[0]}
			if len(row) > 1 && strings.TrimSpace(row[1]) != "" {
				if u.Uses, err = strconv.Atoi(strings.TrimSpace(row[1])); err != nil {
					return &fault.Error{Code: fault.Invalid, Field: "codes", Detail: fmt.Sprintf("number %d: uses_max must be a whole number", i+1)}
				}
			}
			if len(row) > 2 {
				u.Label = strings.TrimSpace(row[2])
			}
			uploads = append(uploads, u)
		}
	} else {
		var body CodesUpload
		if _, err := read(w, r, &body); err != nil {
			return err
		}
		lane = body.Lane
		for _, c := range body.Codes {
			uploads = append(uploads, presale.Upload(c))
		}
	}
	if err := a.laneWith(r, lane, catalog.LaneCodes); err != nil {
		return err
	}
	return a.uploaded(w, r, "room.codes", lane, len(uploads), func() (int, error) {
		return a.Presale.AddCodes(r.Context(), r.event.ID, lane, uploads)
	})
}

// uploaded notes an upload in the event's log, does it, and says how many are new.
func (a *api) uploaded(w http.ResponseWriter, r *request, action, lane string, count int, add func() (int, error)) error {
	note := catalog.NewChange("lanes."+lane, nil, map[string]int{"sent_count": count})
	if err := a.Catalog.Note(r.acting(action), r.event.ID, note); err != nil {
		return err
	}
	added, err := add()
	if err != nil {
		return err
	}
	a.record(r, action, r.event.ID.Text(id.Event), map[string]string{"lane": lane, "added_count": strconv.Itoa(added)})
	return write(w, http.StatusOK, Uploaded{added})
}

func (a *api) membersUpload(w http.ResponseWriter, r *request) error {
	rows, lane, isCSV, err := csvRows(w, r, "email")
	if err != nil {
		return err
	}
	var addresses []string
	if isCSV {
		for _, row := range rows {
			addresses = append(addresses, row[0])
		}
	} else {
		var body MembersUpload
		if _, err := read(w, r, &body); err != nil {
			return err
		}
		lane, addresses = body.Lane, body.Members
	}
	if err := a.laneWith(r, lane, catalog.LaneMembers); err != nil {
		return err
	}
	return a.uploaded(w, r, "room.members", lane, len(addresses), func() (int, error) {
		return a.Presale.AddMembers(r.Context(), r.event.ID, lane, addresses)
	})
}

// codeUses counts the uses of codes; the ledger does.
type codeUses interface {
	CodeUses(ctx context.Context, event id.ID, lane, code string) (int, error)
}

func (a *api) codesList(w http.ResponseWriter, r *request) error {
	asked, err := parameters(r)
	if err != nil {
		return err
	}
	lane := asked.Get("lane")
	if err := a.laneWith(r, lane, catalog.LaneCodes); err != nil {
		return err
	}
	var after *presale.Hash
	if text := asked.Get("cursor"); text != "" {
		var h presale.Hash
		if n, err := hex.Decode(h[:], []byte(text)[:min(len(text), 2*len(h))]); err != nil || n != len(h) || len(text) != 2*n {
			return &fault.Error{Code: fault.Invalid, Field: "cursor", Detail: "not a cursor that this API gave out", Cause: err}
		}
		after = &h
	}
	codes, err := a.Presale.Codes(r.Context(), r.event.ID, lane, after, codesPage+1)
	if err != nil {
		return err
	}
	list := PresaleCodeList{Codes: []PresaleCode{}}
	for _, c := range codes[:min(len(codes), codesPage)] {
		shown := PresaleCode{Label: c.Label, Uses: c.Uses, Created: c.Created}
		if counter, ok := a.Ledger.(codeUses); ok {
			if shown.Used, err = counter.CodeUses(r.Context(), r.event.ID, lane, c.Hash.Text()); err != nil {
				return err
			}
		}
		list.Codes = append(list.Codes, shown)
	}
	if len(codes) > codesPage {
		list.Next = codes[codesPage-1].Hash.Text()
	}
	return write(w, http.StatusOK, list)
}
