package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/alecthomas/kong"

	"onsale/internal/app"
	"onsale/internal/backup"
)

// BackupCmd is `onsale backup`. It only reads, also while a server runs.
type BackupCmd struct {
	File string `arg:"" help:"The file to make, such as backup-2027-05-01.tar.gz; it must not exist."`
	configFlags
}

// Run makes the backup.
func (c *BackupCmd) Run(ctx context.Context, k *kong.Context) error {
	configured, err := c.load(nil)
	if err != nil {
		return err
	}
	s, err := settings(configured)
	if err != nil {
		return err
	}
	if err := app.CheckHouse(s); err != nil {
		return err
	}
	m, err := app.Backup(ctx, s, c.File)
	if err != nil {
		return err
	}
	info, err := os.Stat(c.File)
	if err != nil {
		return err
	}
	fmt.Fprintf(k.Stdout, "%s: %s of %s, %.1f MB, in %v\n", c.File, manifestText(m), m.Kind, float64(info.Size())/1e6, m.Ended.Sub(m.Began))
	for _, p := range m.Parts {
		rows := int64(0)
		for _, n := range p.Rows {
			rows += n
		}
		fmt.Fprintf(k.Stdout, "  %-28s %12d bytes  %10d rows  %s\n", p.Name, p.Bytes, rows, p.At.Format("15:04:05.000"))
	}
	_, err = fmt.Fprint(k.Stdout, "It has names and addresses in it, and NOT the master key: keep both safe, and apart from each other.\n"+
		"Keep "+app.ErasuresFile+" of the data folder with it: who is erased after this backup is named only there.\n")
	return err
}

// manifestText says in a few words what a backup is.
func manifestText(m backup.Manifest) string {
	schemas := ""
	for _, name := range slices.Sorted(maps.Keys(m.Schemas)) {
		schemas += fmt.Sprintf(", %s schema %d", name, m.Schemas[name])
	}
	return fmt.Sprintf("backup %s by %s of %s%s", m.ID, m.Program, m.Began.Format(time.RFC3339), schemas)
}
