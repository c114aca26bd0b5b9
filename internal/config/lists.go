package config

import (
	"fmt"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// nodeType is a node of the file.
type nodeType = *yaml.Node

// Limits of lists.
const (
	issuersMax   = 20
	providersMax = 20
	networksMax  = 1000
)

// readIssuers reads the list of issuers from the file.
func (c *Config) readIssuers(l *loader, source string, n nodeType) {
	c.Issuers = nil
	if n.Kind == yaml.ScalarNode && (n.Tag == "!!null" || n.Value == "") {
		return
	}
	if n.Kind != yaml.SequenceNode || len(n.Content) > issuersMax {
		l.add("issuers", "must be a list of at most %d issuers", issuersMax)
		return
	}
	path, _, _ := strings.Cut(source, ":")
	for i, entry := range n.Content {
		var issuer Issuer
		key := fmt.Sprintf("issuers[%d]", i)
		rows := []setting{
			text(&issuer.Name, "name", "", ""), text(&issuer.Audience, "audience", "", ""), text(&issuer.Algorithm, "algorithm", "", ""),
			text(&issuer.Typ, "typ", "JWT", ""), text(&issuer.JWKSURL, "jwks_url", "", ""), text(&issuer.JWKSFile, "jwks_file", "", ""),
			text(&issuer.PEMFile, "pem_file", "", ""), length(&issuer.Leeway, 0, 5*time.Minute, "leeway", "0s", ""),
			yesNo(&issuer.TrustEmail, "trust_email", ""),
		}
		issuer.Typ = "JWT"
		readKeys(l, path, key, entry, rows)
		c.Issuers = append(c.Issuers, issuer)
	}
}

// readProviders reads the list of OpenID Connect providers from the file.
func (c *Config) readProviders(l *loader, source string, n nodeType) {
	c.Providers = nil
	if n.Kind == yaml.ScalarNode && (n.Tag == "!!null" || n.Value == "") {
		return
	}
	if n.Kind != yaml.SequenceNode || len(n.Content) > providersMax {
		l.add("sign_in_providers", "must be a list of at most %d providers", providersMax)
		return
	}
	path, _, _ := strings.Cut(source, ":")
	for i, entry := range n.Content {
		p := Provider{Algorithm: "RS256"}
		rows := []setting{
			text(&p.Name, "name", "", ""), text(&p.Issuer, "issuer", "", ""), text(&p.ClientID, "client_id", "", ""),
			text(&p.ClientSecretFile, "client_secret_file", "", ""), text(&p.Algorithm, "algorithm", "RS256", ""), yesNo(&p.TrustEmail, "trust_email", ""),
		}
		readKeys(l, path, fmt.Sprintf("sign_in_providers[%d]", i), entry, rows)
		c.Providers = append(c.Providers, p)
	}
}

// readKeys reads plain keys of one mapping; the rows are all there may be.
func readKeys(l *loader, path, key string, n *yaml.Node, rows []setting) {
	problem := func(line int, key, text string) {
		l.problems = append(l.problems, Problem{Key: key, Source: fmt.Sprintf("%s:%d", path, line), Text: text})
	}
	if n.Kind != yaml.MappingNode {
		problem(n.Line, key, "must have keys and values")
		return
	}
next:
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		var known []string
		for _, s := range rows {
			known = append(known, s.key)
			if s.key != name.Value {
				continue
			}
			if value.Kind != yaml.ScalarNode {
				problem(value.Line, key+"."+s.key, "must be a plain value")
			} else if err := s.set(value.Value); err != nil {
				problem(value.Line, key+"."+s.key, fmt.Sprintf("%.80q %s", value.Value, err))
			}
			continue next
		}
		problem(name.Line, key+"."+name.Value, "is not known; known are "+strings.Join(known, ", "))
	}
}

// readFaults reads the rates of faults from the file, as keys or as one text.
func (c *Config) readFaults(l *loader, _ string, n nodeType) {
	const key = "payment.sandbox.faults"
	c.Payment.Sandbox.Faults = nil
	switch n.Kind {
	case yaml.ScalarNode:
		if n.Tag == "!!null" {
			return
		}
		if err := c.setFaults(n.Value); err != nil {
			l.add(key, "%s", err)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if err := c.addFault(n.Content[i].Value, n.Content[i+1].Value); err != nil {
				l.add(key, "%s", err)
			}
		}
	default:
		l.add(key, "must be rates by name, such as {declined: 0.1}")
	}
}
