package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// smallDisk is a folder on a file system of its own of some megabytes.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("a small file system needs the right to mount one: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil { // gone once the last file is closed
			t.Errorf("unmounting: %v", err)
		}
	})
	return dir
}

// fill takes all room that is left; free gives it back.
func fill(t *testing.T, dir string) (free func()) {
	t.Helper()
	path := filepath.Join(dir, "filler")
	f, err := os.Create(path)
	must(t, err)
	for _, step := range []int{1 << 20, 4096, 1} {
		chunk := make([]byte, step)
		for err == nil {
			_, err = f.Write(chunk)
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
		err = nil
	}
	must(t, f.Close())
	return func() { must(t, os.Remove(path)) }
}

// F1: on a full disk every change answers 503 and nothing that was answered is lost; with room again it sells on, without
// a restart.
func TestDiskFull(t *testing.T) {
	disk := smallDisk(t, "32m")
	s := settings(filepath.Join(disk, "data"))
	s.DemoSeats = 2_000
	p := start(t, s)
	event := p.event()
	type sale struct{ customer, hold string }
	var booked, held []sale
	statuses := map[int]int{}
	buy := func(customer string) int {
		t.Helper()
		var h, b answer
		status := p.ask(customer, "POST", "/v1/holds", best(event, 1), &h)
		statuses[status]++
		if status != 201 {
			if h.Code != "busy" && h.Code != "outcome_unknown" {
				t.Errorf("a hold is refused with %d %s", status, h.Code)
			}
			return status
		}
		held = append(held, sale{customer, h.Hold})
		status = p.ask(customer, "POST", "/v1/bookings", fmt.Sprintf(`{"hold_id":%q,"payment_token":"tok_sure"}`, h.Hold), &b)
		statuses[status]++
		switch {
		case status == 201:
			booked = append(booked, sale{customer, h.Hold})
		case status != 503 && status != 202:
			t.Errorf("a booking is refused with %d %s", status, b.Code)
		}
		return status
	}
	for n := range 10 {
		if status := buy(fmt.Sprint("early", n)); status != 201 {
			t.Fatalf("status %d", status)
		}
	}
	before := len(booked)
	free := fill(t, disk)
	refused := 0
	for n := 0; refused < 5; n++ { // what lies in files already may still be written over
		if n == 2_000 {
			t.Fatalf("the disk is full and everything goes on: %v", statuses)
		}
		if buy(fmt.Sprint("full", n)) == 503 {
			refused++
		}
	}
	for range 3 { // somebody who is known already
		if status := buy("early0"); status == 201 {
			continue
		}
	}
	if status := p.ask("", "GET", "/v1/events/"+event, "", nil); status != 200 {
		t.Errorf("reading is %d", status)
	}
	file := filepath.Join(disk, "backup.tar.gz")
	if _, err := Backup(t.Context(), s, file); err == nil || !strings.Contains(err.Error(), "full") && !strings.Contains(err.Error(), "no space") {
		t.Errorf("a backup onto a full disk: %v", err)
	}
	if left, err := filepath.Glob(file + "*"); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
	free()
	until(t, "selling on", func() bool { return buy(fmt.Sprint("after", statuses[201])) == 201 })
	for _, b := range booked {
		var h answer
		if status := p.ask(b.customer, "GET", "/v1/holds/"+b.hold, "", &h); status != 200 || h.State != "sold" {
			t.Errorf("I8: a sale that was answered is %d %s", status, h.State)
		}
	}
	t.Logf("%d sold before, %d in all, answers %v", before, len(booked), statuses)
	until(t, "captures", func() bool { return captured(t, p) })
	p.stop()
	audited(t, s)
}
