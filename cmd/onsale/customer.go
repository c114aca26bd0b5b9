package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/alecthomas/kong"

	"onsale/internal/app"
)

// CustomerCmd is `onsale customer`: what a person may ask for by law. It works on a running server through the data folder's
// socket, else on the folder itself.
type CustomerCmd struct {
	Export   customerExport   `cmd:"" help:"Everything that is known of a person, as JSON."`
	Erase    customerErase    `cmd:"" help:"Remove what names a person; bookings and money stay under the id."`
	Erasures customerErasures `cmd:"" help:"Who was erased, as JSON: keep it beside the backups, for onsale restore --erasures."`
}

type customerWho struct {
	Who string `arg:"" name:"id-or-email" help:"An e-mail address, or a customer's id (cus_…)."`
}

type customerExport struct {
	customerWho
	configFlags
}

type customerErase struct {
	customerWho
	EvenSo bool `help:"Also somebody who has tickets for events to come, or is paying."`
	configFlags
}

type customerErasures struct{ configFlags }

// Run prints the person's data.
func (c *customerExport) Run(ctx context.Context, k *kong.Context) error {
	var export app.CustomerExport
	if err := c.call(ctx, "POST", "/customers/export", app.CustomerRequest{Who: c.Who}, &export); err != nil {
		return err
	}
	e := json.NewEncoder(k.Stdout)
	e.SetIndent("", "  ")
	return e.Encode(export)
}

// Run erases.
func (c *customerErase) Run(ctx context.Context, k *kong.Context) error {
	var done app.Erased
	if err := c.call(ctx, "POST", "/customers/erase", app.CustomerRequest{Who: c.Who, EvenSo: c.EvenSo}, &done); err != nil {
		return err
	}
	before := ""
	if done.Before {
		before = "was erased before, "
	}
	_, err := fmt.Fprintf(k.Stdout, "%s: %serased at %s. Bookings and money stay under this id.\nBackups made before still have the name: restoring one erases again, from %s.\n",
		done.Customer, before, done.At.Format(time.RFC3339), app.ErasuresFile)
	return err
}

// Run prints the list.
func (c *customerErasures) Run(ctx context.Context, k *kong.Context) error {
	var list app.ErasureList
	if err := c.call(ctx, "GET", "/customers/erasures", nil, &list); err != nil {
		return err
	}
	e := json.NewEncoder(k.Stdout)
	e.SetIndent("", " ")
	return e.Encode(list)
}
