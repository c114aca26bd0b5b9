//go:build negativecontrol

package decide

import "sync/atomic"

// Off is the guard that is taken out, "" for none. It exists in the build for negative controls only.
var off atomic.Value

// TakeOut takes a guard out until the returned function is called.
func TakeOut(g Guard) (restore func()) {
	off.Store(g)
	return func() { off.Store(Guard("")) }
}

func on(g Guard) bool { return off.Load() != g }
