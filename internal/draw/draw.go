// Package draw shuffles a line so that everybody can check it afterwards.
//
// The one idea: nothing is shuffled. Whoever joins before opening takes a number 0…N-1 that means nothing; at opening a key
// says which position each number has, by a permutation that anyone computes alone, for one number or for all. What the key
// is made of was published in parts, each before the next could be known: see docs/FAIRNESS.md, which has every formula
// here in words. What is computed here is published and can never change.
//
// Start reading at Position, which is the formula; Order is the same with tables. Seed says where keys come from, list.go
// what the published list of joins looks like.
package draw

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"onsale/internal/id"
)

// KeyBytes is the length of K, of a seed and of a lane's key.
const KeyBytes = sha256.Size

// Commitment is what is published of K when a room opens for waiting: its SHA-256, hex.
func Commitment(k [KeyBytes]byte) string {
	sum := sha256.Sum256(k[:])
	return hex.EncodeToString(sum[:])
}

// Seed is what all lanes' keys come from: HMAC-SHA-256 with key K of the public value's bytes, n as 8 bytes big-endian and
// the 32 bytes of the hash of the list of joins. n is the sum of the lanes' N. Only the value's length varies, so no two
// triples give the same bytes.
func Seed(k [KeyBytes]byte, value string, n int64, listHash [sha256.Size]byte) [KeyBytes]byte {
	text := make([]byte, 0, len(value)+8+len(listHash))
	text = append(text, value...)
	text = binary.BigEndian.AppendUint64(text, uint64(n))
	text = append(text, listHash[:]...)
	return keyed(k[:], text)
}

// LaneKey is the key of a lane's permutation: HMAC-SHA-256 with the seed as its key of the lane's name.
func LaneKey(seed [KeyBytes]byte, lane string) [KeyBytes]byte {
	return keyed(seed[:], []byte(lane))
}

// EntryBytes is the length of what Entry answers.
const EntryBytes = 16

// Entry stands for a customer in the published list of joins: who knows it finds their own line, and nobody else's. It is the
// first 16 bytes of HMAC-SHA-256 of the customer's number as 8 bytes big-endian. The key is the event's own and stays
// secret: customers' numbers can be guessed, so whoever had it could look for anybody.
func Entry(listKey []byte, customer id.ID) [EntryBytes]byte {
	var number [8]byte
	binary.BigEndian.PutUint64(number[:], uint64(customer))
	sum := keyed(listKey, number[:])
	return [EntryBytes]byte(sum[:])
}

func keyed(key, text []byte) (sum [sha256.Size]byte) {
	h := hmac.New(sha256.New, key)
	h.Write(text)
	h.Sum(sum[:0])
	return sum
}
