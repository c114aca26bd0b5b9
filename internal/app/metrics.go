package app

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"onsale/internal/ledger"
)

const pingTimeout = 2 * time.Second

// metrics are the program's figures. No label ever holds a name, an address or an id (E10).
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.HistogramVec
	batches  *prometheus.HistogramVec
	sizes    prometheus.Histogram
	alerts   *prometheus.CounterVec
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "onsale_http_request_seconds",
			Help: "Time to answer a request.", Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16)}, []string{"route", "status"}),
		batches: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "onsale_ledger_batch_seconds",
			Help: "Time to apply a batch of commands.", Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14)}, []string{"outcome"}),
		sizes: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "onsale_ledger_batch_commands",
			Help: "Commands in a batch.", Buckets: prometheus.ExponentialBuckets(1, 2, 11)}),
		alerts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "onsale_alerts_total",
			Help: "Things that somebody should look at."}, []string{"kind"}),
	}
	for _, kind := range []string{"money", "invariant", "event"} {
		m.alerts.WithLabelValues(kind) // shown as 0, so that a rule on it can be told from one with a misspelt name
	}
	m.registry.MustRegister(m.requests, m.batches, m.sizes, m.alerts, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) request(route string, status int, took time.Duration) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Observe(took.Seconds())
}

func (m *metrics) batch(r ledger.BatchReport) {
	outcome := "committed"
	if r.Err != nil {
		outcome = "failed"
	}
	m.batches.WithLabelValues(outcome).Observe(r.Took.Seconds())
	m.sizes.Observe(float64(r.Commands))
}

// watch adds the figures that the parts count themselves.
func (m *metrics) watch(a *App) {
	gauge := func(name, help string, f func() float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, f))
	}
	counter := func(name, help string, f func() int64) {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return float64(f()) }))
	}
	gauge("onsale_ledger_queue_commands", "Commands waiting for the ledger.", func() float64 { return float64(a.Batcher.Stats().Queue) })
	counter("onsale_ledger_shed_total", "Commands refused because the queue was full.", func() int64 { return a.Batcher.Stats().Shed })
	counter("onsale_ledger_unknown_total", "Batches whose outcome is unknown.", func() int64 { return a.Batcher.Stats().Unknown })
	counter("onsale_hold_requests_total", "Requests for holds.", func() int64 { return a.Inventory.Stats().Asked })
	counter("onsale_holds_total", "Holds made.", func() int64 { return a.Inventory.Stats().Held })
	counter("onsale_board_refused_total", "Requests that the board answered with a sure no.", func() int64 { return a.Inventory.Stats().BoardRefused })
	counter("onsale_seats_lost_total", "Best available seats lost on the way to the ledger.", func() int64 { return a.Inventory.Stats().Lost })
	counter("onsale_streams_dropped_total", "Seat streams dropped because the client was slow.", func() int64 { return a.Inventory.Stats().SlowDropped })
	gauge("onsale_ready", "Whether the program is ready.", func() float64 {
		if a.ready.Load() {
			return 1
		}
		return 0
	})
	a.watchRooms(gauge, counter)
	m.registry.MustRegister(noticeCollector{a})
}

// noticeCollector counts published notices by kind.
type noticeCollector struct{ a *App }

var noticesDesc = prometheus.NewDesc("onsale_notices_total", "Notices published, by kind.", []string{"kind"}, nil)

func (noticeCollector) Describe(ch chan<- *prometheus.Desc) { ch <- noticesDesc }

func (c noticeCollector) Collect(ch chan<- prometheus.Metric) {
	for kind, n := range c.a.relay.counts.Kinds() {
		ch <- prometheus.MustNewConstMetric(noticesDesc, prometheus.CounterValue, float64(n), kind)
	}
}

// internal is the second listener: for who runs the program, not for customers.
func (a *App) internal() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(a.metrics.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), pingTimeout)
		defer cancel()
		if !a.ready.Load() {
			http.Error(w, "starting or stopping", http.StatusServiceUnavailable)
			return
		}
		if _, err := a.Store.NextExpiry(ctx); err != nil {
			http.Error(w, "the ledger does not answer", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ready\n"))
	})
	return mux
}
