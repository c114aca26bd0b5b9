package sqlmigrate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// inSchema gives out files that begin by choosing their schema. The choice is SET LOCAL: it ends with the file's
// transaction, so that nothing is left on a connection that a pool (or PgBouncer) hands to somebody else.
type inSchema struct {
	files  fs.FS
	schema string
}

// Open is for goose, which opens the folder and each file.
func (f inSchema) Open(name string) (fs.File, error) {
	file, err := f.files.Open(name)
	if err != nil || !strings.HasSuffix(name, ".sql") {
		return file, err
	}
	text, err := io.ReadAll(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	if text, err = withSchema(text, f.schema); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return changedFile{File: file, text: bytes.NewReader(text)}, nil
}

// A changedFile is a file that was read and closed, with another text.
type changedFile struct {
	fs.File
	text *bytes.Reader
}

func (f changedFile) Read(p []byte) (int, error) { return f.text.Read(p) }
func (f changedFile) Close() error               { return nil }

// withSchema puts the choice behind each "-- +goose Up" and "-- +goose Down".
func withSchema(text []byte, schema string) ([]byte, error) {
	var out bytes.Buffer
	for line := range bytes.Lines(text) {
		out.Write(line)
		directive, ok := strings.CutPrefix(strings.TrimSpace(string(line)), "-- +goose ")
		switch {
		case !ok:
		case strings.EqualFold(directive, "NO TRANSACTION"):
			return nil, fmt.Errorf("NO TRANSACTION cannot choose schema %s", schema)
		case strings.EqualFold(directive, "Up"), strings.EqualFold(directive, "Down"):
			fmt.Fprintf(&out, "\nSET LOCAL search_path TO %s, pg_catalog;\n", quote(schema))
		}
	}
	return out.Bytes(), nil
}
