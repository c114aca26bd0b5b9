package audit

import (
	"slices"

	"onsale/internal/waitingroom"
)

// Faults of waiting rooms: in the shard, and in the log of joins.

const (
	ofLine   = ` WHERE event_id = {line} AND `
	lastCall = ` WHERE call_id = (SELECT max(call_id) FROM #room_calls WHERE event_id = {line} AND lane = 'general')`
)

var lineFaults = []fault{
	{name: "a watermark that jumps", want: "I10", sql: `UPDATE #room_calls SET was = was + 1` + lastCall},
	{name: "a watermark that stands", want: "I10 room references", sql: `UPDATE #room_calls SET watermark = was` + lastCall + `; DELETE FROM #sessions WHERE session_id = {tails}; UPDATE #holds SET session_id = 0, offer_id = 1 WHERE hold_id = {tailh}`},
	{name: "a call before the draw", want: "I10", sql: `UPDATE #room_calls SET at = at - 5000 WHERE call_id = (SELECT min(call_id) FROM #room_calls)`},
	{name: "calls in a room that is paused", want: "I10", sql: `UPDATE #room_rules SET paused = 1 WHERE rule_id = (SELECT min(rule_id) FROM #room_rules)`},
	{name: "calls in a room that is closed", want: "I10", sql: `UPDATE #room_rules SET closed = 1 WHERE rule_id = (SELECT min(rule_id) FROM #room_rules)`},
	{name: "an entry before the call", want: "I10", sql: `UPDATE #sessions SET entered_at = entered_at - 12000 WHERE session_id = {gs}`},
	{name: "an entry of somebody who was never called", want: "I10 draw", sql: `UPDATE #sessions SET position = 100 WHERE session_id = {fs}`},
	{name: "four in a second of three", want: "I10", sql: `UPDATE #sessions SET entered_at = (SELECT entered_at FROM #sessions WHERE session_id = {as}) WHERE session_id = {fs}`},
	{name: "five inside where four may be", want: "I10", sql: `UPDATE #sessions SET ended_at = ended_at + 500 WHERE session_id = {ds}`},
	{name: "a number that came in twice", want: "I10",
		sql: `DROP INDEX #sessions_number; INSERT INTO #sessions (session_id, event_id, customer_id, lane, number, position, entered_at, expires_at, ended_at, why)
		      SELECT 5, event_id, customer_id, lane, number, position, entered_at + 1000, expires_at, entered_at + 1000, 'left' FROM #sessions WHERE session_id = {ds}`},
	{name: "a number that was never given out", want: "I10 room", sql: `UPDATE #rooms SET body = replace(body, '"figures":[11,', '"figures":[6,')` + ofLine + `1 = 1`},
	{name: "a number of somebody else", want: "I10", sql: `UPDATE #sessions SET customer_id = {bc} WHERE session_id = {ds}`},
	{name: "a number of two people", want: "I10", joins: func(w *world, l []waitingroom.Record) []waitingroom.Record {
		r := l[len(l)-1]
		r.Customer = 77
		return append(l, r)
	}},
	{name: "two numbers of somebody", want: "I10", joins: func(w *world, l []waitingroom.Record) []waitingroom.Record {
		r := l[1]
		r.Lane, r.Number, r.Drawn = 1, 8, false
		return append(l, r)
	}},
	{name: "an entry of somebody who never joined", want: "I10", joins: func(w *world, l []waitingroom.Record) []waitingroom.Record { return l[:len(l)-1] }},
	{name: "a number beyond the mark", want: "I10", joins: func(w *world, l []waitingroom.Record) []waitingroom.Record {
		r := l[0]
		r.Customer, r.Number, r.Drawn, r.At = 77, 99, false, r.At-100_000
		return append(l, r)
	}},

	{name: "a hold without a session", want: "I11", sql: `UPDATE #holds SET session_id = 0 WHERE hold_id = {insideh}`},
	{name: "a hold in another's session", want: "I11", sql: `UPDATE #holds SET session_id = {fs} WHERE hold_id = {kepth}`},
	{name: "a hold in a session that had ended", want: "I11 limits", sql: `UPDATE #holds SET session_id = {ds}, customer_id = {dc} WHERE hold_id = {stoodh}`},
	{name: "a hold in a session that had run out", want: "I11", sql: `UPDATE #sessions SET expires_at = entered_at + 1 WHERE session_id = {es}`},
	{name: "a hold in a session that began later", want: "I11", sql: `UPDATE #sessions SET entered_at = entered_at + 20000 WHERE session_id = {es}`},
	{name: "a hold in no session that there is", want: "I11 references", sql: `UPDATE #holds SET session_id = 12345 WHERE hold_id = {kepth}`},
	{name: "a hold without a session while the room was on", want: "I11", sql: `UPDATE #room_rules SET mode = 1 WHERE mode = 0`},

	{name: "another K", want: "draw", sql: `UPDATE #rooms SET body = replace(body, '"k":"00', '"k":"11')`},
	{name: "no K", want: "draw", sql: `UPDATE #rooms SET body = replace(body, '"k":"00', '"k":"')`},
	{name: "another public value", want: "draw", sql: `UPDATE #rooms SET body = replace(body, '"k":"00', '"value":"7 11 13","k":"00')`},
	{name: "provable without a value", want: "draw", sql: `UPDATE #rooms SET body = replace(body, '"k":"00', '"provable":true,"k":"00')`},
	{name: "no hash of the list", want: "draw", sql: `UPDATE #rooms SET body = replace(body, '"list":"', '"list":"x')`},
	{name: "people in another order", want: "draw", sql: `UPDATE #sessions SET position = 3 - position WHERE session_id IN ({ds}, {es}, {fs}, {gs})`},
	{name: "somebody of the tail in front", want: "draw", sql: `UPDATE #sessions SET position = 5 WHERE session_id = {tails}`},
	{name: "somebody who joined and is not in the list", want: "draw", joins: func(w *world, l []waitingroom.Record) []waitingroom.Record {
		return slices.Delete(l, 1, 2)
	}},
	{name: "an entry of the list that was changed", want: "draw", joins: func(w *world, l []waitingroom.Record) []waitingroom.Record {
		l[1].Entry[0]++
		return l
	}},
	{name: "a ticket of the tail that says drawn", want: "draw", joins: func(w *world, l []waitingroom.Record) []waitingroom.Record {
		l[len(l)-1].Drawn = true
		return l
	}},

	{name: "somebody inside whom the room does not know", want: "room", sql: `UPDATE #sessions SET ended_at = entered_at + 9000, why = 'left' WHERE session_id = {fs}`},
	{name: "somebody who came in and is gone", want: "room", sql: `DELETE FROM #sessions WHERE session_id = {gs}`},
	{name: "a call that the room does not know", want: "room", sql: `UPDATE #room_calls SET watermark = watermark + 1` + lastCall},
	{name: "rules gone", want: "I10 room", sql: `DELETE FROM #room_rules WHERE event_id = {line}`},
	{name: "another rule than the event's", want: "room", sql: `UPDATE #room_rules SET active_max = 7 WHERE rule_id = (SELECT max(rule_id) FROM #room_rules)`},
	{name: "rules out of order", want: "room references", sql: `UPDATE #room_rules SET at = at - 5000 WHERE rule_id = (SELECT max(rule_id) FROM #room_rules); UPDATE #holds SET offer_id = 1 WHERE hold_id = {openh}`},
	{name: "an end without a reason", want: "room", sql: `UPDATE #sessions SET why = '' WHERE session_id = {ds}`},
	{name: "a session that ran out too early", want: "room", sql: `UPDATE #sessions SET why = 'expired' WHERE session_id = {ds}`},
	{name: "a room that cannot be read", want: "room references", sql: `UPDATE #rooms SET body = 'x'` + ofLine + `1 = 1`},
	{name: "a room of no event", want: "draw room references", sql: `UPDATE #rooms SET event_id = 12345` + ofLine + `1 = 1`},
	{name: "a code used too often", want: "room",
		sql: `INSERT INTO #code_uses (event_id, lane, code, number, customer_id, max, at) SELECT event_id, lane, code, 3, {tailc}, max, at FROM #code_uses WHERE number = 1`},
	{name: "a code counted twice for somebody", want: "room", sql: `DROP INDEX #code_uses_customer; UPDATE #code_uses SET customer_id = {ac}`},
	{name: "a use of a code gone", want: "room", sql: `DELETE FROM #code_uses WHERE number = 1`},

	{name: "a number given up, and another one", joins: func(w *world, l []waitingroom.Record) []waitingroom.Record {
		left, again := l[1], l[1]
		left.Left = true
		again.Lane, again.Number, again.Drawn = 1, 9, false
		return append(l, left, again)
	}},
	{name: "a join after the audit began", joins: func(w *world, l []waitingroom.Record) []waitingroom.Record {
		r := l[0]
		r.Customer, r.Number, r.Drawn, r.At = 77, 99, false, int64(*w.clock)
		return append(l, r)
	}},
}
