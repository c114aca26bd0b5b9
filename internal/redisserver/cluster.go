package redisserver

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

const (
	slots      = 16_384
	clusterMax = 16 // nodes
)

// Cluster is a Redis Cluster of primaries without replicas: a node that dies takes its slots with it until it is back.
type Cluster struct {
	Nodes []*Server // by the slots they hold
}

// StartCluster makes a cluster of n nodes that share the slots evenly, and returns when all of them say that it is whole.
func StartCluster(ctx context.Context, o Options, n int) (*Cluster, error) {
	if n < 1 || n > clusterMax {
		return nil, fmt.Errorf("a cluster of %d nodes: it has 1 to %d", n, clusterMax)
	}
	c := &Cluster{}
	if err := c.start(ctx, o, n); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, o Options, n int) error {
	for i := range n {
		s, err := start(o, kind{cluster: true})
		if err != nil {
			return err
		}
		c.Nodes = append(c.Nodes, s)
		first, last := slots*i/n, slots*(i+1)/n-1
		for _, command := range [][]string{
			{"CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(first), strconv.Itoa(last)},
			{"CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i + 1)},
		} {
			if _, err := s.Do(ctx, command...); err != nil {
				return err
			}
		}
	}
	for _, s := range c.Nodes[1:] {
		if _, err := c.Nodes[0].Do(ctx, "CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(s.port), strconv.Itoa(s.bus)); err != nil {
			return err
		}
	}
	return c.WaitWhole(ctx)
}

// WaitWhole returns when every node sees every slot served by a node that lives.
func (c *Cluster) WaitWhole(ctx context.Context) error {
	return poll(ctx, nil, func(ctx context.Context) error {
		for _, s := range c.Nodes {
			info, err := s.Do(ctx, "CLUSTER", "INFO")
			if err != nil {
				return err
			}
			if fieldOf(info, "cluster_state") != "ok" || fieldOf(info, "cluster_known_nodes") != strconv.Itoa(len(c.Nodes)) {
				return fmt.Errorf("%s sees a cluster that is not whole: %q", s.Address(), info)
			}
		}
		return nil
	})
}

// Addresses are those of all nodes.
func (c *Cluster) Addresses() []string { return addresses(c.Nodes) }

// NodeOf is the node that holds a key.
func (c *Cluster) NodeOf(ctx context.Context, key string) (*Server, error) {
	text, err := c.Nodes[0].Do(ctx, "CLUSTER", "KEYSLOT", key)
	if err != nil {
		return nil, err
	}
	slot, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || slot < 0 || slot >= slots {
		return nil, fmt.Errorf("CLUSTER KEYSLOT answered %q", text)
	}
	n := len(c.Nodes)
	for i, s := range c.Nodes {
		if slot < slots*(i+1)/n {
			return s, nil
		}
	}
	return nil, fmt.Errorf("no node holds slot %d", slot)
}

// FlushAll makes all nodes forget everything.
func (c *Cluster) FlushAll(ctx context.Context) error {
	var err error
	for _, s := range c.Nodes {
		err = errors.Join(err, s.FlushAll(ctx))
	}
	return err
}

// Stop ends all nodes and removes their folders.
func (c *Cluster) Stop() error { return stopAll(c.Nodes) }

func addresses(servers []*Server) []string {
	all := make([]string, 0, len(servers))
	for _, s := range servers {
		all = append(all, s.Address())
	}
	return all
}

func stopAll(servers []*Server) error {
	var err error
	for _, s := range servers {
		err = errors.Join(err, s.Stop())
	}
	return err
}
