package httpapi

import (
	"net/http"
	"time"

	"onsale/internal/fault"
	"onsale/internal/id"
	"onsale/internal/identity"
	"onsale/internal/outbox/webhook"
)

// A WebhookEndpoint is where an organizer's own system is told what happens.
type WebhookEndpoint struct {
	ID      string    `json:"endpoint_id"`
	URL     string    `json:"url"`
	Kinds   []string  `json:"kinds" doc:"what it is told; none: all but those of the inner workings"`
	On      bool      `json:"on"`
	Created time.Time `json:"created_at"`
	Waiting int       `json:"waiting_count"`
	Dead    int       `json:"dead_count" doc:"given up after three days; they can be replayed"`
	Secret  string    `json:"secret,omitempty" doc:"checks the signatures (Standard Webhooks); shown once, when it is made"`
}

// WebhookEndpointList are an organizer's.
type WebhookEndpointList struct {
	Endpoints []WebhookEndpoint `json:"endpoints"`
}

// A WebhookEndpointEdit makes an endpoint, or changes what is there.
type WebhookEndpointEdit struct {
	URL   *string   `json:"url,omitempty" doc:"https, a public address"`
	Kinds *[]string `json:"kinds,omitempty"`
	On    *bool     `json:"on,omitempty"`
}

// A WebhookDelivery is one message to an endpoint.
type WebhookDelivery struct {
	Message string    `json:"message_id" doc:"the webhook-id that the receiver sees, the same in every try"`
	Kind    string    `json:"kind"`
	State   string    `json:"state" enum:"due,ended,dead"`
	Tries   int       `json:"try_count"`
	Status  int       `json:"last_status,omitempty"`
	Last    string    `json:"last_error,omitempty"`
	Created time.Time `json:"created_at"`
	Due     time.Time `json:"due_at" doc:"of one that ended or is dead: since when"`
}

// WebhookDeliveryList are the newest.
type WebhookDeliveryList struct {
	Deliveries []WebhookDelivery `json:"deliveries"`
}

// A WebhookReplay says what to deliver again: one of them.
type WebhookReplay struct {
	Message string `json:"message_id,omitempty"`
	Dead    bool   `json:"dead,omitempty" doc:"all that were given up"`
	Since   string `json:"since,omitempty" doc:"all made since this time, delivered or not"`
}

// WebhookReplayed says how many.
type WebhookReplayed struct {
	Count int `json:"replayed_count"`
}

const (
	endpointPath   = organizerPath + "/webhooks/{endpoint_id}"
	deliveriesPage = 200
)

func (a *api) endpointRoutes() []route {
	const tag = "Organizers"
	look, do := atLeast(identity.Operator, "organizer_id"), atLeast(identity.Owner, "organizer_id")
	none := []fault.Code{fault.NotFound}
	return []route{
		{Method: "GET", Path: organizerPath + "/webhooks", ID: "endpoints_list", Who: look, Tag: tag, Summary: "Webhooks to your own systems", Answer: WebhookEndpointList{}, handle: a.endpointsList},
		{Method: "POST", Path: organizerPath + "/webhooks", ID: "endpoint_make", Who: do, Tag: tag, Summary: "Be told what happens",
			Notes: "An address is there once, so a repeat makes no second one. The secret is in this answer only.", Body: WebhookEndpointEdit{}, Answer: WebhookEndpoint{}, Status: []int{201},
			Faults: []fault.Code{fault.Invalid, fault.Conflict}, handle: a.endpointMake},
		{Method: "PATCH", Path: endpointPath, ID: "endpoint_change", Who: do, Tag: tag, Summary: "Change a webhook, or turn it off and on",
			Body: WebhookEndpointEdit{}, Answer: WebhookEndpoint{}, Faults: []fault.Code{fault.Invalid, fault.Conflict}, handle: a.endpointChange},
		{Method: "DELETE", Path: endpointPath, ID: "endpoint_remove", Who: do, Tag: tag, Summary: "Remove a webhook with all its messages", Answer: WebhookEndpointList{}, handle: a.endpointRemove},
		{Method: "POST", Path: endpointPath + "/rotate", ID: "endpoint_rotate", Who: do, Tag: tag, Summary: "Make a new secret", Notes: "The old one signs, too, for a day.",
			Answer: WebhookEndpoint{}, Faults: none, handle: a.endpointRotate},
		{Method: "GET", Path: endpointPath + "/deliveries", ID: "deliveries_list", Who: look, Tag: tag, Summary: "What was sent, the newest",
			Query: []parameter{{"state", "due, ended or dead", "string"}}, Answer: WebhookDeliveryList{}, Faults: []fault.Code{fault.Invalid}, handle: a.deliveriesList},
		{Method: "POST", Path: endpointPath + "/replay", ID: "deliveries_replay", Who: look, Tag: tag, Summary: "Send again",
			Notes: "Byte by byte as it was, with the same message_id: a receiver that has it already knows it.", Body: WebhookReplay{}, Answer: WebhookReplayed{},
			Faults: []fault.Code{fault.Invalid}, handle: a.deliveriesReplay},
	}
}

var errNoEndpoints = fault.New(fault.NotFound, "no webhooks are sent from here")

func showEndpoint(e *webhook.Endpoint, c webhook.Counts) WebhookEndpoint {
	shown := WebhookEndpoint{ID: e.ID.Text(webhook.Prefix), URL: e.URL, Kinds: e.Kinds, On: e.On, Created: e.Created, Waiting: c.Waiting, Dead: c.Dead}
	if shown.Kinds == nil {
		shown.Kinds = []string{}
	}
	return shown
}

