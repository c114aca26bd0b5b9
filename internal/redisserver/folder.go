package redisserver

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// makeFolder gives the server a fresh folder in dir.
func (s *Server) makeFolder(dir string) error {
	if dir == "" {
		dir = os.TempDir()
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	removeLeftovers(dir)
	// Locked before it gets the name by which leftovers are found, so that nobody tidies it away now.
	if s.dir, err = os.MkdirTemp(dir, "new-"); err != nil {
		return err
	}
	if s.lock, err = lockFolder(s.dir); err != nil {
		return errors.Join(err, s.removeFolder())
	}
	named := filepath.Join(dir, folderPrefix+strings.TrimPrefix(filepath.Base(s.dir), "new-"))
	if err := os.Rename(s.dir, named); err != nil {
		return errors.Join(err, s.removeFolder())
	}
	s.dir = named
	return nil
}

// removeFolder also gives the lock back.
func (s *Server) removeFolder() error {
	var err error
	if s.lock != nil {
		err = s.lock.Close()
		s.lock = nil
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// removeLeftovers clears folders whose owner died before it could; its server died with it. While an owner lives it holds
// the lock.
func removeLeftovers(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // tidying only: making the folder reports what is wrong with dir
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if !e.IsDir() || !strings.HasPrefix(e.Name(), folderPrefix) {
			continue
		}
		lock, err := lockFolder(path)
		if err != nil {
			continue
		}
		_ = os.RemoveAll(path) // what cannot be removed is tried again by the next start
		_ = lock.Close()
	}
}
