package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"onsale/internal/audit"
	"onsale/internal/backup"
	"onsale/internal/catalog"
	"onsale/internal/id"
	"onsale/internal/identity"
	"onsale/internal/keys"
)

// stagingFolder, in the data folder, is where a backup's parts lie until they are in place.
const stagingFolder = "restoring"

// RestoreOptions say what is restored, and what the operator wants done with what has happened since.
type RestoreOptions struct {
	File string
	// Erasures are lists of those who were erased since: ErasuresFile, or newer backups. An ErasuresFile that lies in the
	// data folder is one of them without being named.
	Erasures []string
	// Resume lets events that were on sale go on selling. Otherwise they come back paused, until somebody has read the
	// report.
	Resume bool
	// KeepUnknown leaves payments alone whose bookings the backup does not know. Otherwise they are given back after an hour.
	KeepUnknown bool
	// reached is told of each step, for tests that end there; an error ends it. May be nil.
	reached func(step string) error
}

// A RestoreReport is what a restore found and did.
type RestoreReport struct {
	Backup  backup.Manifest `json:"-"`
	Began   time.Time       `json:"backup_began_at"`
	Done    time.Time       `json:"restored_at"`
	Resumed bool            `json:"resumed"` // an interrupted one was finished
	Erased  int             `json:"erased_again"`
	Lists   int             `json:"erasure_lists"` // that were given, or lay in the folder
	Paused  []string        `json:"events_paused"`
	Money   MoneyReport     `json:"money"`
	Audit   audit.Report    `json:"-"`
	Sound   bool            `json:"audit_ok"`
}

// Restore brings a backup back into an empty data folder (beside the master key) and, with PostgreSQL, an empty database;
// checks it, jumps over all numbers that may have been given out since, erases who was erased, and compares with the
// payment provider. Until it is finished nothing else may use the folder; interrupted, it is repeated with the same backup.
func Restore(ctx context.Context, s Settings, o RestoreOptions) (*RestoreReport, error) {
	if o.reached == nil {
		o.reached = func(string) error { return nil }
	}
	s.restore = true
	s.Payment.RecoverAfter = time.Millisecond // no customer is talking about a booking here
	a := &App{Settings: s, Log: s.Logger}
	archive, err := backup.Open(o.File)
	if err != nil {
		return nil, err
	}
	defer archive.Close()
	// Everything that can be refused is looked at before anything is touched.
	if err := a.restorable(&archive.Manifest); err != nil {
		return nil, err
	}
	erasures, lists, err := a.erasedSince(o.Erasures)
	if err != nil {
		return nil, err
	}
	report := &RestoreReport{Backup: archive.Manifest, Began: archive.Manifest.Began, Lists: lists}
	if report.Resumed, err = a.place(ctx, archive, o); err != nil {
		return nil, err
	}
	if err := a.settleRestored(ctx, report, erasures, o); err != nil {
		return nil, fmt.Errorf("the databases are in place, but not finished (run the same command again): %w", err)
	}
	return report, nil
}

// restorable refuses a backup that these settings, this program or this master key cannot bring back.
func (a *App) restorable(m *backup.Manifest) error {
	if kind := backupKind(a.Settings); kind != m.Kind {
		return fmt.Errorf("the backup is of %s, and ledger.kind is %s: a backup is restored into the kind of database that it is of (--ledger %s)", m.Kind, kind, m.Kind)
	}
	if err := m.CheckVersions(); err != nil {
		return err
	}
	master, err := a.existingMaster()
	if err != nil {
		return err
	}
	return m.CheckMaster(master)
}

// existingMaster is the master key, which a restore never makes.
func (a *App) existingMaster() (keys.Master, error) {
	if a.Settings.MasterKey == "" && a.Settings.MasterKeyFile == "" {
		path := a.path(masterFile)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return keys.Master{}, fmt.Errorf("the master key is needed, which is never in a backup: put the copy that you keep apart at %s (chmod 600), or set master_key_file", path)
		}
	}
	return a.master()
}