func (a *api) endpointsList(w http.ResponseWriter, r *request) error {
	if a.Endpoints == nil {
		return errNoEndpoints
	}
	all, counts, err := a.Endpoints.List(r.Context(), r.organizer)
	if err != nil {
		return err
	}
	list := WebhookEndpointList{Endpoints: []WebhookEndpoint{}}
	for i := range all {
		list.Endpoints = append(list.Endpoints, showEndpoint(&all[i], counts[i]))
	}
	return write(w, http.StatusOK, list)
}

func (a *api) endpointMake(w http.ResponseWriter, r *request) error {
	var body WebhookEndpointEdit
	if _, err := read(w, r, &body); err != nil {
		return err
	}
	if a.Endpoints == nil {
		return errNoEndpoints
	}
	var url string
	var kinds []string
	set(&url, body.URL)
	set(&kinds, body.Kinds)
	if body.On != nil && !*body.On {
		return &fault.Error{Code: fault.Invalid, Field: "on", Detail: "a new one is on"}
	}
	e, secret, err := a.Endpoints.Add(r.Context(), r.organizer, url, kinds)
	if err != nil {
		return err
	}
	shown := showEndpoint(&e, webhook.Counts{})
	shown.Secret = secret
	a.record(r, "webhook.make", shown.ID, nil)
	return write(w, http.StatusCreated, shown)
}

// endpointOf is the endpoint that the path names; the service looks whose it is.
func (a *api) endpointOf(r *request) (id.ID, error) {
	if a.Endpoints == nil {
		return 0, errNoEndpoints
	}
	number, err := id.Parse(webhook.Prefix, r.PathValue("endpoint_id"))
	if err != nil {
		return 0, fault.New(fault.NotFound, "")
	}
	return number, nil
}

func (a *api) endpointChange(w http.ResponseWriter, r *request) error {
	var body WebhookEndpointEdit
	if _, err := read(w, r, &body); err != nil {
		return err
	}
	number, err := a.endpointOf(r)
	if err != nil {
		return err
	}
	e, err := a.Endpoints.Get(r.Context(), r.organizer, number)
	if err != nil {
		return err
	}
	set(&e.URL, body.URL)
	set(&e.Kinds, body.Kinds)
	set(&e.On, body.On)
	if e, err = a.Endpoints.Change(r.Context(), r.organizer, number, e.URL, e.Kinds, e.On); err != nil {
		return err
	}
	a.record(r, "webhook.change", number.Text(webhook.Prefix), nil)
	return write(w, http.StatusOK, showEndpoint(&e, webhook.Counts{}))
}

func (a *api) endpointRemove(w http.ResponseWriter, r *request) error {
	number, err := a.endpointOf(r)
	if err != nil {
		return err
	}
	if err := a.Endpoints.Remove(r.Context(), r.organizer, number); err != nil {
		return err
	}
	a.record(r, "webhook.remove", number.Text(webhook.Prefix), nil)
	return a.endpointsList(w, r)
}

func (a *api) endpointRotate(w http.ResponseWriter, r *request) error {
	number, err := a.endpointOf(r)
	if err != nil {
		return err
	}
	secret, err := a.Endpoints.Rotate(r.Context(), r.organizer, number)
	if err != nil {
		return err
	}
	a.record(r, "webhook.rotate", number.Text(webhook.Prefix), nil)
	e, err := a.Endpoints.Get(r.Context(), r.organizer, number)
	if err != nil {
		return err
	}
	shown := showEndpoint(&e, webhook.Counts{})
	shown.Secret = secret
	return write(w, http.StatusOK, shown)
}

func (a *api) deliveriesList(w http.ResponseWriter, r *request) error {
	asked, err := parameters(r)
	if err != nil {
		return err
	}
	number, err := a.endpointOf(r)
	if err != nil {
		return err
	}
	all, err := a.Endpoints.Deliveries(r.Context(), r.organizer, number, asked.Get("state"), deliveriesPage)
	if err != nil {
		return err
	}
	list := WebhookDeliveryList{Deliveries: []WebhookDelivery{}}
	for _, d := range all {
		list.Deliveries = append(list.Deliveries, WebhookDelivery{d.Message, d.Kind, d.State, d.Tries, d.Status, d.Last, d.Created, d.Due})
	}
	return write(w, http.StatusOK, list)
}

func (a *api) deliveriesReplay(w http.ResponseWriter, r *request) error {
	var body WebhookReplay
	if _, err := read(w, r, &body); err != nil {
		return err
	}
	number, err := a.endpointOf(r)
	if err != nil {
		return err
	}
	replay := webhook.Replay{Message: body.Message, Dead: body.Dead}
	if body.Since != "" {
		if replay.Since, err = time.Parse(time.RFC3339, body.Since); err != nil {
			return &fault.Error{Code: fault.Invalid, Field: "since", Detail: "a time as 2026-05-01T20:00:00+02:00", Cause: err}
		}
	}
	count, err := a.Endpoints.Replay(r.Context(), r.organizer, number, replay)
	if err != nil {
		return err
	}
	a.record(r, "webhook.replay", number.Text(webhook.Prefix), nil)
	return write(w, http.StatusOK, WebhookReplayed{count})
}
