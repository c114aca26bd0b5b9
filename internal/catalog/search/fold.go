package search

import (
	"strings"
	"unicode"
)

// isChinese says of a character that it is written without blanks between words: Chinese, also kana and Hangul.
func isChinese(c rune) bool {
	return c >= 0x2E80 && (unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) || c == 'ー')
}

// A piece is a run of a folded text: Chinese characters, or one word.
type piece struct {
	chinese string   // the characters, without the punctuation between them
	word    string   // else letters and digits
	parts   []string // of a word that punctuation or a change from letters to digits takes apart, two or more: "ac/dc"
}

// joiners stand inside a word.
const joiners = ".'’‘`´-‐/&·"

// pieces splits a folded text. Blanks end a run of Chinese characters only where the query means them to: breakAtBlanks.
func pieces(text string, breakAtBlanks bool) []piece {
	var all []piece
	runes := []rune(text)
	for i := 0; i < len(runes); {
		switch c := runes[i]; {
		case isChinese(c):
			var run []rune
			for ; i < len(runes) && !isWord(runes[i]) && (!breakAtBlanks || !unicode.IsSpace(runes[i])); i++ {
				if isChinese(runes[i]) {
					run = append(run, runes[i])
				}
			}
			all = append(all, piece{chinese: string(run)})
		case isWord(c):
			var p piece
			p, i = wordAt(runes, i)
			all = append(all, p)
		default:
			i++
		}
	}
	return all
}

func isWord(c rune) bool {
	return (unicode.IsLetter(c) || unicode.IsDigit(c) || unicode.Is(unicode.M, c)) && !isChinese(c)
}

// wordAt reads the word that begins at i, and answers where it ends.
func wordAt(runes []rune, i int) (piece, int) {
	var parts []string
	for {
		begin := i
		digit := unicode.IsDigit(runes[i])
		for i < len(runes) && isWord(runes[i]) && unicode.IsDigit(runes[i]) == digit {
			i++
		}
		parts = append(parts, string(runes[begin:i]))
		switch {
		case i < len(runes) && isWord(runes[i]):
		case i+1 < len(runes) && strings.ContainsRune(joiners, runes[i]) && isWord(runes[i+1]):
			i++
		default:
			p := piece{word: strings.Join(parts, "")}
			if len(parts) > 1 {
				p.parts = parts
			}
			return p, i
		}
	}
}

// squeeze is what is left of a folded text without blanks and punctuation.
func squeeze(text string) string {
	var b strings.Builder
	for _, p := range pieces(text, false) {
		b.WriteString(p.chinese)
		b.WriteString(p.word)
	}
	return b.String()
}
