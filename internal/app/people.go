package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"onsale/internal/audit"
	"onsale/internal/guard"
	"onsale/internal/httpapi"
	"onsale/internal/id"
	"onsale/internal/identity"
	"onsale/internal/identity/oidc"
	"onsale/internal/payment"
)

// A SignInProvider is an OpenID Connect provider where people may sign in.
type SignInProvider struct {
	Name         string // in /v1/sign-in/NAME/start
	Issuer       string
	ClientID     string
	ClientSecret string // secret
	Algorithm    string
	TrustEmail   bool
}

// openSignIn opens what people need to sign in: the service that a server runs, and the providers beside it.
func (a *App) openSignIn(ctx context.Context) error {
	s := &a.Settings
	if a.mail = s.Mail; a.mail == nil {
		a.mail = noMail{}
		if s.Demo {
			a.mail = &MemoryMail{}
		}
	}
	var err error
	if a.People, err = a.openPeople(ctx, a.mail); err != nil {
		return err
	}
	a.providers = map[string]httpapi.OIDC{}
	for _, p := range s.Providers {
		made, err := oidc.New(oidc.Options{
			Name: p.Name, Issuer: p.Issuer, ClientID: p.ClientID, ClientSecret: p.ClientSecret, Algorithm: p.Algorithm, TrustEmail: p.TrustEmail,
			RedirectURL: s.PublicURL + "/v1/sign-in/" + p.Name + "/callback", Keys: a.Keys,
		})
		if err != nil {
			return err
		}
		a.providers[p.Name] = made
	}
	return nil
}

// limiter is what says who asks too often; nil where nothing is limited.
func (a *App) limiter() (httpapi.Limiter, error) {
	if a.Settings.Rates == (guard.Settings{}) {
		return nil, nil
	}
	return guard.New(a.Settings.Rates, time.Now())
}

// mailsCodes says whether a one-time code reaches anybody.
func (a *App) mailsCodes() bool {
	_, none := a.mail.(noMail)
	return !none
}

// auditEvent recomputes an event's promises, as onsale audit does.
func (a *App) auditEvent(ctx context.Context, event id.ID) (_ any, ok bool, err error) {
	source, err := a.auditSource()
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	o := audit.Options{Event: event}
	if lister, ok := a.Provider.(payment.Lister); ok {
		o.Provider = lister
	}
	report, err := audit.Run(ctx, source, o)
	return report, report.OK(), err
}

func (a *App) auditSource() (*audit.Source, error) {
	if a.Settings.Ledger == Postgres {
		return audit.OpenPostgres(a.Settings.PostgresURL)
	}
	return audit.OpenSQLite(filepath.Clean(a.path(ShardFile)))
}

// MemoryMailMax is how many mails a MemoryMail keeps.
const MemoryMailMax = 1000

// MemoryMail keeps the last mails of sign-in in memory, for a demo and for tests: nothing of them is logged.
type MemoryMail struct {
	mu      sync.Mutex
	codes   []identity.CodeMail
	invites []identity.InvitationMail
}

// SendCode keeps a code.
func (m *MemoryMail) SendCode(_ context.Context, c identity.CodeMail) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.codes = append(m.codes[max(0, len(m.codes)-MemoryMailMax+1):], c)
	return nil
}

// SendInvitation keeps an invitation.
func (m *MemoryMail) SendInvitation(_ context.Context, i identity.InvitationMail) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.invites = append(m.invites[max(0, len(m.invites)-MemoryMailMax+1):], i)
	return nil
}

// Code is the last code that went to an address.
func (m *MemoryMail) Code(to identity.Email) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := len(m.codes) - 1; i >= 0; i-- {
		if m.codes[i].To == to {
			return m.codes[i].Code, nil
		}
	}
	return "", fmt.Errorf("no code was sent to this address")
}
