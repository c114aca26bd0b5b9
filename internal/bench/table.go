package bench

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// String says in one line what the figures were measured on.
func (m *Machine) String() string {
	under := "its disk cannot be seen from here"
	if m.FileSystem != "" {
		under = fmt.Sprintf("%s, fsync %.3f ms", m.FileSystem, m.FsyncMS)
	}
	return fmt.Sprintf("%d CPUs, %s database, %s", m.CPUs, m.Server, under)
}

// WriteTable prints results side by side in 80 columns.
func WriteTable(out io.Writer, results []Result) error {
	var b strings.Builder
	line := func(what string, of func(*Result) string) {
		fmt.Fprintf(&b, "%-22s", what)
		for i := range results {
			fmt.Fprintf(&b, "%16s", of(&results[i]))
		}
		b.WriteByte('\n')
	}
	count := func(what string, of func(*Result) int64) {
		line(what, func(r *Result) string { return grouped(of(r)) })
	}
	figure := func(what, format string, of func(*Result) float64) {
		line(what, func(r *Result) string { return fmt.Sprintf(format, of(r)) })
	}
	rate := func(what string, of func(*Result) float64) {
		line(what, func(r *Result) string { return grouped(int64(of(r) + 0.5)) })
	}
	line("design", func(r *Result) string { return r.Design })
	line("ledger", func(r *Result) string { return r.Ledger })
	count("attempts", func(r *Result) int64 { return r.Attempts })
	count("won", func(r *Result) int64 { return r.Won })
	count("lost", func(r *Result) int64 { return r.Lost })
	count("  of them at the board", func(r *Result) int64 { return r.BoardRefused })
	count("retries of shed ones", func(r *Result) int64 { return r.Retries })
	count("errors", func(r *Result) int64 { return r.Errors })
	figure("seconds", "%.3f", func(r *Result) float64 { return r.Seconds })
	figure("CPU seconds", "%.2f", func(r *Result) float64 { return r.CPUSeconds })
	rate("attempts/s", func(r *Result) float64 { return r.AttemptsPerS })
	rate("  at the ledger", func(r *Result) float64 { return r.LedgerAttemptsPerS })
	count("seats held", func(r *Result) int64 { return r.SeatsHeld })
	rate("seats sold/s", func(r *Result) float64 { return r.SeatsSoldPerS })
	figure("p50 ms", "%.1f", func(r *Result) float64 { return r.P50MS })
	figure("p99 ms", "%.1f", func(r *Result) float64 { return r.P99MS })
	count("sold twice", func(r *Result) int64 { return r.DoubleSold })
	line("audit", audited)
	writeRuns(&b, results)
	writeRatio(&b, results)
	_, err := io.WriteString(out, b.String())
	return err
}

func audited(r *Result) string {
	switch {
	case r.AuditOK == nil:
		return "-"
	case *r.AuditOK:
		return "ok"
	}
	return "BROKEN"
}

// pace is the figure by which designs of a bench are compared.
func (r *Result) pace() (float64, string) {
	if r.Bench == "sale" {
		return r.SeatsSoldPerS, "seats/s"
	}
	return r.AttemptsPerS, "attempts/s"
}

func writeRuns(b *strings.Builder, results []Result) {
	for i := range results[0].Runs {
		fmt.Fprintf(b, "%-22s", fmt.Sprintf("run %d", i+1))
		for k := range results {
			pace, unit := results[k].Runs[i].pace()
			fmt.Fprintf(b, "%16s", grouped(int64(pace+0.5))+" "+unit[:strings.IndexByte(unit, '/')+2])
		}
		b.WriteByte('\n')
	}
}

// writeRatio says how the first design stands to each of the others.
func writeRatio(b *strings.Builder, results []Result) {
	first, unit := results[0].pace()
	for i := range results[1:] {
		if other, _ := results[i+1].pace(); other > 0 {
			fmt.Fprintf(b, "%s does %.2f times the %s of %s\n", results[0].Design, first/other, unit, results[i+1].Design)
		}
	}
}

// grouped is the number with commas: 1,057.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
