package config

import (
	"slices"
	"strings"
	"testing"
)

func TestRedisSettings(t *testing.T) {
	scaled := func(more ...string) map[string]string {
		flags := map[string]string{"ledger.kind": "postgres", "ledger.url": "postgres://db.example/onsale", "master_key_file": "/etc/onsale/key"}
		for i := 0; i < len(more); i += 2 {
			flags[more[i]] = more[i+1]
		}
		return flags
	}
	for name, c := range map[string]struct {
		flags map[string]string
		want  string // "": accepted
	}{
		"one server":         {scaled("redis.addresses", "127.0.0.1:6379"), ""},
		"cluster":            {scaled("redis.addresses", "a.example:1, b.example:2", "redis.cluster", "true", "redis.tls", "true"), ""},
		"sentinels":          {scaled("redis.addresses", "a:1,b:2,[::1]:3", "redis.sentinel_master", "main", "redis.sentinel_password", "hunter2"), ""},
		"one node":           {map[string]string{"redis.addresses": "127.0.0.1:6379"}, "set ledger.kind: postgres"},
		"no port":            {scaled("redis.addresses", "127.0.0.1"), "is not host:port"},
		"no host":            {scaled("redis.addresses", ":6379"), "is not host:port"},
		"port 0":             {scaled("redis.addresses", "a:0"), "is not host:port"},
		"twice":              {scaled("redis.addresses", "a:1,a:1", "redis.cluster", "true"), "twice"},
		"several of one":     {scaled("redis.addresses", "a:1,b:1"), "set redis.cluster"},
		"both":               {scaled("redis.addresses", "a:1", "redis.cluster", "true", "redis.sentinel_master", "main"), "a cluster has no sentinels"},
		"nothing to sign in": {scaled("redis.password", "hunter2"), "means nothing without redis.addresses"},
		"sentinels' alone":   {scaled("redis.addresses", "a:1", "redis.sentinel_password", "hunter2"), "without redis.sentinel_master"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Load(Sources{Flags: c.flags})
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v; want %q", err, c.want)
			}
			if err != nil {
				if strings.Contains(err.Error(), "hunter2") {
					t.Errorf("a password is in %v", err)
				}
				return
			}
			o := got.RedisOptions()
			if !slices.Equal(o.Addresses, got.Redis.Addresses) || (o.TLS != nil) != got.Redis.TLS || strings.Contains(printed(t, got), "hunter2") {
				t.Errorf("%+v becomes %+v", got.Redis, o)
			}
		})
	}
}