// place puts the databases in place, with the folder locked. resumed says that it was begun before.
func (a *App) place(ctx context.Context, archive *backup.Archive, o RestoreOptions) (resumed bool, err error) {
	if err := os.MkdirAll(a.Settings.Data, 0o700); err != nil {
		return false, fmt.Errorf("the data folder: %w", err)
	}
	unlock, err := lockFolder(a.Settings.Data)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	state, err := a.beginRestoring(ctx, archive.Manifest.ID)
	if err != nil {
		return false, err
	}
	resumed = state != nil
	if resumed && state.Placed {
		return true, nil
	}
	now := restoring{Backup: archive.Manifest.ID}
	if err := a.putRestoring(now); err != nil {
		return resumed, err
	}
	if err := o.reached("begun"); err != nil {
		return resumed, err
	}
	if err := a.placeDatabases(ctx, archive, o); err != nil {
		return resumed, err
	}
	now.Placed = true
	if err := a.putRestoring(now); err != nil {
		return resumed, err
	}
	return resumed, os.RemoveAll(a.path(stagingFolder))
}

// beginRestoring refuses a place where something is. The answer is nil where nothing was begun there.
func (a *App) beginRestoring(ctx context.Context, backupID string) (*restoring, error) {
	state, err := a.restoring()
	if err != nil {
		return nil, err
	}
	if state != nil && state.Backup != backupID {
		return nil, fmt.Errorf("%w: the restore of another backup (%s) was interrupted in %s: finish that one, or empty the folder", backup.ErrNotEmpty, state.Backup, a.Settings.Data)
	}
	if state == nil {
		if err := a.emptyFolder(); err != nil {
			return nil, err
		}
	}
	if a.Settings.Ledger == Postgres && (state == nil || !state.Placed) { // else its mark may be gone already: see endRestoring
		placed, err := backup.CheckEmptyPostgres(ctx, a.Settings.directURL(), backupID)
		if err != nil {
			return nil, err
		}
		if placed {
			state = &restoring{Backup: backupID, Placed: true}
		}
	}
	return state, nil
}

// mayStay are the files that may lie where a backup is restored to. The sandbox's books are a stranger's: where they are
// there they are newer than the backup's, and stay.
var mayStay = []string{masterFile, lockName, ErasuresFile, SandboxFile, SandboxFile + "-wal", SandboxFile + "-shm", "throwaway"}

func (a *App) emptyFolder() error {
	entries, err := os.ReadDir(a.Settings.Data)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !slices.Contains(mayStay, e.Name()) && !strings.HasPrefix(e.Name(), "throwaway") {
			return fmt.Errorf("%w: %s has %s; name an empty folder (only %s may be in it)", backup.ErrNotEmpty, a.Settings.Data, e.Name(), masterFile)
		}
	}
	return nil
}

func (a *App) placeDatabases(ctx context.Context, archive *backup.Archive, o RestoreOptions) error {
	staging := a.path(stagingFolder)
	if err := os.RemoveAll(staging); err != nil {
		return err
	}
	if err := os.Mkdir(staging, 0o700); err != nil {
		return err
	}
	if err := archive.Unpack(ctx, staging); err != nil {
		return err
	}
	if err := o.reached("unpacked"); err != nil {
		return err
	}
	now := backup.Jump{Now: time.Now(), Backup: archive.Manifest.ID}
	if archive.Manifest.Ended.After(now.Now) {
		return fmt.Errorf("this machine's clock (%s) is behind the backup (%s): set it right first", now.Now.UTC().Format(time.RFC3339), archive.Manifest.Ended.Format(time.RFC3339))
	}
	names := []string{controlFile, ShardFile}
	if archive.Manifest.Kind == backup.Postgres {
		if err := backup.FillPostgres(ctx, &archive.Manifest, staging, a.Settings.directURL(), now); err != nil {
			return err
		}
		names = nil
	} else if err := backup.FillSQLite(ctx, staging, now); err != nil {
		return err
	}
	if err := o.reached("filled"); err != nil {
		return err
	}
	if _, err := os.Stat(a.path(SandboxFile)); errors.Is(err, fs.ErrNotExist) {
		names = append(names, SandboxFile)
	}
	names = append(names, JoinsFolder)
	if err := os.RemoveAll(a.path(JoinsFolder)); err != nil { // of an attempt that was interrupted
		return err
	}
	for _, name := range names {
		err := os.Rename(filepath.Join(staging, name), a.path(name))
		if err != nil && !((name == SandboxFile || name == JoinsFolder) && errors.Is(err, fs.ErrNotExist)) {
			return err
		}
		if err := o.reached("placed " + name); err != nil {
			return err
		}
	}
	return syncFolder(a.Settings.Data)
}

