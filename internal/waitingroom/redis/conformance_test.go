package redis

import (
	"testing"

	"onsale/internal/redisclient"
	"onsale/internal/redisserver"
	"onsale/internal/waitingroom"
	"onsale/internal/waitingroom/waitingroomtest"
)

func TestConformance(t *testing.T) {
	t.Run("one server", func(t *testing.T) {
		address := redisserver.ForTest(t).Address()
		waitingroomtest.ExerciseStore(t, func(t *testing.T) waitingroom.Store {
			return open(t, redisclient.Options{Addresses: []string{address}})
		})
	})
	t.Run("one server, in the steps of a cluster", func(t *testing.T) {
		address := redisserver.ForTest(t).Address()
		waitingroomtest.ExerciseStore(t, func(t *testing.T) waitingroom.Store {
			s := open(t, redisclient.Options{Addresses: []string{address}})
			s.spread = true
			return s
		})
	})
	t.Run("cluster", func(t *testing.T) {
		addresses := redisserver.ClusterForTest(t).Addresses()
		waitingroomtest.ExerciseStore(t, func(t *testing.T) waitingroom.Store {
			return open(t, redisclient.Options{Addresses: addresses, Cluster: true})
		})
	})
	t.Run("sentinels", func(t *testing.T) {
		addresses := redisserver.WatchedForTest(t).Addresses()
		waitingroomtest.ExerciseStore(t, func(t *testing.T) waitingroom.Store {
			return open(t, redisclient.Options{Addresses: addresses, SentinelMaster: redisserver.MasterName})
		})
	})
}
