package redisserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

const (
	talkMax     = 5 * time.Second
	replyMax    = 16 << 20 // bytes of one reply
	elementsMax = 1 << 20  // of one array
)

// Do sends one command over a connection of its own and returns the answer as text; an array's elements are lines. It is for
// steering a server, not for load.
func (s *Server) Do(ctx context.Context, args ...string) (answer string, err error) {
	dialer := net.Dialer{Timeout: talkMax}
	conn, err := dialer.DialContext(ctx, "tcp", s.Address())
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }() // the answer is complete or err says why not
	if err := conn.SetDeadline(time.Now().Add(talkMax)); err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := io.WriteString(conn, b.String()); err != nil {
		return "", err
	}
	answer, err = readReply(bufio.NewReader(conn))
	if err != nil {
		return "", fmt.Errorf("%s: %w", args[0], err)
	}
	return answer, nil
}

// readReply reads one answer of the protocol's second version.
func readReply(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return "", errors.New("an empty answer")
	}
	kind, rest := line[0], line[1:]
	switch kind {
	case '+', ':':
		return rest, nil
	case '-':
		return "", errors.New(rest)
	}
	n, err := strconv.Atoi(rest)
	if err != nil || n < -1 || n > replyMax {
		return "", fmt.Errorf("an answer that is not understood: %q", line)
	}
	switch {
	case n < 0: // nothing
		return "", nil
	case kind == '$':
		text := make([]byte, n+2)
		if _, err := io.ReadFull(r, text); err != nil {
			return "", err
		}
		return string(text[:n]), nil
	case kind == '*' && n <= elementsMax:
		var lines []string
		for range n {
			element, err := readReply(r)
			if err != nil {
				return "", err
			}
			lines = append(lines, element)
		}
		return strings.Join(lines, "\n"), nil
	}
	return "", fmt.Errorf("an answer that is not understood: %q", line)
}
