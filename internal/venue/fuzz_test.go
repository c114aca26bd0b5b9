package venue

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// FuzzImport: whatever a file holds, Import answers either a valid plan, the same each time, which survives being written
// and read and has a layout, or an error with at least one problem.
func FuzzImport(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.json"))
	if err != nil || len(files) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, false)
		f.Add(data, true)
	}
	own, err := twoSections().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(own, false)
	f.Fuzz(func(t *testing.T, data []byte, rename bool) {
		options := ImportOptions{RenameDuplicates: rename}
		p, problems, err := Import(data, options)
		if err != nil {
			if p != nil || len(Errors(problems)) == 0 || err.Error() == "" {
				t.Fatalf("refused with %v and %v", p, problems)
			}
			return
		}
		if errors := Errors(problems); len(errors) > 0 {
			t.Fatalf("accepted with %v", errors)
		}
		if broken := p.Validate(); len(broken) > 0 {
			t.Fatalf("accepted although %v", broken)
		}
		encoded, err := p.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := Decode(encoded)
		if err != nil {
			t.Fatal(err)
		}
		again, err := back.Encode()
		if err != nil || !bytes.Equal(encoded, again) {
			t.Fatalf("it comes back as another (%v)", err)
		}
		if second, _, err := Import(data, options); err != nil || second.Hash() != p.Hash() {
			t.Fatalf("a second import differs (%v)", err)
		}
		if l := p.Layout(); len(l.BestFirst) != len(p.Seats) {
			t.Fatalf("its layout has %d seats of %d", len(l.BestFirst), len(p.Seats))
		}
		exported, _, err := ExportPretix(p)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Seats) == 0 {
			return
		}
		if _, problems, err := Import(exported, ImportOptions{}); err != nil {
			t.Fatalf("its export is refused: %v", problems)
		}
	})
}
