package sandbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"

	"onsale/internal/payment"
)

// Books is a service's file, opened for reading only: for an audit that trusts nobody's word. The service may be running
// on it.
type Books struct{ service *Service }

var _ payment.Lister = (*Books)(nil)

// ReadBooks opens the file at path. Close it after use.
func ReadBooks(path string) (*Books, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?mode=ro&_pragma=query_only(1)&_pragma=busy_timeout(10000)")
	if err != nil {
		return nil, fmt.Errorf("sandbox: open books %s: %w", path, err)
	}
	b := &books{read: db}
	var format int
	err = db.QueryRow("PRAGMA user_version").Scan(&format)
	if err == nil && format != booksFormat {
		err = fmt.Errorf("written in format %d by another version; this one reads %d", format, booksFormat)
	}
	if err == nil {
		err = db.QueryRow("SELECT value FROM meta WHERE name = 'id'").Scan(&b.id)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("sandbox: books %s: %w", path, err), db.Close())
	}
	return &Books{&Service{books: b}}, nil
}

// Name is the provider's, as it stands in the ledger.
func (*Books) Name() string { return (*Client)(nil).Name() }

// List implements payment.Lister.
func (b *Books) List(ctx context.Context, cursor string) (payment.Page, error) {
	return b.service.list(ctx, cursor, payment.PageMax)
}

// Close ends it.
func (b *Books) Close() error { return b.service.books.read.Close() }

// FaultCounts says how often each fault has happened; see Service.FaultCounts.
func (b *Books) FaultCounts(ctx context.Context) (map[Fault]int64, error) {
	return b.service.FaultCounts(ctx)
}

// Due counts what will still happen by itself: payments that are pending, and webhooks to be sent.
func (b *Books) Due(ctx context.Context) (payments, webhooks int64, err error) {
	err = b.service.books.read.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM payments WHERE due_ms IS NOT NULL),
		(SELECT count(*) FROM deliveries WHERE due_ms IS NOT NULL)`).Scan(&payments, &webhooks)
	return payments, webhooks, err
}
