package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/alecthomas/kong"

	"onsale/internal/app"
	"onsale/internal/httpapi"
)

// RoomCmd is `onsale room`: waiting rooms, live. Each change is in the event's log.
type RoomCmd struct {
	Status roomStatus `cmd:"" help:"How the line stands, and what holds people back."`

	Open   roomVerb `cmd:"" help:"Open the sale now: whoever came before is drawn."`
	Pause  roomVerb `cmd:"" help:"Call nobody and let nobody in; turns stand still, who is inside goes on."`
	Resume roomVerb `cmd:"" help:"Go on after a pause."`
	Close  roomVerb `cmd:"" help:"Let nobody in any more, for good."`

	Rate   roomRate   `cmd:"" help:"How many people may enter in one second: a number, or auto."`
	Change roomChange `cmd:"" help:"Change what is named: mode, active-max, turn, stay."`
	Value  roomValue  `cmd:"" help:"Enter the public value of the draw, as it was announced. It cannot be changed."`
}

type roomFlags struct {
	Event string `arg:"" help:"The event's id, as onsale event list shows it."`
	configFlags
}

func (f *roomFlags) do(ctx context.Context, out io.Writer, verb string, in app.RoomRequest) error {
	var room app.AdminRoom
	if err := f.call(ctx, "POST", "/rooms/"+f.Event+"/"+verb, in, &room); err != nil {
		return err
	}
	return printRoom(out, &room)
}

type roomStatus struct{ roomFlags }

// Run shows how the line stands.
func (c *roomStatus) Run(ctx context.Context, k *kong.Context) error {
	var room app.AdminRoom
	if err := c.call(ctx, "GET", "/rooms/"+c.Event, nil, &room); err != nil {
		return err
	}
	return printRoom(k.Stdout, &room)
}

type roomVerb struct{ roomFlags }

// Run does to the room what the subcommand is called.
func (c *roomVerb) Run(ctx context.Context, k *kong.Context) error {
	return c.do(ctx, k.Stdout, k.Selected().Name, app.RoomRequest{})
}

type roomRate struct {
	roomFlags
	Rate string `arg:"" help:"People a second, or auto."`
	Min  int    `help:"With auto the least."`
	Max  int    `help:"With auto the most."`
}

// Run sets the rate.
func (c *roomRate) Run(ctx context.Context, k *kong.Context) error {
	auto := c.Rate == "auto"
	edit := httpapi.RoomEdit{RateAuto: &auto}
	switch {
	case auto:
		if c.Max > 0 {
			edit.Rate = &c.Max
		}
		if c.Min > 0 {
			edit.RateMin = &c.Min
		}
	case c.Min != 0 || c.Max != 0:
		return fmt.Errorf("--min and --max go with auto")
	default:
		n, err := strconv.Atoi(c.Rate)
		if err != nil {
			return fmt.Errorf("the rate is a number of people a second, or auto; %q is neither", c.Rate)
		}
		edit.Rate = &n
	}
	return c.do(ctx, k.Stdout, "change", app.RoomRequest{Edit: edit})
}

type roomChange struct {
	roomFlags
	Mode      string        `enum:",off,auto,on" default:"" help:"off, auto or on."`
	ActiveMax int           `help:"People inside at once."`
	Turn      time.Duration `help:"In which somebody who is called may enter, 90s."`
	Stay      time.Duration `help:"How long somebody may stay inside, 10m."`
}

// Run changes what is named.
func (c *roomChange) Run(ctx context.Context, k *kong.Context) error {
	var edit httpapi.RoomEdit
	if c.Mode != "" {
		edit.Mode = &c.Mode
	}
	if c.ActiveMax != 0 {
		edit.ActiveMax = &c.ActiveMax
	}
	if c.Turn != 0 {
		ms := c.Turn.Milliseconds()
		edit.TurnMS = &ms
	}
	if c.Stay != 0 {
		ms := c.Stay.Milliseconds()
		edit.StayMS = &ms
	}
	if edit == (httpapi.RoomEdit{}) {
		return fmt.Errorf("name what is to change: --mode, --active-max, --turn or --stay")
	}
	return c.do(ctx, k.Stdout, "change", app.RoomRequest{Edit: edit})
}

type roomValue struct {
	roomFlags
	Value string `arg:"" help:"The value, exactly as it was announced."`
}

// Run enters the value.
func (c *roomValue) Run(ctx context.Context, k *kong.Context) error {
	return c.do(ctx, k.Stdout, "value", app.RoomRequest{Value: c.Value})
}

// binding says in words what holds people back.
var binding = map[string]string{
	"nobody_waits": "nobody waits", "paused": "it is paused", "rate": "the rate", "active_max": "active_max: as many are inside as may be", "seats": "what is left to sell",
}

func printRoom(w io.Writer, room *app.AdminRoom) error {
	fmt.Fprintf(w, "%s  %s\n", room.Event, cut(room.Title, 48))
	live := room.Live
	if live == nil {
		_, err := fmt.Fprintf(w, "  mode %s; no server runs, or the room is off\n", orOff(string(room.Rule.Mode)))
		return err
	}
	fmt.Fprintf(w, "  mode %s, phase %s, draw %s\n", room.Rule.Mode, live.Phase, live.Draw)
	fmt.Fprintf(w, "  %d inside of %d (%d with a hold), %d entered, %d bought\n", live.Inside, room.Rule.ActiveMax, live.Holding, live.Entered, live.Paid)
	auto := ""
	if room.Rule.RateAuto {
		auto = fmt.Sprintf(" (auto, %d–%d)", room.Rule.RateMin, room.Rule.Rate)
	}
	fmt.Fprintf(w, "  rate %d/s%s; what holds people back: %s\n", live.Rate, auto, binding[live.Binds])
	if live.MeanStayMS > 0 {
		fmt.Fprintf(w, "  people stay %s: once full, %.0f/s can enter\n", (time.Duration(live.MeanStayMS) * time.Millisecond).Round(time.Second), live.ActiveRate)
	}
	if live.Left != nil {
		fmt.Fprintf(w, "  %d places left, %d held\n", live.Left.Available, live.Left.Held)
	}
	t := tabwriter.NewWriter(w, 2, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "lane\tjoined\tdrawn\tcalled\tentered\twaiting\t\n")
	for _, l := range live.Lanes {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t\n", cut(l.Lane, 20), l.Joined, l.Drawn, l.Watermark, l.Entered, l.Waiting)
	}
	return t.Flush()
}

func orOff(mode string) string {
	if mode == "" {
		return "off"
	}
	return mode
}
