package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrNoHouse says that a data folder has nothing of Onsale in it.
var ErrNoHouse = errors.New("there is nothing of Onsale here")

// CheckHouse refuses a data folder in which nothing was ever begun: whoever looks at one, or works on one, has the wrong
// folder, and should not be shown an empty house. With PostgreSQL the folder says nothing, and nil is answered.
func CheckHouse(s Settings) error {
	if s.Ledger == Postgres {
		return nil
	}
	_, err := os.Stat(filepath.Join(s.Data, controlFile))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s; name the folder with --data, or the file that names it with --config (onsale serve, onsale event import and onsale organizer add begin one)", ErrNoHouse, s.Data)
	}
	return err
}
