package redisclient

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/rueidis"
)

// The oldest server that is known to do.
const majorMin, minorMin = 6, 2

// Check asks whether Redis is fit: reachable, new enough, and told to refuse rather than to throw away what it was given. It
// answers the version.
func (c *Client) Check(ctx context.Context) (version string, err error) {
	err = c.Do(ctx, func(ctx context.Context, conn rueidis.Client) error {
		for address, node := range conn.Nodes() {
			info, err := node.Do(ctx, node.B().Info().Build()).ToString()
			if err != nil {
				return fmt.Errorf("%s: %w", address, err)
			}
			if version, err = fit(info); err != nil {
				return fmt.Errorf("%s: %w", address, err)
			}
		}
		if !c.Spread() {
			return nil
		}
		state, err := conn.Do(ctx, conn.B().ClusterInfo().Build()).ToString()
		if err == nil && InfoField(state, "cluster_state") != "ok" {
			err = errors.New("the cluster is not whole: not every slot is served")
		}
		return err
	})
	return version, err
}

// fit judges what INFO says.
func fit(info string) (version string, err error) {
	version = InfoField(info, "redis_version")
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, errA := strconv.Atoi(major)
	b, errB := strconv.Atoi(minor)
	if errA != nil || errB != nil {
		return version, fmt.Errorf("its version %.40q is not understood", version)
	}
	if a < majorMin || a == majorMin && b < minorMin {
		return version, fmt.Errorf("version %s is older than %d.%d", version, majorMin, minorMin)
	}
	if policy := InfoField(info, "maxmemory_policy"); policy != "noeviction" {
		return version, fmt.Errorf("maxmemory-policy is %.40q: when memory is short, numbers would be thrown away", policy)
	}
	return version, nil
}
