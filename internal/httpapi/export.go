package httpapi

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// exportTimeMax is how long an export may take. It holds one page of orders in memory, whatever the event's size.
const exportTimeMax = 4 * time.Minute

// exportColumns are those of the CSV.
var exportColumns = []string{
	"booking_id", "booking_state", "reason", "created_at", "updated_at", "customer_id", "customer_name", "customer_email", "amount_minor", "refunded_minor", "currency",
	"ticket_id", "ticket_state", "seat_id", "area_id", "category", "price_minor", "attendee_name", "document_type", "document_last4",
}

// An exporter writes one order after the other.
type exporter interface {
	begin() error
	order(o *ledger.Order, b *OrganizerBooking) error
	end() error
}

func (a *api) bookingsExport(w http.ResponseWriter, r *request) error {
	asked, err := parameters(r)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, 64<<10)
	var e exporter
	kind, name := "text/csv; charset=utf-8", "csv"
	switch asked.Get("format") {
	case "", "csv":
		e = &csvExporter{to: csv.NewWriter(out), raw: out}
	case "json":
		kind, name, e = "application/json", "json", &jsonExporter{to: out}
	default:
		return &fault.Error{Code: fault.Invalid, Field: "format", Detail: "csv or json"}
	}
	// The first page is read before anything is said, so that a ledger that is away is a problem and not half a file.
	filter := ledger.OrderFilter{}
	orders, err := a.Ledger.OrdersOfEvent(r.Context(), r.event.ID, filter, ordersRead)
	if err != nil {
		return err
	}
	a.record(r, "bookings.export", r.event.ID.Text(id.Event), map[string]string{"format": name})
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Disposition", `attachment; filename="bookings-`+r.event.ID.Text(id.Event)+`.`+name+`"`)
	h.Set("Cache-Control", "private, no-store")
	if err := e.begin(); err != nil {
		return err
	}
	for len(orders) > 0 {
		for i := range orders {
			shown, err := a.showOrganizerBooking(r, &orders[i])
			if err != nil {
				return err
			}
			if err := e.order(&orders[i], &shown); err != nil {
				return err
			}
		}
		filter.After = orders[len(orders)-1].ID
		if len(orders) < ordersRead {
			break
		}
		if orders, err = a.Ledger.OrdersOfEvent(r.Context(), r.event.ID, filter, ordersRead); err != nil {
			return err
		}
	}
	if err := e.end(); err != nil {
		return err
	}
	return out.Flush()
}

// csvExporter writes a line for each ticket, and one for an order that has none.
type csvExporter struct {
	to  *csv.Writer
	raw io.Writer
}

// byteOrderMark lets spreadsheets know that the file is UTF-8.
const byteOrderMark = "\ufeff"

func (e *csvExporter) begin() error {
	if _, err := io.WriteString(e.raw, byteOrderMark); err != nil {
		return err
	}
	return e.to.Write(exportColumns)
}

func (e *csvExporter) order(o *ledger.Order, b *OrganizerBooking) error {
	head := []string{
		b.ID, b.State, b.Reason, b.Created.Format(time.RFC3339), b.Updated.Format(time.RFC3339), b.Buyer.ID, b.Buyer.Name, b.Buyer.Email,
		strconv.FormatInt(b.Price.AmountMinor, 10), strconv.FormatInt(b.Refunded, 10), b.Price.Currency,
	}
	if len(b.Tickets) == 0 {
		return e.line(append(head, make([]string, len(exportColumns)-len(head))...))
	}
	for i, t := range b.Tickets {
		var who Named
		if o.Tickets[i].State != ledger.TicketVoid { // who was named on one that is void is perhaps named on another
			for _, n := range b.Attendees {
				if n.Place == o.Tickets[i].Place {
					who = n
				}
			}
		}
		row := append(append([]string(nil), head...), t.ID, t.State, t.Seat, t.Area, t.Category, strconv.FormatInt(t.Price.AmountMinor, 10),
			who.Name, who.DocumentType, who.DocumentLast4)
		if err := e.line(row); err != nil {
			return err
		}
	}
	return nil
}

func (e *csvExporter) line(row []string) error {
	for i := range row {
		row[i] = safeCell(row[i])
	}
	return e.to.Write(row)
}

func (e *csvExporter) end() error {
	e.to.Flush()
	return e.to.Error()
}

// formulaStarts are what spreadsheets take for the beginning of a formula, in full width too, and what they drop before
// one. An apostrophe is among them so that a cell can be read back.
const formulaStarts = "=+-@\t\r\n'＝＋－＠"

// safeCell is a text that no spreadsheet runs (E7): one that looks like a formula begins with an apostrophe.
func safeCell(text string) string {
	if first, _ := utf8.DecodeRuneInString(text); text != "" && strings.ContainsRune(formulaStarts, first) {
		return "'" + text
	}
	return text
}

// jsonExporter writes one object with a list of bookings.
type jsonExporter struct {
	to    *bufio.Writer
	count int
}

func (e *jsonExporter) begin() error {
	_, err := e.to.WriteString(`{"bookings":[`)
	return err
}

func (e *jsonExporter) order(_ *ledger.Order, b *OrganizerBooking) error {
	text, err := json.Marshal(b)
	if err != nil {
		return err
	}
	if e.count++; e.count > 1 {
		if err := e.to.WriteByte(','); err != nil {
			return err
		}
	}
	_, err = e.to.Write(append([]byte("\n"), text...))
	return err
}

func (e *jsonExporter) end() error {
	_, err := e.to.WriteString("\n]}\n")
	return err
}
