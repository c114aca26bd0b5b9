// Package fold makes texts comparable as people compare them: "Köln" is found by who writes "koln" or "ＫÖＬＮ".
//
// The one idea: what is looked for and what it is looked for in go through the same Text. Whoever stores a folded text
// stores Version beside it, since a later program may fold otherwise.
package fold

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Version changes with what Text answers.
const Version = 2

// letters that Unicode does not take apart into a plain one and a mark.
var letters = strings.NewReplacer("ß", "ss", "æ", "ae", "œ", "oe", "ø", "o", "ł", "l", "đ", "d", "ð", "d", "þ", "th", "ı", "i", "ħ", "h", "ς", "σ")

// Text makes texts comparable: full-width forms as plain ones, lower case, no accents. Punctuation stays. What it
// answers, it answers unchanged.
func Text(text string) string {
	ascii := true
	for i := 0; i < len(text); i++ {
		ascii = ascii && text[i] < 0x80
	}
	if ascii {
		return strings.ToLower(text)
	}
	text = strings.ToValidUTF8(text, "\uFFFD") // norm leaves what follows a broken byte as it is
	// Marks go before letters are looked up: "ǽ" is an "æ" with one.
	plain := strings.Map(func(c rune) rune {
		switch {
		case unicode.Is(unicode.Mn, c) && c < 0x3000, // the marks of kana tell words apart
			unicode.Is(unicode.Cf, c), unicode.Is(unicode.Variation_Selector, c): // nobody sees these
			return -1
		}
		return c
	}, norm.NFKD.String(text))
	return letters.Replace(strings.ToLower(norm.NFKC.String(plain)))
}
