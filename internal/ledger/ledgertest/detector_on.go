//go:build race

package ledgertest

// raceDetector says that the race detector is in the build: a database in Go code is many times slower under it, so that
// the short forms are shorter still. The long forms are run without it.
const raceDetector = true
