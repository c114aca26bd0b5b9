package config

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"onsale/internal/waitingroom/beacon"
)

// lineRunesMax is how long a printed comment is at most.
const lineRunesMax = 100

// Print writes the configuration as YAML that Load reads again, each setting with its meaning and its variable, secrets
// masked.
func (c Config) Print(out io.Writer) error {
	w := bufio.NewWriter(out)
	fmt.Fprintln(w, "# The configuration of Onsale. Stronger than this file are the variables named in brackets, and flags.")
	var open []string
	for _, s := range c.settings() {
		parts := strings.Split(s.key, ".")
		for i, group := range parts[:len(parts)-1] {
			if i >= len(open) || open[i] != group {
				open = append(open[:min(i, len(open))], group)
				fmt.Fprintf(w, "\n%s%s:\n", strings.Repeat("  ", i), group)
			}
		}
		open = open[:len(parts)-1]
		indent := strings.Repeat("  ", len(parts)-1)
		if indent == "" {
			fmt.Fprintln(w)
		}
		doc := s.doc
		switch s.get().(type) {
		case []Issuer, []Provider, []beacon.Source: // only in a file
		default:
			doc += " [" + variable(s.key) + "]"
		}
		for _, line := range folded(doc, lineRunesMax-len(indent)) {
			fmt.Fprintf(w, "%s# %s\n", indent, line)
		}
		printValue(w, indent, parts[len(parts)-1], s)
	}
	return w.Flush()
}

func printValue(w io.Writer, indent, name string, s setting) {
	switch v := s.get().(type) {
	case []Issuer:
		if len(v) == 0 {
			fmt.Fprintf(w, "%s%s: []\n", indent, name)
			return
		}
		fmt.Fprintf(w, "%s%s:\n", indent, name)
		for _, i := range v {
			fmt.Fprintf(w, "%s  - name: %s\n", indent, scalar(i.Name))
			for _, row := range [][2]string{{"audience", i.Audience}, {"algorithm", i.Algorithm}, {"typ", i.Typ}, {"jwks_url", i.JWKSURL},
				{"jwks_file", i.JWKSFile}, {"pem_file", i.PEMFile}, {"leeway", short(i.Leeway)}, {"trust_email", onlyTrue(i.TrustEmail)}} {
				if row[1] != "" {
					fmt.Fprintf(w, "%s    %s: %s\n", indent, row[0], plainBool(row[1]))
				}
			}
		}
	case []Provider:
		if len(v) == 0 {
			fmt.Fprintf(w, "%s%s: []\n", indent, name)
			return
		}
		fmt.Fprintf(w, "%s%s:\n", indent, name)
		for _, p := range v {
			fmt.Fprintf(w, "%s  - name: %s\n", indent, scalar(p.Name))
			for _, row := range [][2]string{{"issuer", p.Issuer}, {"client_id", p.ClientID}, {"client_secret_file", p.ClientSecretFile},
				{"algorithm", p.Algorithm}, {"trust_email", onlyTrue(p.TrustEmail)}} {
				if row[1] != "" {
					fmt.Fprintf(w, "%s    %s: %s\n", indent, row[0], plainBool(row[1]))
				}
			}
		}
	case []beacon.Source:
		printBeacons(w, indent, name, v)
	case []FaultRate:
		if len(v) == 0 {
			fmt.Fprintf(w, "%s%s: {}\n", indent, name)
			return
		}
		fmt.Fprintf(w, "%s%s:\n", indent, name)
		for _, f := range v {
			fmt.Fprintf(w, "%s  %s: %s\n", indent, scalar(f.Fault), strconv.FormatFloat(f.Rate, 'g', -1, 64))
		}
	case time.Duration:
		fmt.Fprintf(w, "%s%s: %s\n", indent, name, short(v))
	case string:
		if s.mask != nil {
			v = s.mask(v)
		}
		fmt.Fprintf(w, "%s%s: %s\n", indent, name, scalar(v))
	default:
		fmt.Fprintf(w, "%s%s: %v\n", indent, name, v)
	}
}

// onlyTrue is "true", or "" for what is not worth a line.
func onlyTrue(yes bool) string {
	if yes {
		return "true"
	}
	return ""
}

// plainBool is a text as YAML, where "true" is the truth and not a word.
func plainBool(text string) string {
	if text == "true" {
		return text
	}
	return scalar(text)
}

var plain = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9_./-]*$`)

// scalar is a text as YAML.
func scalar(text string) string {
	switch strings.ToLower(text) {
	case "true", "false", "null", "yes", "no", "on", "off", "y", "n":
		return strconv.Quote(text)
	}
	if plain.MatchString(text) {
		return text
	}
	return strconv.Quote(text)
}

func folded(text string, width int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
