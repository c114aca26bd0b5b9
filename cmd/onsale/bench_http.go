package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/alecthomas/kong"

	"onsale/internal/app"
	"onsale/internal/bench"
	"onsale/internal/guard"
	"onsale/internal/venue"
)

// benchHTTP measures the routes that a crowd uses, on a server of its own with a throw-away issuer and proofs of work at
// difficulty 1.
type benchHTTP struct {
	Seconds int    `default:"5" help:"How long each turn lasts."`
	Turns   int    `default:"3" help:"How often each is measured, in turn; medians are compared."`
	Joins   int    `default:"20000" help:"How many people join, each with a proof of work."`
	JSON    bool   `name:"json" help:"JSON instead of a table."`
	Data    string `type:"existingdir" placeholder:"DIR" help:"Folder on a disk in which to make (and remove) the databases. Defaults to the system's temporary folder."`
}

type benchHTTPReport struct {
	Routes     []bench.HTTPResult `json:"routes"`
	JoinsPerS  float64            `json:"joins_per_s"`
	JoinCount  int                `json:"join_count"`
	Difficulty int                `json:"proof_difficulty"`
}

// Run measures and prints.
func (c *benchHTTP) Run(k *kong.Context) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	dir, err := os.MkdirTemp(c.Data, "onsale-bench-http-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s := app.Settings{
		Data: dir, Ledger: app.SQLite, Listen: "127.0.0.1:0", Demo: true, DemoSeats: 100, Payment: app.PaymentSettings{Provider: "sandbox"},
		Logger: slog.New(slog.DiscardHandler),
	}
	started := make(chan app.Addresses, 1)
	s.Started = func(a app.Addresses) { started <- a }
	a, err := app.Open(ctx, s)
	if err != nil {
		return err
	}
	serving, end := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- a.Serve(serving) }()
	defer func() {
		end()
		err = errors.Join(err, <-ended, a.Close(context.WithoutCancel(ctx)))
	}()
	var at app.Addresses
	select {
	case at = <-started:
	case err := <-ended:
		ended <- nil
		return err
	}
	b := httpBench{app: a, base: "http://" + at.Public.String(), client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: bench.HTTPConnections}}}
	defer b.client.CloseIdleConnections()
	report, err := b.run(ctx, c)
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(k.Stdout).Encode(report)
	}
	for _, r := range report.Routes {
		fmt.Fprintf(k.Stdout, "%-16s %8.0f/s under %s; a bare handler with the same %d bytes %8.0f/s; ratio %.2f\n", r.Name, r.PerS, r.Load, r.Bytes, r.BarePerS, r.Ratio)
	}
	_, err = fmt.Fprintf(k.Stdout, "%-16s %8.0f/s, %d people, proof of work at difficulty %d\n", "join", report.JoinsPerS, report.JoinCount, report.Difficulty)
	return err
}

type httpBench struct {
	app    *app.App
	base   string
	client *http.Client
	event  string
}

const benchRoom = `format: 1
venue: { name: Hall, city: Kiel, country: DE, zone: Europe/Berlin, plan: hall.json }
show: { key: bench, title: Bench }
currency: EUR
sale: { opens: %q, closes: %q }
performances: [{ key: first, starts: %q }]
tiers: [{ category: %q, face: "0" }]
room: { joins_open_before: 2h }
`

func (b *httpBench) run(ctx context.Context, c *benchHTTP) (benchHTTPReport, error) {
	report := benchHTTPReport{Difficulty: 1, JoinCount: c.Joins}
	hall := venue.Generate(venue.GenerateOptions{Seats: 1000, NoStanding: true})
	plan, err := hall.Encode()
	if err != nil {
		return report, err
	}
	opens := time.Now().UTC().Add(time.Hour) // people join and wait
	text := fmt.Appendf(nil, benchRoom, opens.Format(time.RFC3339), opens.AddDate(0, 1, 0).Format(time.RFC3339), opens.AddDate(0, 2, 0).Format(time.RFC3339), hall.Categories[0].Key)
	made, err := b.app.ImportEvents(ctx, app.ImportRequest{File: text, Plan: plan})
	if err != nil {
		return report, err
	}
	b.event = made[0].ID
	if err := b.waiting(ctx); err != nil {
		return report, err
	}
	place, err := b.joins(ctx, c.Joins, &report)
	if err != nil {
		return report, err
	}
	for _, route := range []struct{ name, url string }{{"status", b.queue("")}, {"position", b.queue("/" + place)}} {
		r, err := bench.HTTP(ctx, route.name, route.url, bench.HTTPOptions{Seconds: c.Seconds, Turns: c.Turns})
		if err != nil {
			return report, err
		}
		report.Routes = append(report.Routes, r)
	}
	return report, nil
}

func (b *httpBench) queue(rest string) string {
	return b.base + "/v1/events/" + b.event + "/queue" + rest
}

// waiting waits until people may join.
func (b *httpBench) waiting(ctx context.Context) error {
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for range 600 {
		var status struct {
			Phase string `json:"phase"`
		}
		if code, err := b.ask(ctx, "GET", b.queue(""), "", nil, &status); err == nil && code == http.StatusOK && status.Phase == "waiting" {
			return nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return errors.New("the line does not open")
}

// ask sends one request and reads the answer.
func (b *httpBench) ask(ctx context.Context, method, url, token string, body, out any) (int, error) {
	var text bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&text).Encode(body); err != nil {
			return 0, err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, url, &text)
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := b.client.Do(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %s: %.200s", method, url, answer.Status, raw)
	}
	if err == nil && out != nil {
		err = json.Unmarshal(raw, out)
	}
	return answer.StatusCode, err
}

// joins lets people join, each signed in and with a proof in hand, and answers the place of one of them.
func (b *httpBench) joins(ctx context.Context, count int, report *benchHTTPReport) (place string, err error) {
	type person struct{ token, proof string }
	people := make([]person, count)
	each := func(do func(i int) error) error {
		var work sync.WaitGroup
		var mu sync.Mutex
		var failed error
		next := make(chan int)
		for range bench.HTTPConnections {
			work.Go(func() {
				for i := range next {
					if err := do(i); err != nil {
						mu.Lock()
						failed = errors.Join(failed, err)
						mu.Unlock()
					}
				}
			})
		}
		for i := range people {
			mu.Lock()
			stop := failed != nil || ctx.Err() != nil
			mu.Unlock()
			if stop {
				break
			}
			next <- i
		}
		close(next)
		work.Wait()
		return errors.Join(failed, ctx.Err())
	}
	err = each(func(i int) error {
		token, err := b.app.Throwaway.Mint(fmt.Sprint("fan", i), time.Now(), time.Hour)
		if err != nil {
			return err
		}
		var task guard.Ask
		if _, err := b.ask(ctx, "GET", b.queue("/challenge"), token, nil, &task); err != nil {
			return err
		}
		proof, ok := task.Proof.Solve()
		if !ok {
			return errors.New("a challenge without an answer")
		}
		people[i] = person{token, proof}
		return nil
	})
	if err != nil {
		return "", err
	}
	var first sync.Once
	start := time.Now()
	err = each(func(i int) error {
		var joined struct {
			Queue string `json:"queue_id"`
		}
		_, err := b.ask(ctx, "POST", b.queue(""), people[i].token, map[string]string{"proof": people[i].proof}, &joined)
		first.Do(func() { place = joined.Queue })
		return err
	})
	report.JoinsPerS = float64(count) / time.Since(start).Seconds()
	return place, err
}
