package fold

import (
	"testing"
	"unicode"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"Köln": "koln", "KÖLN": "koln", "Ko\u0308ln": "koln", "ＫÖＬＮ": "koln", "Straße": "strasse", "Łódź": "lodz", "İzmir": "izmir",
		"ǽ": "ae", "\xf1ǽ": "\uFFFDae", "Ǿ": "o", "STRAẞE": "strasse", "上海": "上海", "カ": "カ", "ガ": "ガ", "AC/DC": "ac/dc", "": "",
	} {
		if got := Text(text); got != want || Text(got) != got {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// What is stored folded is found by what is asked folded, whatever the letter: folding twice is folding once.
func TestTextOfEveryRune(t *testing.T) {
	for c := rune(0); c <= unicode.MaxRune; c++ {
		for _, text := range []string{string(c), "a" + string(c), string(c) + "\u0301"} {
			once := Text(text)
			if twice := Text(once); twice != once {
				t.Errorf("%U: %+q folds to %+q and then to %+q", c, text, once, twice)
			}
		}
	}
}

func FuzzText(f *testing.F) {
	for _, text := range []string{"Köln", "ＪＪ３０", "\xf1ǽ", "か\u3099", "한국", "ﷺ", "\u0f73\u0301"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		once := Text(text)
		if twice := Text(once); twice != once {
			t.Errorf("%+q folds to %+q and then to %+q", text, once, twice)
		}
	})
}
