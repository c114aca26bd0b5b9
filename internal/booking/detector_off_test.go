//go:build !race

package booking

const racing = false
