package app

import "onsale/internal/waitingroom"

// watchRooms adds the figures of waiting rooms: of all rooms of this node together, since labels have no ids (E10). One room by
// itself is shown by onsale room status.
func (a *App) watchRooms(gauge func(name, help string, f func() float64), counter func(name, help string, f func() int64)) {
	stats := func(f func(waitingroom.Stats) int64) func() int64 {
		return func() int64 { return f(a.Rooms.Stats()) }
	}
	counter("onsale_queue_joins_total", "Joins answered with a number.", stats(func(s waitingroom.Stats) int64 { return s.Joins }))
	counter("onsale_queue_joins_new_total", "Numbers given out.", stats(func(s waitingroom.Stats) int64 { return s.JoinsNew }))
	counter("onsale_queue_joins_shed_total", "Joins refused as busy.", stats(func(s waitingroom.Stats) int64 { return s.JoinsBusy }))
	counter("onsale_queue_claims_total", "Claims of those called.", stats(func(s waitingroom.Stats) int64 { return s.Claims }))
	counter("onsale_queue_entered_total", "People who entered through this node.", stats(func(s waitingroom.Stats) int64 { return s.Entered }))
	counter("onsale_queue_recoveries_total", "Times that the store of numbers was mended.", stats(func(s waitingroom.Stats) int64 { return s.Recoveries }))
	counter("onsale_queue_streams_dropped_total", "Streams of lines dropped because the client was slow.", stats(func(s waitingroom.Stats) int64 { return s.SlowDropped }))
	gauge("onsale_queue_joins_waiting", "Joins that wait to be written down.", func() float64 { return float64(a.Rooms.Stats().JoinsWaiting) })
	gauge("onsale_queue_streams", "Streams of lines on this node.", func() float64 { return float64(a.Rooms.Stats().Subscribers) })
	views := func(f func(v *waitingroom.RoomView) int64) func() float64 {
		return func() (sum float64) {
			for _, v := range a.Rooms.Views() {
				sum += float64(f(&v))
			}
			return sum
		}
	}
	gauge("onsale_queue_rooms", "Waiting rooms on this node.", views(func(*waitingroom.RoomView) int64 { return 1 }))
	gauge("onsale_queue_inside", "People inside, of all rooms.", views(func(v *waitingroom.RoomView) int64 { return int64(v.Room.Inside) }))
	gauge("onsale_queue_rate", "R in force, people a second, of all rooms.", views(func(v *waitingroom.RoomView) int64 { return int64(v.Room.Rate) }))
	gauge("onsale_queue_mending", "Rooms whose store of numbers is being mended: nobody can join them.", views(func(v *waitingroom.RoomView) int64 {
		if v.Mending {
			return 1
		}
		return 0
	}))
	gauge("onsale_queue_called", "Watermarks: people called, of all lanes.", views(func(v *waitingroom.RoomView) (n int64) {
		for _, l := range v.Room.Lanes {
			n += l.Watermark
		}
		return n
	}))
	gauge("onsale_queue_waiting", "People not called yet, of all lanes.", views(func(v *waitingroom.RoomView) (n int64) {
		for _, l := range v.Room.Lanes {
			n += max(0, l.Joined-l.Watermark)
		}
		return n
	}))
}
