package venue

import (
	"bytes"
	"unicode/utf8"
)

// scan looks over a file once, before anything is built from it, and reports what would make reading it costly or
// unsafe: its size, its encoding, its depth, the number of its elements. (A few bytes of JSON can ask for a hundred
// bytes of memory; these limits bound that.) It answers the file without a byte order mark, and calls key for each key
// of the outermost object with the first byte of its value. Whether the JSON is well formed is for the parser to say.
func scan(r *report, data []byte, key func(name string, first byte)) ([]byte, bool) {
	if len(data) > FileBytesMax {
		r.errorf("", nil, "the file has %d bytes; at most %d (64 MiB) are allowed: remove images and other content that is not the plan", len(data), FileBytesMax)
		return nil, false
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if len(bytes.TrimSpace(data)) == 0 {
		r.errorf("", nil, "the file is empty")
		return nil, false
	}
	if !utf8.Valid(data) {
		r.errorf("", nil, "the file is not valid UTF-8: save it as UTF-8")
		return nil, false
	}
	if first := bytes.TrimSpace(data)[0]; first != '{' {
		r.errorf("", nil, "the file does not hold a JSON object; a seating plan begins with {")
		return nil, false
	}
	s := scanner{data: data, key: key}
	s.run()
	switch {
	case s.tooDeep:
		r.errorf("", nil, "arrays and objects are nested more than %d levels deep at %s; no seating plan needs that", NestingMax, place(data, int64(s.at)))
		return nil, false
	case s.elements > FileElementsMax || s.containers > 2*FileElementsMax:
		r.errorf("", nil, "the file has more than %d elements; no plan of up to %d seats needs that", FileElementsMax, SeatsMax)
		return nil, false
	}
	return data, true
}

type scanner struct {
	data       []byte
	key        func(name string, first byte)
	at         int
	depth      int
	isArray    [NestingMax + 1]bool // by depth
	containers int
	elements   int
	tooDeep    bool
}

func (s *scanner) run() {
	for s.at < len(s.data) {
		switch c := s.data[s.at]; c {
		case '"':
			text := s.text()
			if s.key != nil && s.depth == 1 && !s.isArray[1] {
				s.report(text)
			}
			continue
		case '{', '[':
			if s.depth == NestingMax {
				s.tooDeep = true
				return
			}
			s.depth++
			s.containers++
			s.isArray[s.depth] = c == '['
		case '}', ']':
			s.depth = max(0, s.depth-1)
		case ',':
			if s.isArray[s.depth] {
				s.elements++
			}
		}
		s.at++
	}
}

// text passes over the string that begins at s.at and answers what stands between its quotes, escapes and all.
func (s *scanner) text() []byte {
	start := s.at + 1
	for s.at = start; s.at < len(s.data); s.at++ {
		switch s.data[s.at] {
		case '\\':
			s.at++
		case '"':
			s.at++
			return s.data[start : s.at-1]
		}
	}
	s.at = len(s.data)
	return s.data[min(start, len(s.data)):]
}

// report calls key when what follows the text is a colon and a value.
func (s *scanner) report(text []byte) {
	rest := bytes.TrimLeft(s.data[s.at:], " \t\r\n")
	if len(rest) == 0 || rest[0] != ':' {
		return
	}
	if rest = bytes.TrimLeft(rest[1:], " \t\r\n"); len(rest) > 0 {
		s.key(string(text), rest[0])
	}
}
