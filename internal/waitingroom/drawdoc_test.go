package waitingroom

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"onsale/internal/draw"
	"onsale/internal/id"
	"onsale/internal/ledger"
)

// drawnRoom is a room after its draw, with every third number of its lanes given back before opening.
func drawnRoom(t *testing.T, value string, ns ...int64) (ledger.Room, []byte) {
	t.Helper()
	k := sha256.Sum256([]byte("a secret"))
	room := ledger.Room{Event: 77, Phase: ledger.RoomOpen, Commitment: draw.Commitment(k), Source: "the lottery of Saturday", Frozen: 1_800_000_000_000,
		Value: value, Provable: value != "", K: hex.EncodeToString(k[:])}
	var keys []string
	for i, n := range ns {
		keys = append(keys, fmt.Sprint("lane", i))
		room.Lanes = append(room.Lanes, ledger.Lane{Key: keys[i], N: n, HighWater: n + 100})
	}
	var list bytes.Buffer
	w, err := draw.NewListWriter(&list, keys)
	if err != nil {
		t.Fatal(err)
	}
	for lane, n := range ns {
		for number := range n {
			if number%3 != 2 {
				if err := w.Add(lane, number, draw.Entry([]byte("list key"), id.ID(number+1))); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	hash, _, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	room.ListHash = hex.EncodeToString(hash[:])
	return room, list.Bytes()
}

func docOf(t *testing.T, room ledger.Room) DrawDoc {
	t.Helper()
	d, err := NewDrawDoc(&room)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// faults are what a document is found wrong in.
func faults(t *testing.T, d DrawDoc, list []byte) (found []string) {
	t.Helper()
	checks, err := d.Verify(bytes.NewReader(list))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range checks {
		if c.Fault != "" {
			found = append(found, c.What+": "+c.Fault)
		}
	}
	if DrawOK(checks) != (found == nil) {
		t.Errorf("DrawOK: %v", checks)
	}
	return found
}

func TestDrawIsVerified(t *testing.T) {
	room, list := drawnRoom(t, "3 8 19 22 41 47", 5000, 1, 0, 70)
	d := docOf(t, room)
	if found := faults(t, d, list); found != nil || d.State != DrawProvable || d.N != 5071 || len(d.Vectors) != 7 {
		t.Errorf("%v: %+v", found, d)
	}
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	var again DrawDoc
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	if found := faults(t, again, list); found != nil {
		t.Errorf("after JSON: %v", found)
	}
	o, err := d.Order("lane0")
	if err != nil || o.N() != 5000 || o.Position(4999) != d.Vectors[2].Position {
		t.Errorf("order: %v", err)
	}
	if _, err := d.Order("lane9"); err == nil {
		t.Error("an unknown lane has an order")
	}
}

// Each lie is found, whichever field it is in.
func TestLiesAreFound(t *testing.T) {
	room, list := drawnRoom(t, "a value", 5000, 70)
	good := docOf(t, room)
	flip := func(text string) string {
		return string("0123456789abcdef"[(strings.IndexByte("0123456789abcdef", text[0])+1)%16]) + text[1:]
	}
	swapped := bytes.Replace(list, []byte("lane0 0 "), []byte("lane0 2 "), 1) // a number that somebody else... out of order
	other := slices.Clone(list)
	other[len(other)-2] ^= 1 // another entry: 'x' stays a hex digit or not, either is another list
	for name, c := range map[string]struct {
		change func(d *DrawDoc)
		list   []byte
	}{
		"commitment":     {func(d *DrawDoc) { d.Commitment = flip(d.Commitment) }, list},
		"k":              {func(d *DrawDoc) { d.K = flip(d.K) }, list},
		"short k":        {func(d *DrawDoc) { d.K = d.K[:62] }, list},
		"k is no hex":    {func(d *DrawDoc) { d.K = "x" + d.K[1:] }, list},
		"value":          {func(d *DrawDoc) { d.Value += " " }, list},
		"n":              {func(d *DrawDoc) { d.N++ }, list},
		"lane n":         {func(d *DrawDoc) { d.Lanes[0].N--; d.N-- }, list},
		"n moved":        {func(d *DrawDoc) { d.Lanes[0].N++; d.Lanes[1].N-- }, list},
		"list hash":      {func(d *DrawDoc) { d.ListHash = flip(d.ListHash) }, list},
		"seed":           {func(d *DrawDoc) { d.Seed = flip(d.Seed) }, list},
		"lane key":       {func(d *DrawDoc) { d.Lanes[1].LaneKey = flip(d.Lanes[1].LaneKey) }, list},
		"lanes swapped":  {func(d *DrawDoc) { d.Lanes[0].Key, d.Lanes[1].Key = d.Lanes[1].Key, d.Lanes[0].Key }, list},
		"lane twice":     {func(d *DrawDoc) { d.Lanes[1].Key = d.Lanes[0].Key }, list},
		"vector":         {func(d *DrawDoc) { d.Vectors[0].Position++ }, list},
		"vector's lane":  {func(d *DrawDoc) { d.Vectors[0].Lane = "lane7" }, list},
		"claims more":    {func(d *DrawDoc) { d.Source = "" }, list},
		"no claim":       {func(d *DrawDoc) { d.State = DrawNone }, list},
		"arrival":        {func(d *DrawDoc) { d.OpeningOrder = OrderArrival }, list},
		"unknown order":  {func(d *DrawDoc) { d.OpeningOrder = "vip" }, list},
		"K before N":     {func(d *DrawDoc) { d.FrozenAt = d.FrozenAt.AddDate(-5000, 0, 0); d.ListHash = "" }, list},
		"negative n":     {func(d *DrawDoc) { d.Lanes[0].N -= 6000; d.N -= 6000 }, list},
		"huge n":         {func(d *DrawDoc) { d.Lanes[0].N = draw.NMax + 1 }, list},
		"many lanes":     {func(d *DrawDoc) { d.Lanes = make([]DrawLane, draw.LanesMax+1) }, list},
		"a line less":    {func(d *DrawDoc) {}, list[bytes.IndexByte(list, '\n')+1:]},
		"a line changed": {func(d *DrawDoc) {}, other},
		"a line swapped": {func(d *DrawDoc) {}, swapped},
		"no list":        {func(d *DrawDoc) {}, nil},
	} {
		d := good
		d.Lanes, d.Vectors = slices.Clone(good.Lanes), slices.Clone(good.Vectors)
		c.change(&d)
		if faults(t, d, c.list) == nil {
			t.Errorf("%s: not found", name)
		}
	}
	if found := faults(t, good, list); found != nil {
		t.Errorf("what is right is refused: %v", found)
	}
}

// What is not published yet is not judged, and nothing shows before its time.
func TestDrawBeforeItIsMade(t *testing.T) {
	room, list := drawnRoom(t, "", 50)
	room.K, room.Value, room.Provable = "", "", false
	d := docOf(t, room)
	if found := faults(t, d, list); found != nil || d.State != DrawProvable || d.Seed != "" || d.Vectors != nil || d.Lanes[0].LaneKey != "" {
		t.Errorf("%v: %+v", found, d)
	}
	room.Source = ""
	if d := docOf(t, room); d.State != DrawCommitted || faults(t, d, list) != nil {
		t.Errorf("without a source: %+v", d)
	}
	room.Phase, room.Frozen, room.ListHash, room.Lanes[0].N = ledger.RoomWaiting, 0, "", 0
	d = docOf(t, room)
	if checks, err := d.Verify(nil); err != nil || !DrawOK(checks) || !d.FrozenAt.IsZero() || d.ListHash != "" || d.Commitment == "" {
		t.Errorf("%v, %v: %+v", checks, err, d)
	}
	text, err := json.Marshal(d)
	if err != nil || strings.Contains(string(text), "frozen_at") || strings.Contains(string(text), `"k"`) {
		t.Errorf("%s, %v", text, err)
	}
}

func TestDrawFellBack(t *testing.T) { // C3: the value did not come in time
	room, list := drawnRoom(t, "", 50)
	if d := docOf(t, room); d.State != DrawCommitted || faults(t, d, list) != nil {
		t.Errorf("%+v", d)
	}
}

func TestOrderOfArrival(t *testing.T) {
	room, list := drawnRoom(t, "", 50)
	room.Arrival, room.Commitment, room.Source, room.K = true, "", "", ""
	d := docOf(t, room)
	if found := faults(t, d, list); found != nil || d.State != DrawNone || d.OpeningOrder != OrderArrival {
		t.Errorf("%v: %+v", found, d)
	}
	if o, err := d.Order("lane0"); err != nil || o.Position(7) != 7 {
		t.Error("the order of arrival moves somebody")
	}
}

func TestListCannotBeRead(t *testing.T) {
	room, _ := drawnRoom(t, "", 50)
	broken := errors.New("broken")
	d := docOf(t, room)
	if _, err := d.Verify(iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

// TestStrangersChecker runs the checker of docs/FAIRNESS.md, which shares no line with this program.
func TestStrangersChecker(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not installed (Debian package nodejs): the checker of docs/FAIRNESS.md does not look at our draws")
	}
	check := func(d DrawDoc, list []byte, args ...string) (string, error) {
		t.Helper()
		text, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		for name, content := range map[string][]byte{"draw.json": text, "list.txt": list} {
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		script := filepath.Join("..", "draw", "testdata", "check.mjs")
		out, err := exec.CommandContext(t.Context(), "node", append([]string{script, filepath.Join(dir, "draw.json"), filepath.Join(dir, "list.txt")}, args...)...).CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	room, list := drawnRoom(t, "äöü 数字 3 8 19", 4097, 1, 4096, 2, 100_000)
	d := docOf(t, room)
	for i, l := range d.Lanes { // more than a server publishes
		o, err := d.Order(l.Key)
		if err != nil {
			t.Fatal(err)
		}
		count := int64(60)
		if l.N <= draw.RankedMax {
			count = 4 // each takes the checker N hashes
		}
		for j := range count {
			number := j * 977 % (l.N + 3) // some of the tail
			d.Vectors = append(d.Vectors, DrawVector{d.Lanes[i].Key, number, o.Position(number)})
		}
	}
	if out, err := check(d, list); err != nil || out != "the draw is right" {
		t.Errorf("it says %q, %v", out, err)
	}
	o, err := d.Order("lane4")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := check(d, list, "lane4", "31415"); err != nil || out != fmt.Sprint(o.Position(31415)) {
		t.Errorf("its position is %q, ours %d, %v", out, o.Position(31415), err)
	}
	for name, change := range map[string]func(d *DrawDoc){
		"value": func(d *DrawDoc) { d.Value += "!" }, "commitment": func(d *DrawDoc) { d.Commitment = d.ListHash }, "n": func(d *DrawDoc) { d.Lanes[1].N++ },
		"vector": func(d *DrawDoc) { d.Vectors[len(d.Vectors)-1].Position ^= 1 },
	} {
		lie := d
		lie.Lanes, lie.Vectors = slices.Clone(d.Lanes), slices.Clone(d.Vectors)
		change(&lie)
		if out, err := check(lie, list); err == nil {
			t.Errorf("%s: it finds nothing wrong: %s", name, out)
		}
	}
}
