package identity

import (
	"strings"
	"testing"
	"time"

	"onsale/internal/fault"
)

func TestE8ResidentIDs(t *testing.T) {
	// The example of the standard, GB 11643-1999, and others computed by its rule.
	for text, want := range map[string]string{
		"11010519491231002X":    "11010519491231002X",
		"11010519491231002x":    "11010519491231002X",
		"110105 19491231 002-x": "11010519491231002X",
		"１１０１０５１９４９１２３１００２Ｘ": "11010519491231002X",
		"440524188001010014":      "",                   // of 1880: see below
		"110105491231002":         "11010519491231002X", // the old number of the same person
		"440106199003071234":      "",
		"11010519490231002X":      "",
		"110105194912310021":      "",
		"990105194912310020":      "",
		"1101051949123100":        "",
		"11010519491231002XX":     "",
		"1101051949123100X2":      "",
		"":                        "",
		"11010549123100X":         "",
		"110105491331002":         "",
		strings.Repeat("1", 1000): "",
	} {
		got, bad := residentID(text)
		if got != want || (bad == "") != (want != "") {
			t.Errorf("%q is %q (%s), want %q", text, got, bad, want)
		}
	}
	for i := range 10 { // a single wrong digit, and two that changed places, are seen
		good := "11010519491231002X"
		for at := range 17 {
			changed := []byte(good)
			if changed[at] = byte('0' + i); string(changed) == good {
				continue
			}
			if got, _ := residentID(string(changed)); got != "" {
				t.Errorf("%s is taken", changed)
			}
		}
	}
	tomorrow := time.Now().Add(48 * time.Hour).Format("20060102")
	if number := "110105" + tomorrow + "002"; true {
		if got, bad := residentID(number + string(residentCheck(number))); got != "" || !strings.Contains(bad, "birth") {
			t.Errorf("born tomorrow: %q, %s", got, bad)
		}
	}
}

func TestE8Passports(t *testing.T) {
	for text, want := range map[string]string{
		"e12345678": "E12345678", "C01X00T47": "C01X00T47", "AB 123-456": "AB123456", "12345": "12345", "1234": "", "ABCDEFGHIJKLMNO": "ABCDEFGHIJKLMNO",
		"ABCDEFGHIJKLMNOP": "", "E1234567É": "", "": "", "E１２３４５６７８": "E12345678", "护照123456": "",
	} {
		if got, bad := passport(text); got != want || (bad == "") != (want != "") {
			t.Errorf("%q is %q (%s), want %q", text, got, bad, want)
		}
	}
}

func TestCheckAttendee(t *testing.T) {
	good := Attendee{Name: " 李安 ", DocumentType: CNResidentID, DocumentNumber: "11010519491231002x"}
	got, err := CheckAttendee(good)
	if want := (Attendee{"李安", CNResidentID, "11010519491231002X"}); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	for field, change := range map[string]func(*Attendee){
		"name":            func(a *Attendee) { a.Name = "  " },
		"document_type":   func(a *Attendee) { a.DocumentType = "library_card" },
		"document_number": func(a *Attendee) { a.DocumentNumber = "110105194912310021" },
	} {
		a := good
		change(&a)
		if _, err := CheckAttendee(a); fault.CodeOf(err) != fault.Invalid || fault.Of(err).Field != field {
			t.Errorf("%s: %v", field, err)
		} else if strings.Contains(err.Error(), "1101") {
			t.Errorf("the error tells the number: %v", err)
		}
	}
	if _, err := CheckAttendee(Attendee{Name: "Ann", DocumentNumber: "1"}); fault.Of(err).Field != "document_type" {
		t.Errorf("a number of no document: %v", err)
	}
}

func FuzzResidentID(f *testing.F) {
	for _, seed := range []string{"11010519491231002X", "110105491231002", "１１０１０５１９４９１２３１００２Ｘ", "11010519490229002X", "passport"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, normal := range []func(string) (string, string){residentID, passport} {
			number, bad := normal(text)
			if (number == "") == (bad == "") {
				t.Fatalf("%q is %q, and %q", text, number, bad)
			}
			if number == "" {
				continue
			}
			if again, bad := normal(number); again != number {
				t.Fatalf("%q is %q, and that is %q (%s)", text, number, again, bad)
			}
			if last := last4(number); len(last) != 4 || !strings.HasSuffix(number, last) {
				t.Fatalf("%q ends in %q", number, last)
			}
		}
	})
}
