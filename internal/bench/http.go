package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of a measurement over HTTP.
const (
	HTTPConnections = 64
	httpPatience    = 30 * time.Second
)

// An HTTPResult is how fast an address of ours is answered, beside a bare handler of net/http that returns the same bytes and
// is measured in turn, under the same load.
type HTTPResult struct {
	Name     string  `json:"name"`
	Load     string  `json:"load"` // what asked: "wrk", or "go" where it is not installed
	PerS     float64 `json:"requests_per_s"`
	BarePerS float64 `json:"bare_requests_per_s"`
	Ratio    float64 `json:"ratio"`
	Bytes    int     `json:"body_bytes"`
}

// HTTPOptions say how to measure.
type HTTPOptions struct {
	Seconds int // of each turn
	Turns   int // of each of the two; the medians are compared
}

// HTTP measures an address: it must answer 200.
func HTTP(ctx context.Context, name, url string, o HTTPOptions) (r HTTPResult, err error) {
	body, kind, err := fetch(ctx, url)
	if err != nil {
		return r, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return r, err
	}
	bare := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(body)
	})}
	ended := make(chan error, 1)
	go func() { ended <- bare.Serve(listener) }()
	defer func() {
		stopped := bare.Close()
		if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		err = errors.Join(err, stopped)
	}()
	r = HTTPResult{Name: name, Load: "go", Bytes: len(body)}
	if _, err := exec.LookPath("wrk"); err == nil {
		r.Load = "wrk"
	}
	var ours, theirs []float64
	for range max(1, o.Turns) {
		for _, side := range []struct {
			url  string
			into *[]float64
		}{{"http://" + listener.Addr().String() + "/", &theirs}, {url, &ours}} {
			rate, err := load(ctx, r.Load, side.url, time.Duration(max(1, o.Seconds))*time.Second)
			if err != nil {
				return r, err
			}
			*side.into = append(*side.into, rate)
		}
	}
	r.PerS, r.BarePerS = middle(ours), middle(theirs)
	r.Ratio = r.PerS / r.BarePerS
	return r, nil
}

func middle(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}

func fetch(ctx context.Context, url string) (body []byte, kind string, err error) {
	ctx, cancel := context.WithTimeout(ctx, httpPatience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, "", err
	}
	answer, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		return nil, "", err
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s: %.200s", url, answer.Status, body)
	}
	return body, answer.Header.Get("Content-Type"), err
}

func load(ctx context.Context, with, url string, last time.Duration) (float64, error) {
	if with == "wrk" {
		return wrk(ctx, url, last)
	}
	return goLoad(ctx, url, last)
}

var (
	wrkRate = regexp.MustCompile(`Requests/sec:\s+([0-9.]+)`)
	wrkBad  = regexp.MustCompile(`Non-2xx or 3xx responses: (\d+)`)
)

func wrk(ctx context.Context, url string, last time.Duration) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, last+httpPatience)
	defer cancel()
	out, err := exec.CommandContext(ctx, "wrk", "-t", "1", "-c", strconv.Itoa(HTTPConnections), "-d", strconv.Itoa(int(last.Seconds()))+"s", url).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("wrk: %w: %.300s", err, out)
	}
	if m := wrkBad.FindSubmatch(out); m != nil {
		return 0, fmt.Errorf("%s: %s answers were refusals", url, m[1])
	}
	m := wrkRate.FindSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("wrk does not say how fast it was: %.300s", out)
	}
	return strconv.ParseFloat(string(m[1]), 64)
}

// goLoad asks from this process: a weaker load than wrk's, since both share its cores, and fair all the same.
func goLoad(ctx context.Context, url string, last time.Duration) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, last)
	defer cancel()
	transport := &http.Transport{MaxIdleConnsPerHost: HTTPConnections}
	defer transport.CloseIdleConnections()
	var answered atomic.Int64
	var failed error
	var once sync.Once
	var work sync.WaitGroup
	start := time.Now()
	for range HTTPConnections {
		work.Go(func() {
			for ctx.Err() == nil {
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
				if err == nil {
					var answer *http.Response
					if answer, err = transport.RoundTrip(r); err == nil {
						_, err = io.Copy(io.Discard, answer.Body)
						answer.Body.Close()
						if answer.StatusCode != http.StatusOK {
							err = fmt.Errorf("%s answers %s", url, answer.Status)
						}
					}
				}
				if ctx.Err() != nil {
					return
				}
				if err != nil {
					once.Do(func() { failed = err })
					return
				}
				answered.Add(1)
			}
		})
	}
	work.Wait()
	return float64(answered.Load()) / time.Since(start).Seconds(), failed
}
