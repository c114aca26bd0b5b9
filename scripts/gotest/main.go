// Gotest runs go test and closes with the ten slowest tests and a line of counts.
//
//	gotest ARGUMENTS… [-- ARGUMENTS…]
//
// Each group of arguments is one run of go test; the closing lines are of all of them together. What
// go test would print is printed, its exit code (the first that is not 0) is the exit code.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
)

const slowestMax = 10

func main() {
	// An interrupt reaches go test too. It ends, and what it found so far is still summed up here.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)

	r := newReport(os.Stdout)
	code := 0
	for _, args := range groups(os.Args[1:]) {
		c, err := run(r, args)
		if err != nil {
			fmt.Fprintln(os.Stderr, "gotest:", err)
		}
		code = cmp.Or(code, c)
	}
	r.close()
	os.Exit(code)
}

func groups(args []string) [][]string {
	all := [][]string{nil}
	for _, a := range args {
		if a == "--" {
			all = append(all, nil)
			continue
		}
		all[len(all)-1] = append(all[len(all)-1], a)
	}
	return all
}

func run(r *report, args []string) (code int, err error) {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 1, err
	}
	if err := cmd.Start(); err != nil {
		return 1, err
	}
	readErr := r.read(out)
	err = cmd.Wait()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return max(exit.ExitCode(), 1), nil // -1 when a signal ended it
	case err != nil:
		return 1, err
	case readErr != nil:
		return 1, readErr
	}
	return 0, nil
}

// event is a line of go test -json, see `go doc test2json`.
type event struct {
	Action  string
	Package string
	Test    string
	Elapsed float64 // seconds
	Output  string
}

type result struct {
	name    string // package and test
	seconds float64
}

type testKey struct{ pkg, test string }

// report gathers top-level tests; subtests are within their times and outcomes.
type report struct {
	w                       io.Writer
	output                  map[testKey][]string // of tests that have not ended
	failedIn                map[string]bool      // packages with a failed test
	times                   []result
	passed, failed, skipped int
}

func newReport(w io.Writer) *report {
	return &report{w: w, output: map[testKey][]string{}, failedIn: map[string]bool{}}
}

func (r *report) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			r.line(line)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *report) line(line []byte) {
	var e event
	if json.Unmarshal(line, &e) != nil {
		_, _ = r.w.Write(line) // not of test2json, then of go itself: shown as it is
		return
	}
	switch {
	case e.Action == "build-output":
		fmt.Fprint(r.w, e.Output)
	case e.Test == "":
		r.packageEvent(e)
	default:
		r.testEvent(e)
	}
}

func (r *report) packageEvent(e event) {
	switch e.Action {
	case "output":
		if e.Output != "PASS\n" { // -json implies -v, which a reader did not ask for
			fmt.Fprint(r.w, e.Output)
		}
	case "fail":
		for key, lines := range r.output { // those that were running when the program died
			if key.pkg == e.Package {
				fmt.Fprint(r.w, strings.Join(lines, ""))
				delete(r.output, key)
			}
		}
		if !r.failedIn[e.Package] { // it did not build, or died outside a test
			r.failed++
		}
		delete(r.failedIn, e.Package)
	}
}

func (r *report) testEvent(e event) {
	top, _, isSub := strings.Cut(e.Test, "/")
	key := testKey{e.Package, top} // the output of subtests belongs to the whole
	switch e.Action {
	case "output":
		if !progress(e.Output) {
			r.output[key] = append(r.output[key], e.Output)
		}
		return
	case "pass", "fail", "skip":
		if isSub {
			return
		}
	default:
		return
	}
	lines := r.output[key]
	delete(r.output, key)
	r.times = append(r.times, result{name: e.Package + " " + e.Test, seconds: e.Elapsed})
	switch e.Action {
	case "pass":
		r.passed++
	case "skip":
		r.skipped++
		fmt.Fprint(r.w, strings.Join(lines, "")) // with its reason: what was not tested is not passed over
	case "fail":
		r.failed++
		r.failedIn[e.Package] = true
		fmt.Fprint(r.w, strings.Join(lines, ""))
	}
}

// progress are lines that only -v prints and that say nothing about a failure.
func progress(line string) bool {
	for _, word := range []string{"=== RUN ", "=== PAUSE ", "=== CONT ", "=== NAME "} {
		if strings.HasPrefix(line, word) {
			return true
		}
	}
	return false
}

func (r *report) close() {
	slices.SortStableFunc(r.times, func(a, b result) int { return cmp.Compare(b.seconds, a.seconds) })
	slowest := r.times[:min(slowestMax, len(r.times))]
	if len(slowest) > 0 {
		fmt.Fprintln(r.w, "\nslowest tests:")
	}
	for _, t := range slowest {
		fmt.Fprintf(r.w, "%8.2fs  %s\n", t.seconds, t.name)
	}
	fmt.Fprintf(r.w, "\n%d passed, %d failed, %d skipped\n", r.passed, r.failed, r.skipped)
}
