//go:build !race

package ledgertest

const raceDetector = false
