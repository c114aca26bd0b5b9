package identity

import (
	"encoding/json"
	"time"

	"onsale/internal/id"
)

// A Role is what a customer may do for one organizer (E5). Owner, operator and viewer are in order of power: each may do
// what the next one may. Door is beside them: it may check tickets in and nothing else, which owners and operators may too.
type Role string

// The roles.
const (
	Owner    Role = "owner"    // everything, also people and money
	Operator Role = "operator" // runs sales
	Viewer   Role = "viewer"   // looks
	Door     Role = "door"     // checks in
)

// Roles are all of them, the mightiest first.
var Roles = []Role{Owner, Operator, Viewer, Door}

var power = map[Role]int{Owner: 3, Operator: 2, Viewer: 1}

// Known says whether it is one of Roles.
func (r Role) Known() bool { return r == Door || power[r] > 0 }

// May says whether who has this role may do what needs another.
func (r Role) May(needed Role) bool {
	switch {
	case needed == Door:
		return r == Door || power[r] >= power[Operator]
	case power[needed] == 0:
		return false // no such role: nobody
	}
	return power[r] >= power[needed]
}

// Mighty says whether it has power over a sale: addresses of these get longer codes (E2).
func (r Role) Mighty() bool { return power[r] >= power[Operator] }

// A Membership is a customer's role with an organizer.
type Membership struct {
	Customer  id.ID
	Organizer id.ID
	Role      Role
	Since     time.Time
}

// A Member is a membership with who it is, for the organizer's owners.
type Member struct {
	Membership
	Name   string
	Emails []Email
}

// An Invitation offers a role to whoever signs in with an address.
type Invitation struct {
	ID        id.ID
	Token     Hash
	Organizer id.ID
	Email     Email
	Role      Role
	By        id.ID // the customer who invited, 0 for the operator's command
	Created   time.Time
	Expires   time.Time
}

// An Entry is one change in the audit log.
type Entry struct {
	ID        id.ID
	At        time.Time
	Actor     id.ID  // the customer; 0: the operator's command
	Organizer id.ID  // 0: none, it is the whole program's
	Role      Role   // in which the actor did it; "" for the command
	Action    string // noun.verb, "role.set"
	Target    string // an id as people see it, "evt_…"; "" for the organizer itself
	Details   map[string]string
}

// DetailsText is the details as they are stored: ids and words of ours, never names or addresses (E10).
func (e Entry) DetailsText() (string, error) {
	if len(e.Details) == 0 {
		return "{}", nil
	}
	text, err := json.Marshal(e.Details)
	return string(text), err
}
