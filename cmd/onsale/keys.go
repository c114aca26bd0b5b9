package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/alecthomas/kong"

	"onsale/internal/app"
)

// KeysCmd is `onsale keys`: what signs tickets and webhooks and hashes what must not be read. It works on a running server
// through the data folder's socket, else on the folder itself.
type KeysCmd struct {
	List   keysList   `cmd:"" help:"List all keys, without their secrets."`
	Rotate keysRotate `cmd:"" help:"Make new keys. What the old ones signed stays good."`
}

type keysList struct{ configFlags }

type keysRotate struct {
	Purpose string `default:"all" placeholder:"P" help:"Only this one, as onsale keys list shows it; else all that can be rotated (pepper and idempotency cannot: what they hashed could not be found again)."`
	configFlags
}

// Run lists the keys.
func (c *keysList) Run(ctx context.Context, k *kong.Context) error {
	var all []app.AdminKey
	if err := c.call(ctx, "GET", "/keys", nil, &all); err != nil {
		return err
	}
	return printKeys(k.Stdout, all)
}

// Run makes new keys.
func (c *keysRotate) Run(ctx context.Context, k *kong.Context) error {
	purpose := c.Purpose
	switch purpose {
	case "": // an empty variable of a script, perhaps
		return errors.New("--purpose is empty: name one, as onsale keys list shows it, or leave it out")
	case "all":
		purpose = ""
	}
	var all []app.AdminKey
	if err := c.call(ctx, "POST", "/keys/rotate", app.RotateRequest{Purpose: purpose}, &all); err != nil {
		return err
	}
	return printKeys(k.Stdout, all)
}

func printKeys(w io.Writer, all []app.AdminKey) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, key := range all {
		does := map[string]string{"active": "signs and checks", "public": "checks what it signed before", "retired": "nothing"}[key.State]
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", key.KID, key.Purpose, key.State, key.Created.Format("2006-01-02 15:04 MST"), does)
	}
	return t.Flush()
}
