package importer

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

var numbers = regexp.MustCompile(`\[\d+\]`)

// realFile reads one of the files that people who do this job wrote. They are not part of the project: they lie in
// shared/real beside it, or where ONSALE_REAL_DATA says.
func realFile(t *testing.T, name string) []byte {
	t.Helper()
	folder := os.Getenv("ONSALE_REAL_DATA")
	for dir := "."; folder == ""; dir = filepath.Join(dir, "..") {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			folder = filepath.Join(dir, "..", "shared", "real")
		} else if len(dir) > 60 {
			t.Fatal("no go.mod above the test")
		}
	}
	data, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(name)))
	if os.IsNotExist(err) {
		t.Skipf("%s is not there; put the real files into ../shared/real or name their folder in ONSALE_REAL_DATA", name)
	}
	if err != nil {
		t.Fatal(err)
	}
	return data
}
