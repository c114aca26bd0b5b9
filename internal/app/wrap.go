package app

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"
)

// terminalColumns is how wide what commands print may be.
const terminalColumns = 80

// Wrap breaks a text at blanks into lines of at most so many characters, longer words apart.
func Wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}

// heads are what stands before a line's text: a label in a column of its own, or blanks.
var heads = regexp.MustCompile(`^(\S+ {2,}| +)`)

// PrintWrapped prints a line, broken where a terminal ends; what follows stands below the text, not below its label.
func PrintWrapped(w io.Writer, format string, args ...any) error {
	line := fmt.Sprintf(format, args...)
	head := heads.FindString(line)
	width := utf8.RuneCountInString(head)
	for _, text := range Wrap(line[len(head):], terminalColumns-width) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(head+text, " ")); err != nil {
			return err
		}
		head = strings.Repeat(" ", width)
	}
	return nil
}