// settleRestored does what needs the parts of a server: it pauses, erases and compares, each of which may be done again.
func (a *App) settleRestored(ctx context.Context, report *RestoreReport, erasures []identity.Erasure, o RestoreOptions) (err error) {
	opened, err := Open(ctx, a.Settings)
	if err != nil {
		return err
	}
	defer func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopPartsTime)
		defer cancel()
		err = errors.Join(err, opened.Close(stop))
	}()
	if err := opened.openServing(ctx, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}); err != nil {
		return err
	}
	if !o.Resume {
		if report.Paused, err = opened.pauseAll(ctx); err != nil {
			return err
		}
	}
	if _, refused, err := opened.Catalog.Restore(ctx); err != nil { // the ledger hears of the jump of versions
		return err
	} else if len(refused) > 0 {
		opened.Log.ErrorContext(ctx, "events that the ledger does not take", "count", len(refused), "first", refused[0].Error())
	}
	if report.Erased, err = opened.eraseAgain(ctx, erasures); err != nil {
		return err
	}
	if err := o.reached("erased"); err != nil {
		return err
	}
	if err := opened.compareMoney(ctx, report, o); err != nil {
		return err
	}
	if report.Audit, err = opened.auditRestored(ctx); err != nil {
		return err
	}
	report.Sound = report.Audit.OK()
	if err := o.reached("compared"); err != nil {
		return err
	}
	report.Done = time.Now().UTC().Truncate(time.Second)
	return opened.endRestoring(ctx, o)
}

// endRestoring lets others in. The database's mark goes first: the folder's is what a repeated restore asks.
func (a *App) endRestoring(ctx context.Context, o RestoreOptions) error {
	if err := a.Control.DeleteMeta(ctx, backup.MetaRestoring); err != nil {
		return err
	}
	if err := o.reached("unmarked"); err != nil {
		return err
	}
	if err := os.Remove(a.path(restoringFile)); err != nil {
		return err
	}
	return syncFolder(a.Settings.Data)
}

// pauseAll pauses every event that sells or will: somebody should look first.
func (a *App) pauseAll(ctx context.Context) ([]string, error) {
	paused := []string{}
	q := catalog.Query{Drafts: true, Max: catalog.QueryMax}
	for {
		page, err := a.Catalog.Events(ctx, q)
		if err != nil {
			return nil, err
		}
		for i := range page.Events {
			e := &page.Events[i]
			shown := e.StateAt(time.Now(), 0, false)
			if shown != catalog.OnSale && shown != catalog.Scheduled {
				if shown == catalog.Paused {
					paused = append(paused, e.ID.Text(id.Event)) // before the backup, or by a restore that was interrupted
				}
				continue
			}
			if _, err := a.Catalog.Change(ctx, e.ID, catalog.VerbPause); err != nil {
				return nil, fmt.Errorf("pausing %s: %w", e.ID.Text(id.Event), err)
			}
			paused = append(paused, e.ID.Text(id.Event))
		}
		if page.Next == (catalog.Cursor{}) {
			return paused, nil
		}
		q.After = page.Next
	}
}

// eraseAgain erases everybody on the backup's own list and on those given.
func (a *App) eraseAgain(ctx context.Context, given []identity.Erasure) (int, error) {
	own, err := a.Control.People().Erasures(ctx)
	if err != nil {
		return 0, err
	}
	s, err := a.openPeople(ctx, noMail{})
	if err != nil {
		return 0, err
	}
	n, err := s.EraseAgain(ctx, append(own, given...))
	if err != nil {
		return n, err
	}
	all, err := a.Control.People().Erasures(ctx)
	if err != nil {
		return 0, err
	}
	return len(all), a.keepErasures(ctx)
}

// auditRestored recomputes the promises from what was restored. Money is compared by compareMoney, which knows that the
// provider's books are newer.
func (a *App) auditRestored(ctx context.Context) (report audit.Report, err error) {
	var source *audit.Source
	if a.Settings.Ledger == Postgres {
		source, err = audit.OpenPostgres(a.Settings.PostgresURL)
	} else {
		source, err = audit.OpenSQLite(a.path(ShardFile))
	}
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	return audit.Run(ctx, source, audit.Options{})
}
