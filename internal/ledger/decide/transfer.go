package decide

import (
	"slices"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

func (w *Work) transfer(c ledger.Transfer) (ledger.Result, error) {
	key := IdemKey{c.Customer, ledger.OpTransfer, c.Key.Value}
	subject, err := w.repeat(key, c.Key.Fields)
	if err != nil {
		return ledger.Result{}, err
	}
	if subject != 0 {
		t, _, err := w.ticket(subject)
		if err != nil {
			return ledger.Result{}, err
		}
		if t == nil {
			return ledger.Result{}, fault.New(fault.TicketUnknown, "")
		}
		return ledger.Result{Repeat: true, Ticket: t.view()}, nil
	}
	t, o, err := w.ticket(c.Ticket)
	switch {
	case err != nil:
		return ledger.Result{}, err
	case t == nil:
		return ledger.Result{}, fault.New(fault.TicketUnknown, "")
	case t.Customer != c.Customer && on(GuardCustomer):
		return ledger.Result{}, fault.New(fault.WrongCustomer, "")
	}
	e, err := w.event(t.Event)
	if err != nil {
		return ledger.Result{}, err
	}
	if err := w.transferable(e, t, c); err != nil {
		return ledger.Result{}, err
	}
	next := t.Ticket
	next.ID, next.Customer, next.Was, next.Exchange = c.ID, c.To, t.ID, 0
	made := &Ticket{Row: Row{New: true}, Ticket: next}
	if err := w.transferCount(e, o, t, made, c.Document); err != nil {
		return ledger.Result{}, err
	}
	w.ticketSet(t)
	t.State, t.Gone = ledger.TicketVoid, true
	all := append(slices.Clip(w.tickets[o.ID]), w.ticketSet(made))
	ticketsSort(all)
	w.tickets[o.ID] = all
	w.keyAdd(key, made.ID, c.Key.Fields)
	w.notice(o, ledger.NoticeTransferred, false, 0,
		fact{"ticket_id", made.ID, id.Ticket}, fact{"was", t.ID, id.Ticket}, fact{"to", c.To, id.Customer})
	return ledger.Result{Ticket: made.view()}, nil
}

// view is a copy of the ticket as it is now, for an answer.
func (t *Ticket) view() *ledger.Ticket {
	v := t.Ticket
	return &v
}

// transferable refuses to pass on what may not be.
func (w *Work) transferable(e *eventRow, t *Ticket, c ledger.Transfer) error {
	switch {
	case c.To <= 0 || c.To == c.Customer:
		return invalid("to", "name somebody else")
	case e.Documents && c.Document == "":
		return invalid("document", "each place needs one")
	case e.Transfers.Until <= w.Now:
		return fault.New(fault.NotTransferable, "the event does not allow it now")
	case e.Paying() != nil:
		return fault.New(fault.NotTransferable, "the event is %s", e.State)
	case t.State != ledger.TicketValid && on(GuardTransferValid):
		return fault.New(fault.Conflict, "the ticket is %s", t.State)
	}
	return w.unmarked([]*Ticket{t}, 0)
}

// transferCount counts a place for whoever receives it and no more for whoever gives it away; the buyer has bought it all
// the same. Its document is that of the new attendee.
func (w *Work) transferCount(e *eventRow, o *Order, from, to *Ticket, document string) error {
	var m lacking
	receives := to.Customer != o.Customer
	if receives {
		if err := m.note(w.allowLimits(e, PlaceOf(to))); err != nil {
			return err
		}
	}
	was := ""
	if int(from.Place) < len(o.Documents) {
		was = o.Documents[from.Place]
	}
	if document != was && document != "" {
		if err := m.note(w.allowDocuments(e.Event, []string{document}, nil)); err != nil {
			return err
		}
	}
	if m.err != nil {
		return m.err
	}
	if receives {
		if err := m.note(w.countLimits(e, PlaceOf(to), 1)); err != nil {
			return err
		}
	}
	if from.Customer != o.Customer {
		if err := m.note(w.countLimits(e, PlaceOf(from), -1)); err != nil {
			return err
		}
	}
	if document == was {
		return m.err
	}
	if err := m.note(w.countDocuments(e.Event, []string{was}, -1)); err != nil {
		return err
	}
	if err := m.note(w.countDocuments(e.Event, []string{document}, 1)); err != nil {
		return err
	}
	documents := slices.Clone(o.Documents)
	for len(documents) <= int(from.Place) {
		documents = append(documents, "")
	}
	documents[from.Place] = document
	w.orderRemake(o).Documents = documents
	return m.err
}
