package redisserver

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

const (
	sentinels = 3
	quorum    = 2
	// downAfterMS is how long a primary must be silent before a sentinel thinks it down; a replica counts as fit to follow it
	// while it has not been cut off for longer than ten times that.
	downAfterMS = 500
)

// MasterName is what sentinels call the primary.
const MasterName = "onsale"

// Watched is a primary and its replica under three sentinels, which put the replica in its place when it dies.
type Watched struct {
	Primary, Replica *Server // as they were at the start
	Sentinels        []*Server
}

// StartWatched makes the five servers and returns when the replica follows and all sentinels know of each other and of it.
func StartWatched(ctx context.Context, o Options) (*Watched, error) {
	w := &Watched{}
	if err := w.start(ctx, o); err != nil {
		return nil, errors.Join(err, w.Stop())
	}
	return w, nil
}

func (w *Watched) start(ctx context.Context, o Options) (err error) {
	if w.Primary, err = start(o, kind{}); err != nil {
		return err
	}
	if w.Replica, err = start(o, kind{}); err != nil {
		return err
	}
	if _, err := w.Replica.Do(ctx, "REPLICAOF", "127.0.0.1", strconv.Itoa(w.Primary.port)); err != nil {
		return err
	}
	if err := w.WaitReplicated(ctx); err != nil {
		return err
	}
	for range sentinels {
		s, err := start(Options{Dir: o.Dir, Settings: map[string]string{
			"sentinel monitor " + MasterName:                 fmt.Sprintf("127.0.0.1 %d %d", w.Primary.port, quorum),
			"sentinel down-after-milliseconds " + MasterName: strconv.Itoa(downAfterMS),
			"sentinel failover-timeout " + MasterName:        "3000",
		}}, kind{sentinel: true})
		if err != nil {
			return err
		}
		w.Sentinels = append(w.Sentinels, s)
	}
	return w.waitKnown(ctx)
}

// waitKnown returns when each sentinel knows the other two and the replica.
func (w *Watched) waitKnown(ctx context.Context) error {
	return poll(ctx, nil, func(ctx context.Context) error {
		for _, s := range w.Sentinels {
			text, err := s.Do(ctx, "SENTINEL", "MASTER", MasterName)
			if err != nil {
				return err
			}
			if pairOf(text, "num-other-sentinels") != strconv.Itoa(sentinels-1) || pairOf(text, "num-slaves") != "1" {
				return fmt.Errorf("%s does not know all: %q", s.Address(), text)
			}
		}
		return nil
	})
}

// pairOf is the line behind the one that is the name.
func pairOf(text, name string) string {
	lines := strings.Split(text, "\n")
	for i := 0; i+1 < len(lines); i += 2 {
		if lines[i] == name {
			return lines[i+1]
		}
	}
	return ""
}

// Addresses are those of the sentinels.
func (w *Watched) Addresses() []string { return addresses(w.Sentinels) }

// WaitReplicated returns when the replica has everything that the primary has.
func (w *Watched) WaitReplicated(ctx context.Context) error {
	return poll(ctx, nil, func(ctx context.Context) error {
		there, err := w.Primary.Info(ctx, "master_repl_offset")
		if err != nil {
			return err
		}
		text, err := w.Replica.Do(ctx, "INFO", "replication")
		if err != nil {
			return err
		}
		if fieldOf(text, "master_link_status") != "up" || fieldOf(text, "slave_repl_offset") != there {
			return fmt.Errorf("the replica is behind %s: %q", there, text)
		}
		return nil
	})
}

// CutOff makes the replica stop hearing of writes, as when the network between the two fails: those that the primary
// acknowledges from now on are lost by Failover, which must follow within seconds, as long as the sentinels think the replica
// fit.
func (w *Watched) CutOff(ctx context.Context) error {
	if _, err := w.Primary.Do(ctx, "ACL", "SETUSER", "default", "-psync", "-sync"); err != nil {
		return err
	}
	if _, err := w.Primary.Do(ctx, "CLIENT", "KILL", "TYPE", "replica"); err != nil {
		return err
	}
	return poll(ctx, nil, func(ctx context.Context) error {
		text, err := w.Replica.Do(ctx, "INFO", "replication")
		if err == nil && fieldOf(text, "master_link_status") != "down" {
			err = errors.New("the replica still follows")
		}
		return err
	})
}

// Failover kills the primary and returns when the sentinels have put the replica in its place and agree on that.
func (w *Watched) Failover(ctx context.Context) error {
	if err := w.Primary.Kill(); err != nil {
		return err
	}
	return poll(ctx, nil, func(ctx context.Context) error {
		role, err := w.Replica.Info(ctx, "role")
		if err != nil {
			return err
		}
		if role != "master" {
			return errors.New("the replica has not been put in the primary's place")
		}
		for _, s := range w.Sentinels {
			at, err := s.Do(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", MasterName)
			if err != nil {
				return err
			}
			if at != fmt.Sprintf("127.0.0.1\n%d", w.Replica.port) {
				return fmt.Errorf("%s still names %q", s.Address(), at)
			}
		}
		return nil
	})
}

// Stop ends all five and removes their folders.
func (w *Watched) Stop() error {
	all := append([]*Server(nil), w.Sentinels...)
	for _, s := range []*Server{w.Replica, w.Primary} {
		if s != nil {
			all = append(all, s)
		}
	}
	return stopAll(all)
}
