package demo

import "testing"

// The lines of a hold in both versions of their format.
func TestLinesOfAHold(t *testing.T) {
	for text, want := range map[string]*storedHold{
		"[[1],[4,1,0,100,10,7,110],[5,1,0,100,10,7,110]]":   {places: 2, amount: 220, seats: []int32{4, 5}},
		"[[2],[4,1,0,100,10,7,110,1],[5,1,0,100,10,7,110]]": {places: 2, gone: 1, amount: 220, seats: []int32{4, 5}},
		"[]":                             nil,
		"[[3],[4,1,0,100,10,7,110]]":     nil,
		"[[1],[4,1,0,100,10,7,110,1]]":   nil,
		"[[2],[4,1,0,100,10,7,110,0]]":   nil,
		"[[2],[4,1,0,100,10,7]]":         nil,
		"[[1,1],[4,1,0,100,10,7,110]]":   nil,
		"[[2],[4,1,0,100,10,7,110,1,1]]": nil,
	} {
		h := &storedHold{area: -1}
		err := h.parse(text)
		if (err == nil) != (want != nil) {
			t.Errorf("%s: %v", text, err)
		}
		if want != nil && (h.places != want.places || h.gone != want.gone || h.amount != want.amount || len(h.seats) != len(want.seats)) {
			t.Errorf("%s: %+v", text, h)
		}
	}
}
