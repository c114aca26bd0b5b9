package config

import (
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"onsale/internal/redisclient"
)

// addresses reads a list of host:port, with commas between them.
func addresses(into *[]string, key, doc string) setting {
	return setting{key: key, doc: doc, get: func() any { return strings.Join(*into, ", ") }, set: func(text string) error {
		*into = nil
		for part := range strings.SplitSeq(text, ",") {
			if part = strings.TrimSpace(part); part == "" {
				continue
			}
			host, port, err := net.SplitHostPort(part)
			if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || n == 0 || host == "" {
				return fmt.Errorf("has %.60q, which is not host:port", part)
			}
			if slices.Contains(*into, part) {
				return fmt.Errorf("has %.60q twice", part)
			}
			*into = append(*into, part)
		}
		if len(*into) > redisclient.AddressesMax {
			return fmt.Errorf("has %d addresses; at most %d", len(*into), redisclient.AddressesMax)
		}
		return nil
	}}
}

func (l *loader) checkRedis() {
	c := &l.config.Redis
	if len(c.Addresses) == 0 {
		for key, set := range map[string]bool{"redis.username": c.Username != "", "redis.password": c.Password != "",
			"redis.sentinel_master": c.SentinelMaster != "", "redis.sentinel_password": c.SentinelPassword != "", "redis.cluster": c.Cluster, "redis.tls": c.TLS} {
			if set {
				l.add(key, "means nothing without redis.addresses: give them, or take it away")
			}
		}
		return
	}
	if l.config.Ledger.Kind != "postgres" {
		l.add("redis.addresses", "is for several nodes, which need one database: who joined a line is written down there (set ledger.kind: postgres, or take it away)")
	}
	switch {
	case c.Cluster && c.SentinelMaster != "":
		l.add("redis.cluster", "and redis.sentinel_master are both set: a cluster has no sentinels")
	case !c.Cluster && c.SentinelMaster == "" && len(c.Addresses) > 1:
		l.add("redis.addresses", "has %d: several are those of a cluster (set redis.cluster) or of sentinels (set redis.sentinel_master)", len(c.Addresses))
	}
	if c.SentinelPassword != "" && c.SentinelMaster == "" {
		l.add("redis.sentinel_password", "means nothing without redis.sentinel_master")
	}
}

// RedisOptions are how Redis is reached; without addresses there is none.
func (c Config) RedisOptions() redisclient.Options {
	o := redisclient.Options{
		Addresses: c.Redis.Addresses, Username: c.Redis.Username, Password: c.Redis.Password,
		SentinelMaster: c.Redis.SentinelMaster, SentinelPassword: c.Redis.SentinelPassword, Cluster: c.Redis.Cluster,
	}
	if c.Redis.TLS {
		o.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return o
}
