package sqlite_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"onsale/internal/ledger"
	"onsale/internal/ledger/ledgertest"
)

// Many webhooks at once share transactions; each is kept when its caller is answered, and a closed ledger keeps none.
func TestWebhooksAtOnce(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "ledger.db"), ledgertest.NewClock(1_800_000_000_000))
	ctx := context.Background()
	const count = 300
	var all sync.WaitGroup
	for i := range count {
		all.Go(func() {
			event := fmt.Sprint("evt", i)
			if err := l.WebhookKeep(ctx, ledger.Webhook{Provider: "p", Event: event, Dead: i == 7}); err != nil {
				t.Errorf("keep %d: %v", i, err)
			}
			if known, err := l.WebhookKnown(ctx, "p", event); err != nil || !known {
				t.Errorf("%d is known: %v, %v", i, known, err)
			}
		})
	}
	all.Wait()
	if dead, err := l.DeadWebhooks(ctx, 1_900_000_000_000, 10); err != nil || len(dead) != 1 || dead[0].Event != "evt7" {
		t.Errorf("dead: %+v, %v", dead, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.WebhookKeep(ctx, ledger.Webhook{Provider: "p", Event: "late"}); err == nil {
		t.Error("a closed ledger kept a webhook")
	}
}
