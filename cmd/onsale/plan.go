package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/alecthomas/kong"

	"onsale/internal/app"
	"onsale/internal/venue"
)

// PlanCmd is `onsale plan`: seating plans as files.
type PlanCmd struct {
	Check    planCheck    `cmd:"" help:"Read a seating plan and say what is in it, or all that is wrong with it."`
	Import   planImport   `cmd:"" help:"Turn a pretix seating plan or a seats.io chart into a file of our own format."`
	Generate planGenerate `cmd:"" help:"Make an arena with so many seats."`
	Export   planExport   `cmd:"" help:"Write a seating plan as a pretix plan."`
}

// planSource is the file that a subcommand reads.
type planSource struct {
	File             string `arg:"" help:"Our own plan, a pretix seating plan or a seats.io chart."`
	RenameDuplicates bool   `help:"Give seats that share an id new ones, the same at each import, instead of refusing the file."`
}

type planCheck struct{ planSource }

type planImport struct {
	planSource
	Out string `short:"o" required:"" placeholder:"OUT" help:"Where to write the plan."`
}

type planExport struct {
	planSource
	Out string `short:"o" required:"" placeholder:"OUT" help:"Where to write the pretix plan."`
}

type planGenerate struct {
	Seats      int    `required:"" help:"How many seats, 2 to 200000."`
	Seed       uint64 `help:"Another number makes another arena." default:"0"`
	Name       string `help:"Name of the plan." placeholder:"NAME"`
	NoStanding bool   `help:"Leave out the standing areas."`
	Out        string `short:"o" required:"" placeholder:"OUT" help:"Where to write the plan."`
}

// Run reads the file and prints what it holds.
func (c *planCheck) Run(ctx *kong.Context) error {
	_, err := c.read(ctx.Stdout)
	return err
}

// Run reads the file, prints what it holds and writes it in our own format. Nothing is written when it is refused.
func (c *planImport) Run(ctx *kong.Context) error {
	plan, err := c.read(ctx.Stdout)
	if err != nil {
		return err
	}
	return writePlan(ctx.Stdout, plan, c.Out)
}

// Run makes a plan, prints what it holds and writes it.
func (c *planGenerate) Run(ctx *kong.Context) error {
	if c.Seats < 2 || c.Seats > venue.SeatsMax {
		return fmt.Errorf("--seats is %d; it must be 2 to %d", c.Seats, venue.SeatsMax)
	}
	plan := venue.Generate(venue.GenerateOptions{Seats: c.Seats, Seed: c.Seed, Name: c.Name, NoStanding: c.NoStanding})
	if problems := plan.Validate(); len(problems) > 0 { // of the name, which is all that comes from outside
		printProblems(ctx.Stdout, problems)
		return errors.New("--name cannot stand in a plan; nothing was written")
	}
	printPlan(ctx.Stdout, plan)
	return writePlan(ctx.Stdout, plan, c.Out)
}

// Run reads the file and writes it as a pretix plan.
func (c *planExport) Run(ctx *kong.Context) error {
	plan, err := c.read(ctx.Stdout)
	if err != nil {
		return err
	}
	data, notes, err := venue.ExportPretix(plan)
	if err != nil {
		return err
	}
	printProblems(ctx.Stdout, notes)
	return writeWhole(ctx.Stdout, c.Out, data)
}

// read imports the file and prints its counts and notes, or all that is wrong with it.
func (s *planSource) read(out io.Writer) (*venue.Plan, error) {
	data, err := readBounded(s.File, venue.FileBytesMax)
	if err != nil {
		return nil, err
	}
	plan, problems, err := venue.Import(data, venue.ImportOptions{RenameDuplicates: s.RenameDuplicates})
	if err != nil {
		printProblems(out, problems)
		var refused *venue.RefusedError
		if errors.As(err, &refused) {
			fmt.Fprintf(out, "%-10s %s\n", "refused", counted(refused.Count, "error"))
		}
		return nil, fmt.Errorf("%s is refused; nothing was changed", s.File)
	}
	printPlan(out, plan)
	printProblems(out, problems)
	return plan, nil
}

// readBounded reads a file, but not much more of it than the limit: what is longer is refused by who gets it.
func readBounded(name string, bytesMax int64) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, bytesMax+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return data, nil
}

func writePlan(out io.Writer, plan *venue.Plan, name string) error {
	data, err := plan.Encode()
	if err != nil {
		return err
	}
	return writeWhole(out, name, data)
}

// writeWhole replaces the file by the data, or leaves it as it was.
func writeWhole(out io.Writer, name string, data []byte) (err error) {
	file, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("write %s: there is no folder %s; make it first", name, filepath.Dir(name))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name()) // best effort: the error that led here is the one to tell
		}
	}()
	if _, err = file.Write(data); err == nil {
		err = file.Chmod(0o644)
	}
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	fmt.Fprintf(out, "written    %s (%s bytes)\n", name, thousands(len(data)))
	return nil
}

// areasShownMax is how many areas printPlan lists.
const areasShownMax = 10

// printPlan prints what a plan holds, in 80 columns.
func printPlan(out io.Writer, plan *venue.Plan) {
	layout := plan.Layout()
	places := 0
	placesOf := make([]int, len(plan.Categories))
	for _, area := range plan.Areas {
		places += area.Capacity
		placesOf[area.Category] += area.Capacity
	}
	line := func(what, format string, arguments ...any) {
		fmt.Fprintf(out, "%-10s %s\n", what, fmt.Sprintf(format, arguments...))
	}
	line("plan", "%s", clip(plan.Name, 68))
	line("seats", "%s in %s, %s", thousands(len(plan.Seats)), counted(len(plan.Rows), "row"), counted(len(plan.Sections), "section"))
	line("areas", "%s with %s", thousands(len(plan.Areas)), counted(places, "place"))
	for i, area := range plan.Areas {
		if i == areasShownMax {
			line("", "and %s more", thousands(len(plan.Areas)-i))
			break
		}
		line("", "%-32s %s", clip(area.ID, 32), counted(area.Capacity, "place"))
	}
	line("runs", "%s of neighbours", thousands(len(layout.Runs)))
	line("special", "%s accessible, %s for companions, %s with restricted view", thousands(layout.Accessible.Count()),
		thousands(layout.Companion.Count()), thousands(layout.RestrictedView.Count()))
	for i, category := range plan.Categories {
		what := ""
		if i == 0 {
			what = "categories" // by the keys that event files name
		}
		amount := thousands(layout.Categories[i].Count()) + " seats"
		if placesOf[i] > 0 {
			amount += ", " + thousands(placesOf[i]) + " places"
		}
		line(what, "%-18s %-22s %s", clip(category.Key, 18), clip(category.Name, 22), amount)
	}
	line("hash", "%s", plan.Hash())
}

// printProblems prints each problem, its place on the first line, wrapped to 80 columns.
func printProblems(out io.Writer, problems []venue.Problem) {
	for _, problem := range problems {
		kind := "error"
		if problem.Note {
			kind = "note"
		}
		if problem.Path != "" {
			fmt.Fprintf(out, "%-10s %s\n", kind, problem.Path)
			kind = ""
		}
		for _, text := range app.Wrap(problem.Message, 69) {
			fmt.Fprintf(out, "%-10s %s\n", kind, text)
			kind = ""
		}
	}
}

func clip(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	return string(runes[:width-1]) + "…"
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return thousands(n) + " " + noun + "s"
}

// thousands is the number with commas: 1,057.
func thousands(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
