package sandbox

import (
	"path/filepath"
	"testing"

	"onsale/internal/payment"
)

func TestReadBooksSeesWhatTheServiceCommitted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "books.db")
	if _, err := ReadBooks(path); err == nil {
		t.Fatal("books that do not exist were opened")
	}
	s, err := Open(Config{Path: path, APIKey: "0123456789abcdef", WebhookSecret: make([]byte, secretBytesMin)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	b, err := ReadBooks(path)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if _, err := s.charge(t.Context(), payment.Attempt{OrderID: "ord_1", AmountMinor: 500, Currency: "EUR", Token: TokenSure}); err != nil {
		t.Fatal(err)
	}
	page, err := b.List(t.Context(), "")
	if err != nil || len(page.Payments) != 1 || page.Payments[0].OrderID != "ord_1" || page.Payments[0].CapturedMinor != 500 {
		t.Fatalf("%+v, %v: want the one payment of ord_1", page, err)
	}
}
