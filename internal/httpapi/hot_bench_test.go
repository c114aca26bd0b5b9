package httpapi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"onsale/internal/guard"
)

func BenchmarkHot(b *testing.B) {
	w := newWorld(b)
	w.line()
	place := w.join("early", "ann")
	for name, path := range map[string]string{"status": w.queue("early", ""), "position": w.queue("early", "/"+place.ID)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			r := httptest.NewRequestWithContext(b.Context(), "GET", path, nil)
			for range b.N {
				w.handler.ServeHTTP(httptest.NewRecorder(), r)
			}
		})
	}
}

// Joins, in process: signed in, with a proof of work at difficulty 1, each with its line in the log on disk.
func BenchmarkJoin(b *testing.B) {
	w := newWorld(b)
	w.line()
	asks := make([]*http.Request, b.N)
	for i := range asks {
		name := fmt.Sprint("fan", i)
		var c guard.Ask
		w.into(w.askHandler(w.handler, ask{path: w.queue("early", "/challenge"), customer: name}), 200, &c)
		proof, _ := c.Proof.Solve()
		asks[i] = w.request("http://onsale.test", ask{method: "POST", path: w.queue("early", ""), customer: name, body: fmt.Sprintf(`{"proof":%q}`, proof)})
	}
	var next atomic.Int64
	var work sync.WaitGroup
	b.ResetTimer()
	for range 256 {
		work.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(asks)); i = next.Add(1) - 1 {
				rec := httptest.NewRecorder()
				w.handler.ServeHTTP(rec, asks[i])
				if rec.Code != 201 {
					b.Errorf("%d %s", rec.Code, rec.Body)
				}
			}
		})
	}
	work.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "joins/s")
}
