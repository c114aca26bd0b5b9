package venue

import (
	"fmt"
	"strings"
)

// problemsMax is how many problems one report lists; the rest are counted.
const problemsMax = 200

// seatsNamedMax is how many seats one problem names.
const seatsNamedMax = 20

// A Problem is one thing that is wrong with a file or a plan, or one that is worth knowing about it.
type Problem struct {
	Path    string   // where: a JSON pointer into the file, "" for the file as a whole
	Seats   []string // the ids of the seats involved
	Message string   // what is wrong and how to mend it, for people
	Note    bool     // worth knowing, but no reason to refuse the plan
}

// String is the problem on one line.
func (p Problem) String() string {
	if p.Path == "" {
		return p.Message
	}
	return p.Path + ": " + p.Message
}

// Errors are those of the problems for which a plan is refused.
func Errors(problems []Problem) []Problem {
	var errors []Problem
	for _, p := range problems {
		if !p.Note {
			errors = append(errors, p)
		}
	}
	return errors
}

// A RefusedError says that a file or plan was refused, and holds all that is wrong with it.
type RefusedError struct {
	Problems []Problem
	Count    int // of errors, those included which are too many to be listed
}

// Error names the first error and the number of the others.
func (e *RefusedError) Error() string {
	errors := Errors(e.Problems)
	if len(errors) == 0 {
		return "the seating plan is refused"
	}
	text := "the seating plan is refused: " + errors[0].String()
	if e.Count > 1 {
		text += fmt.Sprintf(" (and %d more)", e.Count-1)
	}
	return text
}

// A report gathers problems: the first problemsMax errors and as many notes in full, the rest as a count.
type report struct {
	errors, notes         []Problem
	errorCount, noteCount int
}

func (r *report) errorf(path string, seats []string, format string, arguments ...any) {
	if r.errorCount++; r.errorCount > problemsMax {
		return
	}
	if len(seats) > seatsNamedMax {
		seats = seats[:seatsNamedMax]
	}
	r.errors = append(r.errors, Problem{Path: path, Seats: seats, Message: fmt.Sprintf(format, arguments...)})
}

func (r *report) notef(path string, seats []string, format string, arguments ...any) {
	if r.noteCount++; r.noteCount > problemsMax {
		return
	}
	if len(seats) > seatsNamedMax {
		seats = seats[:seatsNamedMax]
	}
	r.notes = append(r.notes, Problem{Path: path, Seats: seats, Message: fmt.Sprintf(format, arguments...), Note: true})
}

// failed says whether any error was reported.
func (r *report) failed() bool { return r.errorCount > 0 }

// problems are the errors, then the notes, each in the order in which they were found.
func (r *report) problems() []Problem {
	all := append([]Problem(nil), r.errors...)
	if more := r.errorCount - len(r.errors); more > 0 {
		all = append(all, Problem{Message: fmt.Sprintf("and %d more errors of the same file", more)})
	}
	all = append(all, r.notes...)
	if more := r.noteCount - len(r.notes); more > 0 {
		all = append(all, Problem{Message: fmt.Sprintf("and %d more notes", more), Note: true})
	}
	return all
}

// refusal is a RefusedError where something was reported that refuses, else nil.
func (r *report) refusal() error {
	if !r.failed() {
		return nil
	}
	return &RefusedError{Problems: r.problems(), Count: r.errorCount}
}

// quoted shortens what a file holds so that it can be shown in a message.
func quoted(text string) string {
	runes := []rune(strings.ToValidUTF8(text, "\uFFFD"))
	if len(runes) > 40 {
		return fmt.Sprintf("%q…", string(runes[:40]))
	}
	return fmt.Sprintf("%q", string(runes))
}
