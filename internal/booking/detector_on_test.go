//go:build race

package booking

// racing says that the race detector slows everything down tenfold: the short forms are shorter then.
const racing = true
