package main

import (
	"reflect"
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	const in = `{"Action":"start","Package":"a"}
{"Action":"run","Package":"a","Test":"TestGood"}
{"Action":"output","Package":"a","Test":"TestGood","Output":"=== RUN   TestGood\n"}
{"Action":"output","Package":"a","Test":"TestGood","Output":"noise of a good test\n"}
{"Action":"pass","Package":"a","Test":"TestGood","Elapsed":0.5}
{"Action":"output","Package":"a","Test":"TestBad/sub","Output":"    a_test.go:1: what went wrong\n"}
{"Action":"fail","Package":"a","Test":"TestBad/sub","Elapsed":9}
{"Action":"output","Package":"a","Test":"TestBad","Output":"--- FAIL: TestBad (2.00s)\n"}
{"Action":"fail","Package":"a","Test":"TestBad","Elapsed":2}
{"Action":"output","Package":"a","Test":"TestSkip","Output":"    a_test.go:2: no server\n"}
{"Action":"skip","Package":"a","Test":"TestSkip","Elapsed":0}
{"Action":"output","Package":"a","Output":"FAIL\ta\t3s\n"}
{"Action":"fail","Package":"a","Elapsed":3}
{"Action":"output","Package":"b","Test":"TestDies","Output":"panic: dead\n"}
{"Action":"fail","Package":"b","Elapsed":1}
{"ImportPath":"c","Action":"build-output","Output":"c.go:1: no such thing\n"}
{"Action":"fail","Package":"c","Elapsed":0}
{"Action":"output","Package":"d","Output":"PASS\n"}
{"Action":"output","Package":"d","Output":"ok  \td\t0.1s\n"}
{"Action":"pass","Package":"d","Elapsed":0.1}
words that are no JSON
`
	var out strings.Builder
	r := newReport(&out)
	if err := r.read(strings.NewReader(in)); err != nil {
		t.Fatal(err)
	}
	r.close()
	const want = `    a_test.go:1: what went wrong
--- FAIL: TestBad (2.00s)
    a_test.go:2: no server
FAIL	a	3s
panic: dead
c.go:1: no such thing
ok  	d	0.1s
words that are no JSON

slowest tests:
    2.00s  a TestBad
    0.50s  a TestGood
    0.00s  a TestSkip

1 passed, 3 failed, 1 skipped
`
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
	}
}

func TestOnlyTheSlowestAreListed(t *testing.T) {
	var out strings.Builder
	r := newReport(&out)
	for range slowestMax + 5 {
		r.testEvent(event{Action: "pass", Package: "a", Test: "TestX", Elapsed: 1})
	}
	r.close()
	if n := strings.Count(out.String(), "TestX"); n != slowestMax {
		t.Errorf("%d tests listed, want %d", n, slowestMax)
	}
	if !strings.HasSuffix(out.String(), "\n15 passed, 0 failed, 0 skipped\n") {
		t.Errorf("closing line: %s", out.String())
	}
}

func TestGroups(t *testing.T) {
	got := groups([]string{"-race", "./...", "--", "-run", "X", "./a"})
	want := [][]string{{"-race", "./..."}, {"-run", "X", "./a"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestExitCodeIsKept(t *testing.T) {
	r := newReport(new(strings.Builder))
	if code, err := run(r, []string{"-run", "^$", "."}); code != 0 || err != nil {
		t.Errorf("a good run: %d, %v", code, err)
	}
	if code, err := run(r, []string{"./no/such/folder"}); code == 0 || err != nil {
		t.Errorf("a run that cannot build: %d, %v", code, err)
	}
}
