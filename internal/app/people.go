package app

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"onsale/internal/audit"
	"onsale/internal/guard"
	"onsale/internal/httpapi"
	"onsale/internal/id"
	"onsale/internal/identity"
	"onsale/internal/identity/oidc"
	"onsale/internal/ledger"
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
	if err := a.openMail(); err != nil {
		return err
	}
	var sender identity.Sender = noMail{}
	if a.desk != nil {
		sender = a.desk
	}
	var err error
	if a.People, err = a.openPeople(ctx, sender); err != nil {
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

// writeToPeople sends codes, invitations and other mails until ctx ends; then for a moment what still waits. The desk stops
// last: People hands it what it sends.
func (a *App) writeToPeople(ctx context.Context) {
	if a.desk == nil {
		a.People.Run(ctx)
		return
	}
	a.desk.Start()
	defer a.desk.Stop()
	a.People.Run(ctx)
}

// forgetNames removes the attendees of bookings that came to nothing: they were kept for who comes in.
func (a *App) forgetNames(ctx context.Context, n ledger.Notice) error {
	if n.Kind != ledger.NoticeFailed && n.Kind != ledger.NoticeExpired {
		return nil
	}
	return a.People.DropAttendees(ctx, n.Order)
}

// limiter is what says who asks too often; nil where nothing is limited.
func (a *App) limiter() (httpapi.Limiter, error) {
	if a.Settings.Rates == (guard.Settings{}) {
		return nil, nil
	}
	l, err := guard.New(a.Settings.Rates, time.Now())
	if err != nil {
		return nil, err
	}
	common, err := a.common()
	if err != nil {
		return nil, err
	}
	common.limit(l)
	return l, nil
}

// auditEvent recomputes an event's promises, as onsale audit does.
func (a *App) auditEvent(ctx context.Context, event id.ID) (_ any, ok bool, err error) {
	source, err := a.auditSource()
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	joins, closeJoins := AuditJoins(a.Settings.Ledger, a.Settings.Data, source)
	defer func() { err = errors.Join(err, closeJoins()) }()
	o := audit.Options{Event: event, Joins: joins}
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
