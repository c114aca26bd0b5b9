package redis

import (
	"strconv"

	"onsale/internal/id"
	"onsale/internal/waitingroom"
)

// prefix carries the version of how things lie in Redis (D5).
const prefix = "onsale:1:"

// bucketBits say in how many hashes (2^15) the customers of an event lie: with two million about 60 each, which Redis keeps
// packed.
const bucketBits = 15

// roomKey is of an event's phase, counters and limits.
func roomKey(event id.ID) string { return prefix + "{" + decimal(event) + "}:room" }

// whoKey is of the hash in which a customer's number lies.
func whoKey(event, customer id.ID) string { return bucketKey(event, bucketOf(uint64(customer)), "who") }

// claimKey lies in the slot of whoKey.
func claimKey(event, customer id.ID) string {
	return bucketKey(event, bucketOf(uint64(customer)), "claim:"+decimal(customer))
}

// documentKey is of the hash in which it stands whose an identity is.
func documentKey(event id.ID, who waitingroom.Identity) string {
	var n uint64
	for _, b := range who[:8] {
		n = n<<8 | uint64(b)
	}
	return bucketKey(event, bucketOf(n), "doc")
}

func bucketKey(event id.ID, bucket uint64, what string) string {
	return prefix + "{" + decimal(event) + "." + strconv.FormatUint(bucket, 10) + "}:" + what
}

// bucketOf spreads ids, whose low bits are alike, by a multiplication (Fibonacci hashing).
func bucketOf(n uint64) uint64 { return n * 0x9E3779B97F4A7C15 >> (64 - bucketBits) }

func decimal(n id.ID) string { return strconv.FormatInt(int64(n), 10) }

// identityText is an identity as scripts get it: its bytes, or "" for none.
func identityText(who waitingroom.Identity) string {
	if who == (waitingroom.Identity{}) {
		return ""
	}
	return string(who[:])
}

// pack and unpack are what a member's number is in Redis, as the scripts have it.
func pack(r waitingroom.Record) int64 {
	packed := r.Number<<5 | int64(r.Lane)<<1
	if r.Drawn {
		packed |= 1
	}
	return packed
}

func unpack(packed int64) waitingroom.Joined {
	return waitingroom.Joined{Lane: int(packed >> 1 & 15), Number: packed >> 5, Drawn: packed&1 == 1}
}
