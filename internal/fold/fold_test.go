package fold

import "testing"

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"Köln": "koln", "KÖLN": "koln", "Ko\u0308ln": "koln", "ＫÖＬＮ": "koln", "Straße": "strasse", "Łódź": "lodz", "İzmir": "izmir",
		"上海": "上海", "カ": "カ", "ガ": "ガ", "AC/DC": "ac/dc", "": "",
	} {
		if got := Text(text); got != want || Text(got) != got {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
