package inventory

import "onsale/internal/ledger"

// A lapse is an instant at which a seat may become free by itself. Whether it does is looked up when it comes.
type lapse struct {
	at   ledger.Time
	seat int32
}

// A lapseHeap has the earliest lapse at 0.
type lapseHeap []lapse

func (h *lapseHeap) push(l lapse) {
	*h = append(*h, l)
	s := *h
	for i := len(s) - 1; i > 0; {
		parent := (i - 1) / 2
		if s[parent].at <= s[i].at {
			return
		}
		s[parent], s[i] = s[i], s[parent]
		i = parent
	}
}

func (h *lapseHeap) pop() lapse {
	s := *h
	top, last := s[0], len(s)-1
	s[0] = s[last]
	s = s[:last]
	*h = s
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return top
		}
		if child+1 < last && s[child+1].at < s[child].at {
			child++
		}
		if s[i].at <= s[child].at {
			return top
		}
		s[i], s[child] = s[child], s[i]
		i = child
	}
}
