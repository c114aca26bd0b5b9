package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	"onsale/internal/httpapi"
)

// secrets are the personal data that the demo used: none of it may be in the server's log or in a notice (E10). Each is
// made so that one word of it is nobody else's and no word of any language.
type secrets struct {
	mu    sync.Mutex
	words map[string]string // word: what it is
}

func newSecrets() *secrets { return &secrets{words: map[string]string{}} }

func (s *secrets) add(what, word string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.words[strings.ToLower(word)] = what
}

// address remembers an e-mail address, by its first part.
func (s *secrets) address(email string) {
	local, _, _ := strings.Cut(email, "@")
	s.add("an address", local)
}

func (s *secrets) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.words)
}

// person makes up a name.
func (s *secrets) person(random *rand.Rand) string {
	family := fmt.Sprintf("Quastenflossler%06d", random.IntN(1_000_000))
	s.add("a name", family)
	return "Ada " + family
}

// attendee makes somebody up, with a passport.
func (s *secrets) attendee(random *rand.Rand) httpapi.Attendee {
	document := fmt.Sprintf("X%s%08d", string(rune('A'+random.IntN(26))), random.IntN(100_000_000))
	s.add("a document", document)
	return httpapi.Attendee{Name: s.person(random), DocumentType: "passport", DocumentNumber: document}
}

// secretForms are what the words look like.
var secretForms = regexp.MustCompile(`(?i)quastenflossler[0-9]{6}|x[a-z][0-9]{8}|(?:guest|friend|owner|door)-[0-9]+-[0-9]+(?:\.[0-9])?`)

// found are those that a text holds, as "a name": each kind once.
func (s *secrets) found(text []byte) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var kinds []string
	for _, word := range secretForms.FindAll(text, -1) {
		if what, ok := s.words[strings.ToLower(string(word))]; ok && !slices.Contains(kinds, what) {
			kinds = append(kinds, what)
		}
	}
	return kinds
}

// private looks for personal data where there must be none: the server's log, and the notices in the ledger.
func (s *sale) private(ctx context.Context) error {
	log, err := os.ReadFile(s.server.log)
	if err != nil {
		return err
	}
	for _, what := range s.secrets.found(log) {
		s.wrong("the server's log holds %s", what)
	}
	return s.store.notices(ctx, func(body []byte) error {
		for _, what := range s.secrets.found(body) {
			s.wrong("a notice holds %s", what)
		}
		return nil
	})
}
