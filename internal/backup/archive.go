package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// manifestName is the first entry of the tar.
const manifestName = "manifest.json"

// pack writes the file from the manifest and the parts that lie in dir, and makes it durable. Hashes are taken on the way
// in: the parts are read twice, so that the manifest can come first.
func pack(path string, m *Manifest, dir string) (err error) {
	for i := range m.Parts {
		if err := measure(&m.Parts[i], dir); err != nil {
			return err
		}
	}
	manifest, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // names and addresses are in it
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	squeeze, err := gzip.NewWriterLevel(f, gzip.BestSpeed)
	if err != nil {
		return err
	}
	t := tar.NewWriter(squeeze)
	if err := t.WriteHeader(&tar.Header{Name: manifestName, Size: int64(len(manifest)), Mode: 0o600, ModTime: m.Ended}); err != nil {
		return err
	}
	if _, err := t.Write(manifest); err != nil {
		return err
	}
	for _, p := range m.Parts {
		if err := packPart(t, p, dir); err != nil {
			return err
		}
	}
	return errors.Join(t.Close(), squeeze.Close(), f.Sync())
}

func measure(p *Part, dir string) error {
	f, err := os.Open(filepath.Join(dir, filepath.FromSlash(p.Name)))
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	if p.Bytes, err = io.Copy(sum, f); err != nil {
		return err
	}
	p.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return nil
}

func packPart(t *tar.Writer, p Part, dir string) error {
	f, err := os.Open(filepath.Join(dir, filepath.FromSlash(p.Name)))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := t.WriteHeader(&tar.Header{Name: p.Name, Size: p.Bytes, Mode: 0o600, ModTime: p.At}); err != nil {
		return err
	}
	_, err = io.Copy(t, f)
	return err
}

// An Archive is a backup's file, opened for reading. Close it after use.
type Archive struct {
	Manifest Manifest
	path     string
	file     *os.File
	packed   *gzip.Reader
	tar      *tar.Reader
}

// Errors of reading a backup.
var (
	ErrDamaged = errors.New("the backup is damaged: use another copy of it, or another backup")
	ErrNewer   = errors.New("the backup was made by a newer program: restore it with that program, or a newer one")
)

// Open reads a backup's manifest. ErrNewer where this program does not know its format; ErrDamaged where it is none.
func Open(path string) (*Archive, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	a := &Archive{path: path, file: f}
	if err := a.begin(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return a, nil
}

// Close ends it.
func (a *Archive) Close() error { return a.file.Close() }

func (a *Archive) begin() (err error) {
	if a.packed, err = gzip.NewReader(a.file); err != nil {
		return damaged("it is no gzip file")
	}
	a.tar = tar.NewReader(a.packed)
	head, err := a.tar.Next()
	if err != nil || head.Name != manifestName || head.Size > ManifestBytesMax {
		return damaged("it does not begin with a manifest")
	}
	text, err := io.ReadAll(a.tar)
	if err != nil {
		return damaged("its manifest ends early")
	}
	var version struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(text, &version); err != nil {
		return damaged("its manifest cannot be read")
	}
	if version.Format > Format {
		return fmt.Errorf("format %d, and this program reads %d: %w", version.Format, Format, ErrNewer)
	}
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&a.Manifest); err != nil {
		return damaged("its manifest cannot be read")
	}
	return a.Manifest.check()
}

func damaged(what string) error { return fmt.Errorf("%w (%s)", ErrDamaged, what) }

// check refuses a manifest that no program of ours wrote: its names become paths.
func (m *Manifest) check() error {
	switch {
	case m.Format < 1:
		return damaged("its manifest has no format")
	case m.Kind != SQLite && m.Kind != Postgres:
		return damaged(fmt.Sprintf("it is of a database %.20q", m.Kind))
	case len(m.ID) != 16 || m.Began.IsZero() || m.Ended.Before(m.Began):
		return damaged("its manifest is not whole")
	case len(m.Parts) > PartsMax:
		return damaged(fmt.Sprintf("it has %d parts; at most %d are possible", len(m.Parts), PartsMax))
	}
	seen := map[string]bool{}
	for _, p := range m.Parts {
		if !filepath.IsLocal(p.Name) || strings.Contains(p.Name, `\`) || p.Name == manifestName || seen[p.Name] || p.Bytes < 0 {
			return damaged(fmt.Sprintf("a part is named %.80q", p.Name))
		}
		seen[p.Name] = true
	}
	if m.Kind == SQLite && (!seen[ShardPart] || !seen[ControlPart]) {
		return damaged("a database is missing in it")
	}
	return nil
}

// Unpack writes the parts into a folder, on disk when it returns, each checked against its hash. ErrDamaged where one is not
// what the manifest says, or missing.
func (a *Archive) Unpack(ctx context.Context, dir string) error {
	for i, p := range a.Manifest.Parts {
		if err := ctx.Err(); err != nil {
			return err
		}
		head, err := a.tar.Next()
		if err != nil {
			return damaged(fmt.Sprintf("it ends before part %d, %s", i+1, p.Name))
		}
		if head.Name != p.Name || head.Size != p.Bytes {
			return damaged(fmt.Sprintf("where %s should be is %.80q", p.Name, head.Name))
		}
		if err := a.unpackPart(p, dir); err != nil {
			return err
		}
	}
	if _, err := a.tar.Next(); !errors.Is(err, io.EOF) {
		return damaged("there is more in it than its manifest says")
	}
	if _, err := io.Copy(io.Discard, a.packed); err != nil { // gzip's own sum comes last
		return damaged("it ends early")
	}
	return syncFolder(dir)
}

func (a *Archive) unpackPart(p Part, dir string) (err error) {
	path := filepath.Join(dir, filepath.FromSlash(p.Name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	in := &reading{r: a.tar, sum: sha256.New()}
	if _, err := io.Copy(f, in); err != nil {
		if in.err != nil {
			return damaged(p.Name + ": " + in.err.Error())
		}
		return err // the disk's
	}
	if hex.EncodeToString(in.sum.Sum(nil)) != p.SHA256 {
		return damaged(p.Name + " has another SHA-256 than its manifest says")
	}
	return f.Sync()
}

// A reading tells faults of the file apart from those of the disk that is written to.
type reading struct {
	r   io.Reader
	sum hash.Hash
	err error
}

func (r *reading) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	r.sum.Write(p[:n])
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}
