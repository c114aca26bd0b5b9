package ledger

import (
	"context"
	"errors"

	"onsale/internal/id"
)

var errLook = errors.New("not built yet")

func (m *Model) Refund(ctx context.Context, refund id.ID) (Refund, error)     { return Refund{}, errLook }
func (m *Model) RefundsOf(ctx context.Context, order id.ID) ([]Refund, error) { return nil, errLook }
func (m *Model) UnreleasedRefunds(ctx context.Context, max int) ([]Refund, error) {
	return nil, errLook
}
func (m *Model) RefusedRefunds(ctx context.Context, before id.ID, max int) ([]Refund, error) {
	return nil, errLook
}
func (m *Model) OrdersOfEvent(ctx context.Context, event id.ID, find OrderFilter, max int) ([]Order, error) {
	return nil, errLook
}
func (m *Model) TicketsOf(ctx context.Context, customer, before id.ID, max int) ([]Ticket, error) {
	return nil, errLook
}
func (m *Model) CheckIns(ctx context.Context, event id.ID, after CheckInCursor, conflicts bool, max int) ([]CheckedIn, error) {
	return nil, errLook
}
func (m *Model) CheckInsOf(ctx context.Context, ticket id.ID) ([]CheckedIn, error) {
	return nil, errLook
}
func (m *Model) Figures(ctx context.Context, event id.ID) (Figures, error) { return Figures{}, errLook }
func (m *Model) ClaimHistory(ctx context.Context, holds []id.ID) ([]ClaimStep, error) {
	return nil, errLook
}
func (m *Model) NoticesOf(ctx context.Context, order id.ID) ([]Notice, error) { return nil, errLook }
