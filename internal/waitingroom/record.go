package waitingroom

import (
	"onsale/internal/fault"
	"onsale/internal/ledger"
)

// CheckRecords refuses what no Log can keep: Append answers invalid, and nothing of it is appended.
func CheckRecords(records []Record) error {
	for i := range records {
		switch r := &records[i]; {
		case r.Event <= 0 || r.Customer <= 0:
			return fault.New(fault.Invalid, "a join without an event or a customer")
		case r.Lane < 0 || r.Lane >= ledger.RoomLanesMax:
			return fault.New(fault.Invalid, "a join of lane %d", r.Lane)
		case r.Number < 0 || r.Number >= ledger.RoomNumbersMax:
			return fault.New(fault.Invalid, "a join with the number %d", r.Number)
		}
	}
	return nil
}
