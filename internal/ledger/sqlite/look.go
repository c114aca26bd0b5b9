package sqlite

import (
	"context"
	"errors"

	"onsale/internal/id"
	"onsale/internal/ledger"
)

var errLook = errors.New("not built yet")

func (l *Ledger) Refund(ctx context.Context, refund id.ID) (ledger.Refund, error) {
	return ledger.Refund{}, errLook
}
func (l *Ledger) RefundsOf(ctx context.Context, order id.ID) ([]ledger.Refund, error) {
	return nil, errLook
}
func (l *Ledger) UnreleasedRefunds(ctx context.Context, max int) ([]ledger.Refund, error) {
	return nil, errLook
}
func (l *Ledger) RefusedRefunds(ctx context.Context, before id.ID, max int) ([]ledger.Refund, error) {
	return nil, errLook
}
func (l *Ledger) OrdersOfEvent(ctx context.Context, event id.ID, find ledger.OrderFilter, max int) ([]ledger.Order, error) {
	return nil, errLook
}
func (l *Ledger) TicketsOf(ctx context.Context, customer, before id.ID, max int) ([]ledger.Ticket, error) {
	return nil, errLook
}
func (l *Ledger) CheckIns(ctx context.Context, event id.ID, after ledger.CheckInCursor, conflicts bool, max int) ([]ledger.CheckedIn, error) {
	return nil, errLook
}
func (l *Ledger) CheckInsOf(ctx context.Context, ticket id.ID) ([]ledger.CheckedIn, error) {
	return nil, errLook
}
func (l *Ledger) Figures(ctx context.Context, event id.ID) (ledger.Figures, error) {
	return ledger.Figures{}, errLook
}
func (l *Ledger) ClaimHistory(ctx context.Context, holds []id.ID) ([]ledger.ClaimStep, error) {
	return nil, errLook
}
func (l *Ledger) NoticesOf(ctx context.Context, order id.ID) ([]ledger.Notice, error) {
	return nil, errLook
}
