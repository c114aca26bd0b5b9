// Package waitingroom lets people wait for an event, and in again at the rate that the ledger bears, in an order that
// everybody can check.
//
// The one idea: who waits costs nothing. A number is taken once and stands on a signed queue ticket; a position is computed
// from it (package draw); and one public status, the same for all, says how far the line has been called. What must be exact
// (phase, N, key, watermark, entries, sessions, codes) is the ledger's; what the Store here keeps can be lost.
//
// Start reading at Service (service.go): Join (join.go) gives a number, Place (claim.go) says how it stands, Claim enters,
// Admit is the gate's filter. Run (worker.go) makes the rooms go on: opening.go opens them, mend.go mends a store that has lost
// something. Store and Log (store.go) are the ports; the ledger's side is in ledger/room.go.
package waitingroom
