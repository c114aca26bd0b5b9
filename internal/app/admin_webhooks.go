package app

import (
	"context"
	"crypto/rand"
	"net/http"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/keys"
	"onsale/internal/outbox/webhook"
)

// An AdminWebhook is an endpoint as commands show it. Secret is only there when it was just made.
type AdminWebhook struct {
	ID      string    `json:"endpoint_id"`
	URL     string    `json:"url"`
	Kinds   []string  `json:"kinds,omitempty"`
	On      bool      `json:"on"`
	Waiting int       `json:"waiting_count"`
	Dead    int       `json:"dead_count"`
	Created time.Time `json:"created_at"`
	Secret  string    `json:"secret,omitempty"`
}

// An AdminDelivery is a message to an endpoint as commands show it.
type AdminDelivery struct {
	Endpoint string    `json:"endpoint_id"`
	Message  string    `json:"message_id"`
	Kind     string    `json:"type"`
	Tries    int       `json:"try_count"`
	Status   int       `json:"status"`
	Last     string    `json:"last_error,omitempty"`
	Created  time.Time `json:"created_at"`
}

// WebhookRequest asks for an endpoint, or for a replay.
type WebhookRequest struct {
	Organizer string    `json:"organizer,omitempty"` // its key; "" is the house
	URL       string    `json:"url,omitempty"`
	Kinds     []string  `json:"kinds,omitempty"`
	Message   string    `json:"message_id,omitempty"`
	Dead      bool      `json:"dead,omitempty"`
	Since     time.Time `json:"since,omitzero"`
}

// webhookSealer seals the secrets of endpoints with the master key, each for its endpoint's name.
type webhookSealer struct{ master keys.Master }

func (s webhookSealer) Seal(name string, secret []byte) ([]byte, error) {
	return s.master.Seal(rand.Reader, name, keys.Webhook, secret)
}

func (s webhookSealer) Open(name string, sealed []byte) ([]byte, error) {
	return s.master.Open(name, keys.Webhook, sealed)
}

// webhookService is what commands and the API call. wake may be nil: a running server looks once a second anyway.
func (a *App) webhookService(wake func()) (*webhook.Service, error) {
	master, err := a.master()
	if err != nil {
		return nil, err
	}
	return webhook.NewService(a.Control.Webhooks(), webhookSealer{master}, a.NewID, a.Settings.WebhooksAllowed, nil, wake), nil
}

// adminWebhooks adds what onsale webhook calls.
func (a *App) adminWebhooks(mux *http.ServeMux) {
	for pattern, do := range map[string]func(webhookCall) (any, error){
		"POST /webhooks/list":              webhookCall.list,
		"POST /webhooks/add":               webhookCall.add,
		"POST /webhooks/{endpoint}/remove": webhookCall.remove,
		"POST /webhooks/{endpoint}/on":     func(c webhookCall) (any, error) { return c.turn(true) },
		"POST /webhooks/{endpoint}/off":    func(c webhookCall) (any, error) { return c.turn(false) },
		"POST /webhooks/{endpoint}/rotate": webhookCall.rotate,
		"POST /webhooks/{endpoint}/dead":   webhookCall.dead,
		"POST /webhooks/{endpoint}/replay": webhookCall.replay,
	} {
		mux.HandleFunc(pattern, a.admin(func(r *http.Request) (any, error) {
			c, err := a.webhookCall(r)
			if err != nil {
				return nil, err
			}
			return do(c)
		}))
	}
}

// A webhookCall is one request, read.
type webhookCall struct {
	app       *App
	ctx       context.Context
	service   *webhook.Service
	organizer id.ID
	endpoint  id.ID
	in        WebhookRequest
}

func (a *App) webhookCall(r *http.Request) (c webhookCall, err error) {
	c.app, c.ctx = a, r.Context()
	if err := readBody(r, &c.in); err != nil {
		return c, err
	}
	if text := r.PathValue("endpoint"); text != "" {
		if c.endpoint, err = id.Parse(webhook.Prefix, text); err != nil {
			return c, fault.New(fault.NotFound, "%q is not a webhook's id; see onsale webhook list", text)
		}
	}
	organizer, err := a.organizerOrHouse(c.ctx, c.in.Organizer)
	if err != nil {
		return c, err
	}
	c.organizer = organizer.ID
	c.service, err = a.webhookService(nil)
	return c, err
}

func shown(e *webhook.Endpoint) AdminWebhook {
	return AdminWebhook{ID: e.ID.Text(webhook.Prefix), URL: e.URL, Kinds: e.Kinds, On: e.On, Created: e.Created}
}

// logged writes what was done to an endpoint into the audit log, unless it was refused.
func (c webhookCall) logged(action string, endpoint id.ID, err error) {
	if err == nil {
		c.app.logged(c.ctx, c.organizer, action, endpoint.Text(webhook.Prefix))
	}
}

func (c webhookCall) list() (any, error) {
	all, counts, err := c.service.List(c.ctx, c.organizer)
	if err != nil {
		return nil, err
	}
	list := []AdminWebhook{}
	for i := range all {
		one := shown(&all[i])
		one.Waiting, one.Dead = counts[i].Waiting, counts[i].Dead
		list = append(list, one)
	}
	return list, nil
}

func (c webhookCall) add() (any, error) {
	e, secret, err := c.service.Add(c.ctx, c.organizer, c.in.URL, c.in.Kinds)
	c.logged("webhook.make", e.ID, err)
	one := shown(&e)
	one.Secret = secret
	return one, err
}

func (c webhookCall) remove() (any, error) {
	err := c.service.Remove(c.ctx, c.organizer, c.endpoint)
	c.logged("webhook.remove", c.endpoint, err)
	return struct{}{}, err
}

func (c webhookCall) turn(on bool) (any, error) {
	e, err := c.service.Get(c.ctx, c.organizer, c.endpoint)
	if err != nil {
		return nil, err
	}
	e, err = c.service.Change(c.ctx, c.organizer, c.endpoint, e.URL, e.Kinds, on)
	c.logged("webhook.change", c.endpoint, err)
	return shown(&e), err
}

func (c webhookCall) rotate() (any, error) {
	e, err := c.service.Get(c.ctx, c.organizer, c.endpoint)
	if err != nil {
		return nil, err
	}
	one := shown(&e)
	one.Secret, err = c.service.Rotate(c.ctx, c.organizer, c.endpoint)
	c.logged("webhook.rotate", c.endpoint, err)
	return one, err
}

func (c webhookCall) dead() (any, error) {
	all, err := c.service.Deliveries(c.ctx, c.organizer, c.endpoint, webhook.Dead, webhook.ListMax)
	if err != nil {
		return nil, err
	}
	list := []AdminDelivery{}
	for i := range all {
		d := &all[i]
		list = append(list, AdminDelivery{
			Endpoint: d.Endpoint.Text(webhook.Prefix), Message: d.Message, Kind: d.Kind, Tries: d.Tries, Status: d.Status, Last: d.Last, Created: d.Created,
		})
	}
	return list, nil
}

func (c webhookCall) replay() (any, error) {
	n, err := c.service.Replay(c.ctx, c.organizer, c.endpoint, webhook.Replay{Message: c.in.Message, Dead: c.in.Dead, Since: c.in.Since})
	c.logged("webhook.replay", c.endpoint, err)
	return n, err
}
