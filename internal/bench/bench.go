// Package bench measures the system's heart, holds and whole sales, beside reference designs on the same machine, the
// same database server and in the same run.
//
// The one idea: a figure alone says little, since machines differ; a ratio to what one would otherwise have built, or to
// what the database could do at best, says much. So every design gets a fresh database of its own on the same server,
// with full durability, the same load, and a check of its own afterwards that nothing was sold twice.
//
// Start reading at Holds and Sale; host.go has the databases, conditional.go and bare_*.go the reference designs.
// docs/BENCH.md says what each figure means and how to repeat it.
package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// The ledgers.
const (
	SQLite   = "sqlite"
	Postgres = "postgres"
)

// The designs.
const (
	// Onsale is ours: board, batcher and the real adapter.
	Onsale = "onsale"
	// Conditional is what one would write first: a transaction for each request, with conditional updates.
	Conditional = "conditional"
	// Bare are the statements of the whole sale and nothing else: no decisions, no callers. It is what the database can
	// do at best with this shape of rows.
	Bare = "bare"
)

// Bounds of what may be asked for.
const (
	BuyersMax  = 1_000_000
	CallersMax = 16_384
	PartyMax   = 8
	RunsMax    = 99
)

// A Result is what one design did: of one run, or the medians of several.
type Result struct {
	Bench              string   `json:"bench"` // holds or sale
	Design             string   `json:"design"`
	Ledger             string   `json:"ledger"`
	Seats              int      `json:"seats"`
	Attempts           int64    `json:"attempts"`              // requests with a final answer
	Won                int64    `json:"won"`                   // holds made, or sales paid
	Lost               int64    `json:"lost"`                  // seats taken, or sold out
	BoardRefused       int64    `json:"board_refused"`         // of the lost: those that never reached the ledger
	Retries            int64    `json:"retries"`               // repeats of shed requests; not among the attempts
	Errors             int64    `json:"errors"`                // anything else
	Seconds            float64  `json:"seconds"`               // from the opening to the last answer
	AttemptsPerS       float64  `json:"attempts_per_s"`        //
	LedgerAttemptsPerS float64  `json:"ledger_attempts_per_s"` // without those that the board refused
	SeatsSold          int64    `json:"seats_sold"`            // with a ticket; 0 in holds
	SeatsSoldPerS      float64  `json:"seats_sold_per_s"`      //
	SeatsHeld          int64    `json:"seats_held"`            // held or sold
	P50MS              float64  `json:"p50_ms"`                // see docs/BENCH.md for what is timed
	P99MS              float64  `json:"p99_ms"`                //
	CPUSeconds         float64  `json:"cpu_seconds"`           // of this process and of a server that it started
	DoubleSold         int64    `json:"double_sold"`           // seats with more than one claim, by a query of this package
	AuditOK            *bool    `json:"audit_ok"`              // null: the design does not have our books
	AuditBroken        []string `json:"audit_broken,omitempty"`
	Machine            *Machine `json:"machine,omitempty"`
	Runs               []Result `json:"runs,omitempty"` // where there was more than one
}

// finish fills in what follows from the counts.
func (r *Result) finish() {
	if r.Seconds > 0 {
		r.AttemptsPerS = float64(r.Attempts) / r.Seconds
		r.LedgerAttemptsPerS = float64(r.Attempts-r.BoardRefused) / r.Seconds
		r.SeatsSoldPerS = float64(r.SeatsSold) / r.Seconds
	}
}

// Faulty says what of a result is no measurement but a fault: nil where it is good.
func (r *Result) Faulty() error {
	var errs []error
	if r.DoubleSold > 0 {
		errs = append(errs, fmt.Errorf("%s on %s sold %d seats more than once", r.Design, r.Ledger, r.DoubleSold))
	}
	if r.Errors > 0 {
		errs = append(errs, fmt.Errorf("%s on %s had %d errors", r.Design, r.Ledger, r.Errors))
	}
	if r.AuditOK != nil && !*r.AuditOK {
		errs = append(errs, fmt.Errorf("%s on %s does not pass the audit: %s", r.Design, r.Ledger, strings.Join(r.AuditBroken, ", ")))
	}
	for i := range r.Runs {
		errs = append(errs, r.Runs[i].Faulty())
	}
	return errors.Join(errs...)
}

// repeat runs each design so many times, in turn, so that a machine that grows slower is slower for all, and gives the
// medians in the order of the designs.
func repeat(ctx context.Context, designs []string, runs int, progress func(Result), run func(ctx context.Context, design string) (Result, error)) ([]Result, error) {
	all := make([][]Result, len(designs))
	for range max(runs, 1) {
		for i, design := range designs {
			r, err := run(ctx, design)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", design, err)
			}
			r.finish()
			if progress != nil {
				progress(r)
			}
			all[i] = append(all[i], r)
		}
	}
	results := make([]Result, len(designs))
	for i := range all {
		results[i] = medianOf(all[i])
	}
	return results, nil
}

// medianOf is the run with the median time, its figures the median of each, with all runs.
func medianOf(runs []Result) Result {
	if len(runs) == 1 {
		return runs[0]
	}
	sorted := slices.Clone(runs)
	slices.SortFunc(sorted, func(a, b Result) int { return int(math.Copysign(1, a.Seconds-b.Seconds)) })
	m := sorted[(len(sorted)-1)/2]
	for _, of := range []func(*Result) *float64{
		func(r *Result) *float64 { return &r.Seconds },
		func(r *Result) *float64 { return &r.AttemptsPerS },
		func(r *Result) *float64 { return &r.LedgerAttemptsPerS },
		func(r *Result) *float64 { return &r.SeatsSoldPerS },
		func(r *Result) *float64 { return &r.P50MS },
		func(r *Result) *float64 { return &r.P99MS },
		func(r *Result) *float64 { return &r.CPUSeconds },
	} {
		values := make([]float64, len(runs))
		for i := range runs {
			values[i] = *of(&runs[i])
		}
		*of(&m) = median(values)
	}
	for i := range runs {
		m.Errors, m.DoubleSold = max(m.Errors, runs[i].Errors), max(m.DoubleSold, runs[i].DoubleSold)
		if ok := runs[i].AuditOK; ok != nil && !*ok {
			m.AuditOK, m.AuditBroken = ok, runs[i].AuditBroken
		}
	}
	m.Runs = runs
	return m
}

func median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	if n%2 == 1 {
		return values[n/2]
	}
	return (values[n/2-1] + values[n/2]) / 2
}

// percentiles sorts the times and gives the 50th and 99th percentile in milliseconds.
func percentiles(times []time.Duration) (p50, p99 float64) {
	if len(times) == 0 {
		return 0, 0
	}
	slices.Sort(times)
	at := func(p float64) float64 {
		i := int(math.Ceil(p*float64(len(times)))) - 1
		return float64(times[max(i, 0)].Microseconds()) / 1000
	}
	return at(0.50), at(0.99)
}

// checkDesigns refuses a design that a bench does not have, or one twice.
func checkDesigns(designs, known []string) error {
	if len(designs) == 0 {
		return errors.New("name at least one design")
	}
	for i, d := range designs {
		if !slices.Contains(known, d) {
			return fmt.Errorf("design %q is not one of %s", d, strings.Join(known, ", "))
		}
		if slices.Contains(designs[:i], d) {
			return fmt.Errorf("design %s is named twice", d)
		}
	}
	return nil
}
