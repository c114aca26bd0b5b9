package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"onsale/internal/id"
	"onsale/internal/waitingroom"
	"onsale/internal/waitingroom/joinlog"
)

// gatherJoins copies the log of joins, where there is one, each file as it is at one instant. Files are only ever added to:
// what was being written meanwhile is cut off when the copy is opened, as after a crash. Each copy is read, so that damage is
// found now.
func gatherJoins(ctx context.Context, m *Manifest, scratch string, o Options) error {
	folder := filepath.Join(o.Data, JoinsPart)
	events, err := joinlog.Events(folder)
	if err != nil || len(events) == 0 {
		return err
	}
	into := filepath.Join(scratch, JoinsPart)
	if err := os.Mkdir(into, 0o700); err != nil {
		return err
	}
	for _, event := range events {
		if err := ctx.Err(); err != nil {
			return err
		}
		name := event.Text(id.Event) + joinlog.Suffix
		part := Part{Name: JoinsPart + "/" + name, At: instant(o.Now())}
		if err := copyFile(filepath.Join(folder, name), filepath.Join(into, name)); err != nil {
			return fmt.Errorf("copying %s: %w", part.Name, err)
		}
		count := int64(0)
		copied := joinlog.OpenRead(into)
		err := copied.Replay(ctx, event, false, func(waitingroom.Record) error { count++; return nil })
		if err = errors.Join(err, copied.Close()); err != nil {
			return err
		}
		part.Rows = map[string]int64{"records": count}
		m.Parts = append(m.Parts, part)
	}
	o.reached(JoinsPart)
	return nil
}

// copyFile copies as much of a file as it has at the beginning.
func copyFile(path, into string) (err error) {
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	info, err := from.Stat()
	if err != nil {
		return err
	}
	to, err := os.OpenFile(into, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	_, err = io.Copy(to, io.LimitReader(from, info.Size()))
	return err
}
