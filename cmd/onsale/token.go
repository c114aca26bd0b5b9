package main

import (
	"fmt"
	"os"
	"time"

	"github.com/alecthomas/kong"

	"onsale/internal/identity"
)

// TokenCmd is `onsale token`: a customer's bearer token of the throw-away issuer of a demo.
type TokenCmd struct {
	Customer string        `default:"somebody" help:"Who the customer is; the same name is the same customer."`
	TTL      time.Duration `default:"12h" help:"How long the token is good."`
	Data     string        `default:"data/demo" help:"The demo's data folder." type:"path"`
}

// Run prints the token alone.
func (c *TokenCmd) Run(k *kong.Context) error {
	if _, err := os.Stat(c.Data); err != nil {
		return fmt.Errorf("%w: make run, or onsale serve --demo, makes the demo's folder; name it with --data", err)
	}
	issuer, err := identity.LoadThrowaway(c.Data)
	if err != nil {
		return err
	}
	token, err := issuer.Mint(c.Customer, time.Now(), c.TTL)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(k.Stdout, token)
	return err
}
