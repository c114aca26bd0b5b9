package draw

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"onsale/internal/id"
)

var update = flag.Bool("update", false, "writes testdata/vectors.json anew; what is published can never change, so this is for new vectors only")

// vectors is testdata/vectors.json, which docs/FAIRNESS.md gives to others who write a checker.
type vectors struct {
	Comment   string           `json:"comment"`
	Positions []positionVector `json:"positions"`
	Seeds     []seedVector     `json:"seeds"`
	Entries   []entryVector    `json:"entries"`
}

type positionVector struct {
	Key       string  `json:"key"`
	N         int64   `json:"n"`
	Numbers   []int64 `json:"numbers"`
	Positions []int64 `json:"positions"`
}

type seedVector struct {
	K          string            `json:"k"`
	Commitment string            `json:"commitment"`
	Value      string            `json:"value"`
	N          int64             `json:"n"`
	List       string            `json:"list"`
	ListHash   string            `json:"list_hash"`
	Seed       string            `json:"seed"`
	Lanes      map[string]string `json:"lanes"`
}

type entryVector struct {
	ListKey  string `json:"list_key"`
	Customer int64  `json:"customer"`
	Entry    string `json:"entry"`
}

const vectorsFile = "testdata/vectors.json"

// makeVectors are the inputs, with what this program answers.
func makeVectors() vectors {
	v := vectors{Comment: "Test vectors of docs/FAIRNESS.md. Bytes are hex, but for value and list, which are text."}
	for i, n := range []int64{1, 2, 4096, 4097, 2_000_000} {
		key := testKey(100 + i)
		p := positionVector{Key: hex.EncodeToString(key[:]), N: n, Numbers: []int64{0}}
		for _, number := range []int64{1, 2, 3, 1000, n / 2, n - 2, n - 1, n, n + 5} {
			if number > p.Numbers[len(p.Numbers)-1] {
				p.Numbers = append(p.Numbers, number)
			}
		}
		for _, number := range p.Numbers {
			p.Positions = append(p.Positions, Position(key, n, number))
		}
		v.Positions = append(v.Positions, p)
	}
	for i, value := range []string{"", "6 aus 49, 2026-12-05: 3 8 19 22 41 47", "äöü 数字"} {
		k := testKey(200 + i)
		list := "general 0 00112233445566778899aabbccddeeff\n" + "presale 3 ffeeddccbbaa99887766554433221100\n"
		s := seedVector{K: hex.EncodeToString(k[:]), Commitment: Commitment(k), Value: value, N: []int64{2, 4097, 2_000_000}[i], List: list, Lanes: map[string]string{}}
		hash := sha256.Sum256([]byte(list))
		seed := Seed(k, value, s.N, hash)
		s.ListHash, s.Seed = hex.EncodeToString(hash[:]), hex.EncodeToString(seed[:])
		for _, lane := range []string{"general", "presale"} {
			key := LaneKey(seed, lane)
			s.Lanes[lane] = hex.EncodeToString(key[:])
		}
		v.Seeds = append(v.Seeds, s)
	}
	for _, customer := range []int64{1, 1 << 40, 1<<63 - 1} {
		entry := Entry([]byte("a list key of an event"), id.ID(customer))
		v.Entries = append(v.Entries, entryVector{hex.EncodeToString([]byte("a list key of an event")), customer, hex.EncodeToString(entry[:])})
	}
	return v
}

// What was published once is computed the same for ever. That the formulas are those of docs/FAIRNESS.md is for
// testdata/check.mjs to say, which shares no line with this package: package waitingroom runs it.
func TestVectors(t *testing.T) {
	now, err := json.MarshalIndent(makeVectors(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	now = append(now, '\n')
	if *update {
		if err := os.WriteFile(filepath.FromSlash(vectorsFile), now, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	was, err := os.ReadFile(filepath.FromSlash(vectorsFile))
	if err != nil {
		t.Fatal(err)
	}
	if string(was) != string(now) {
		t.Errorf("%s is not what this program computes:\n%s", vectorsFile, now)
	}
	var v vectors
	if err := json.Unmarshal(was, &v); err != nil {
		t.Fatal(err)
	}
	for _, p := range v.Positions {
		o := NewOrder(bytes32(t, p.Key), p.N)
		for i, number := range p.Numbers {
			if got := o.Position(number); got != p.Positions[i] {
				t.Errorf("N = %d: number %d is at %d by the tables, not %d", p.N, number, got, p.Positions[i])
			}
		}
	}
}

func bytes32(t *testing.T, text string) [32]byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != 32 {
		t.Fatalf("%q: %v", text, err)
	}
	return [32]byte(b)
}

// Each input of a seed counts, and none can be taken for part of another.
func TestSeedDependsOnAll(t *testing.T) {
	seen := map[[KeyBytes]byte]string{}
	add := func(what string, seed [KeyBytes]byte) {
		if other, twice := seen[seed]; twice {
			t.Errorf("%s gives the seed of %s", what, other)
		}
		seen[seed] = what
	}
	k, hash := testKey(1), sha256.Sum256(nil)
	add("all", Seed(k, "value", 7, hash))
	add("another K", Seed(testKey(2), "value", 7, hash))
	add("another value", Seed(k, "valuf", 7, hash))
	add("a longer value", Seed(k, "value\x00", 7, hash))
	add("no value", Seed(k, "", 7, hash))
	add("another N", Seed(k, "value", 8, hash))
	add("another list", Seed(k, "value", 7, sha256.Sum256([]byte("x"))))
	add("a lane", LaneKey(Seed(k, "value", 7, hash), "general"))
	add("another lane", LaneKey(Seed(k, "value", 7, hash), "presale"))
	if Entry([]byte("a"), 1) == Entry([]byte("b"), 1) || Entry([]byte("a"), 1) == Entry([]byte("a"), 2) {
		t.Error("entries are the same")
	}
}
