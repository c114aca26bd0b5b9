package keys

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A master key as text, in a file or an environment variable: this prefix, which is its version, and 64 hex digits.
const masterPrefix = "onsale-master-1:"

// ParseMaster reads a master key's text, as from an environment variable. where names its source in errors.
func ParseMaster(where, text string) (Master, error) {
	digits, ok := strings.CutPrefix(strings.TrimSpace(text), masterPrefix)
	key, err := hex.DecodeString(digits)
	if !ok || err != nil || len(key) != MasterBytes {
		return Master{}, fmt.Errorf("keys: %s holds no master key; it must be %s and %d hex digits", where, masterPrefix, 2*MasterBytes)
	}
	m, err := NewMaster(key)
	if err != nil {
		return m, fmt.Errorf("%w (%s)", err, where)
	}
	return m, nil
}

// LoadMaster reads the master key from a file that nobody else can read.
func LoadMaster(path string) (Master, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Master{}, fmt.Errorf("keys: master key file: %w; restore it, or name the right file", err)
	}
	if !info.Mode().IsRegular() {
		return Master{}, fmt.Errorf("keys: master key file %s is not a regular file", path)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return Master{}, fmt.Errorf("keys: master key file %s can be read by others (mode %04o); run: chmod 600 %s", path, mode, path)
	}
	if info.Size() > 1024 {
		return Master{}, fmt.Errorf("keys: master key file %s has %d bytes; it is another file", path, info.Size())
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return Master{}, fmt.Errorf("keys: master key file: %w", err)
	}
	return ParseMaster("file "+path, string(text))
}

// LoadOrCreateMaster is LoadMaster that makes the file, with mode 0600 and on disk before it answers, where there is
// none. For embedded mode: with several nodes each would make its own. Two processes at once end with the same key.
func LoadOrCreateMaster(path string) (Master, error) {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return LoadMaster(path)
	}
	key := make([]byte, MasterBytes)
	if _, err := rand.Read(key); err != nil {
		return Master{}, fmt.Errorf("keys: randomness: %w", err)
	}
	if err := create(path, masterPrefix+hex.EncodeToString(key)+"\n"); err != nil && !errors.Is(err, fs.ErrExist) {
		return Master{}, fmt.Errorf("keys: make master key file: %w", err)
	}
	return LoadMaster(path)
}

// create makes a file that appears whole or not at all; fs.ErrExist where there is one already.
func create(path, text string) (err error) {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".master-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil { // unlike a rename it never replaces
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
