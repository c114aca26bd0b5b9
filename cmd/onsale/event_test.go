package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"onsale/internal/catalog/eventfile"
)

// A file without an end (a device, a wrong path) is refused after its first megabyte, not read into memory.
func TestEventImportReadsNoMoreThanItsLimit(t *testing.T) {
	name := filepath.Join(t.TempDir(), "tour.yaml")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(name, 64<<20); err != nil {
		t.Fatal(err)
	}
	err := (&eventImport{File: name}).Run(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("has %d bytes; at most %d", eventfile.FileBytesMax+1, eventfile.FileBytesMax)) {
		t.Errorf("a file of 64 MiB: %v", err)
	}
}
