package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"onsale/internal/backup"
)

// Backup makes a backup of what the settings name (F1). It only reads, as the audit does, so a running server is not asked:
// it sells on, and a backup that is killed or runs out of disk takes nothing with it.
func Backup(ctx context.Context, s Settings, file string) (backup.Manifest, error) {
	a := &App{Settings: s}
	if state, err := a.restoring(); err != nil || state != nil {
		return backup.Manifest{}, errors.Join(err, unfinished(s.Data, state))
	}
	return backup.Make(ctx, backup.Options{File: file, Data: s.Data, Kind: backupKind(s), URL: s.directURL(), Program: s.Version})
}

func backupKind(s Settings) backup.Kind {
	if s.Ledger == Postgres {
		return backup.Postgres
	}
	return backup.SQLite
}

// directURL leads straight to the server.
func (s *Settings) directURL() string {
	if s.PostgresDirectURL != "" {
		return s.PostgresDirectURL
	}
	return s.PostgresURL
}

// restoringFile, in the data folder, says that a restore was begun there and not finished.
const restoringFile = "restoring.json"

// A restoring is its content.
type restoring struct {
	Format int    `json:"format"` // 1
	Backup string `json:"backup_id"`
	// Placed says that the databases are in place. Before, everything is made anew; after, only what Restore does behind
	// that is done again.
	Placed bool `json:"placed"`
}

// ErrRestoring says that a restore has to be finished before anything else may use the folder or database.
var ErrRestoring = errors.New("a restore was interrupted here: run onsale restore with the same backup again, it goes on where it was")

func unfinished(where string, state *restoring) error {
	if state == nil {
		return nil
	}
	return fmt.Errorf("%w (%s, backup %s)", ErrRestoring, where, state.Backup)
}

// restoring reads the file, nil where there is none.
func (a *App) restoring() (*restoring, error) {
	text, err := os.ReadFile(a.path(restoringFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var state restoring
	if err := json.Unmarshal(text, &state); err != nil || state.Format != 1 {
		return nil, fmt.Errorf("%s cannot be read: empty the folder and restore anew", a.path(restoringFile))
	}
	return &state, nil
}

func (a *App) putRestoring(state restoring) error {
	state.Format = 1
	text, err := json.Marshal(state)
	if err != nil {
		return err
	}
	return writeFile(a.path(restoringFile), text)
}

// refuseHalfRestored keeps everything but a restore away from a folder that is half restored.
func (a *App) refuseHalfRestored() error {
	if a.Settings.restore {
		return nil
	}
	state, err := a.restoring()
	return errors.Join(err, unfinished(a.Settings.Data, state))
}

// refuseHalfRestoredControl does the same for a database, of which another node may not see the folder.
func (a *App) refuseHalfRestoredControl(ctx context.Context) error {
	if a.Settings.restore {
		return nil
	}
	value, err := a.Control.Meta(ctx, backup.MetaRestoring)
	if err != nil || value == nil {
		return err
	}
	return unfinished("in this database", &restoring{Backup: string(value)})
}
