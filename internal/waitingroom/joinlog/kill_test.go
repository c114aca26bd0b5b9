package joinlog

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"

	"onsale/internal/id"
	"onsale/internal/waitingroom"
)

// childFolder, where it is set, makes this test program append joins in that folder until it is killed.
const childFolder = "ONSALE_TEST_JOINLOG_FOLDER"

// appendForEver says each customer whose join was acknowledged.
func appendForEver(dir string) {
	l, err := Open(dir)
	if err != nil {
		fmt.Println("refused", err)
		return
	}
	next, err := l.Next(context.Background(), event)
	if err != nil {
		fmt.Println("refused", err)
		return
	}
	first := 1
	if len(next) > 0 {
		first = int(next[0].Count)
	}
	var out sync.Mutex
	for worker := range 4 {
		go func() {
			for n := first + worker; ; n += 4 {
				if answers, err := l.Append(context.Background(), []waitingroom.Record{join(n)}); err == nil && answers[0].Err == nil {
					out.Lock()
					fmt.Println(n)
					out.Unlock()
				}
			}
		}()
	}
	_, _ = bufio.NewReader(os.Stdin).ReadByte() // until it is killed
}

// I8: whatever was acknowledged is there after kill -9, again and again, on the same file.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	acknowledged := map[id.ID]bool{}
	for round := range 4 {
		child := exec.CommandContext(t.Context(), os.Args[0])
		child.Env = append(os.Environ(), childFolder+"="+dir)
		if _, err := child.StdinPipe(); err != nil { // open: it goes on
			t.Fatal(err)
		}
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for count := 0; lines.Scan(); count++ {
			n, err := strconv.Atoi(lines.Text())
			if err != nil {
				t.Fatalf("round %d: the child says %q", round, lines.Text())
			}
			acknowledged[id.ID(n)] = true
			if count == 60+round*17 {
				if err := child.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = child.Wait()
		l := openForTest(t, dir)
		has := map[id.ID]bool{}
		for _, r := range listOf(t, l) {
			if r != join(int(r.Number)) {
				t.Fatalf("round %d: %+v was never joined so", round, r)
			}
			has[r.Customer] = true
		}
		for customer := range acknowledged {
			if !has[customer] {
				t.Errorf("round %d: customer %d was told that their join is kept, and it is lost", round, customer)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(acknowledged) < 240 {
		t.Errorf("only %d joins", len(acknowledged))
	}
}
