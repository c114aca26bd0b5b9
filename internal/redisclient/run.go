package redisclient

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"
)

// lifeKey holds a random name, which goes when everything is forgotten within the same run (FLUSHALL).
const lifeKey = "onsale:1:life"

// Run is a name of the present life of what Redis keeps. Another name means that something may have been forgotten: the server
// or one of the cluster's primaries has been started again or replaced, or (without a cluster) emptied.
func (c *Client) Run(ctx context.Context) (run string, err error) {
	err = c.Do(ctx, func(ctx context.Context, conn rueidis.Client) (err error) {
		if c.Spread() {
			run, err = clusterRun(ctx, conn)
		} else {
			run, err = singleRun(ctx, conn)
		}
		return err
	})
	return run, err
}

func singleRun(ctx context.Context, conn rueidis.Client) (string, error) {
	answers := conn.DoMulti(ctx,
		conn.B().Set().Key(lifeKey).Value(rand.Text()).Nx().Build(),
		conn.B().Get().Key(lifeKey).Build(),
		conn.B().Info().Section("server").Build())
	if err := answers[0].Error(); err != nil && !rueidis.IsRedisNil(err) {
		return "", err
	}
	life, err := answers[1].ToString()
	if err != nil {
		return "", err
	}
	info, err := answers[2].ToString()
	return InfoField(info, "run_id") + "/" + life, err
}

// clusterRun joins the runs of the primaries, those that hold slots.
func clusterRun(ctx context.Context, conn rueidis.Client) (string, error) {
	ranges, err := conn.Do(ctx, conn.B().ClusterSlots().Build()).ToArray()
	if err != nil {
		return "", err
	}
	nodes := conn.Nodes()
	var runs []string
	seen := map[string]bool{}
	for _, r := range ranges {
		parts, err := r.ToArray()
		if err != nil || len(parts) < 3 {
			return "", fmt.Errorf("the cluster told a range of slots that is not understood: %w", err)
		}
		address, err := addressOf(parts[2])
		if err != nil {
			return "", err
		}
		if seen[address] {
			continue
		}
		seen[address] = true
		node, known := nodes[address]
		if !known {
			return "", fmt.Errorf("the cluster names a node %s that is not yet connected", address)
		}
		info, err := node.Do(ctx, node.B().Info().Section("server").Build()).ToString()
		if err != nil {
			return "", err
		}
		runs = append(runs, InfoField(info, "run_id"))
	}
	slices.Sort(runs)
	return strings.Join(runs, "/"), nil
}

func addressOf(node rueidis.RedisMessage) (string, error) {
	parts, err := node.ToArray()
	if err != nil || len(parts) < 2 {
		return "", fmt.Errorf("the cluster told of a node that is not understood: %w", err)
	}
	host, err := parts[0].ToString()
	if err != nil {
		return "", err
	}
	port, err := parts[1].AsInt64()
	return net.JoinHostPort(host, strconv.FormatInt(port, 10)), err
}

// InfoField is one field of what INFO says, "" where it has none.
func InfoField(info, field string) string {
	info = strings.TrimPrefix(info, "txt:") // what the protocol's third version writes before plain text
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
