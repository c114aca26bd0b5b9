package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"onsale/internal/app"
	"onsale/internal/catalog/importer"
)

// eventConvert is `onsale event convert`: it needs no server and no data folder.
type eventConvert struct {
	File   string `arg:"" type:"existingfile" help:"JSON: schema.org Events (JSON-LD), a Ticketmaster Discovery answer, or a programme list."`
	Out    string `type:"path" default:"." help:"Folder for the event files; it is made where it is missing."`
	Force  bool   `help:"Write over files that are there."`
	Format string `enum:"json-ld,discovery,programmes," default:"" help:"What the file is: json-ld, discovery or programmes; recognized by itself."`

	Zone     string `help:"IANA zone of houses for which the file says none, such as Asia/Shanghai."`
	Country  string `help:"Country of houses for which the file says none: two letters, such as CN."`
	City     string `help:"City of houses for which the file says none."`
	Currency string `help:"Currency of prices for which the file says none, such as EUR."`
	Plan     string `help:"Seating plan of all houses: a plan file's path as seen from --out, or the hash of an imported one."`
	Language string `help:"Language of texts that the file has in several languages, such as en."`
}

// Run writes an event file for each event, and says what is to be answered in them.
func (c *eventConvert) Run(k *kong.Context) error {
	data, err := readAtMost(c.File, importer.DataBytesMax)
	if err != nil {
		return err
	}
	r, err := importer.Convert(data, importer.Options{Format: importer.Format(c.Format), Zone: c.Zone, Country: c.Country, City: c.City,
		Currency: c.Currency, Plan: c.Plan, Language: c.Language})
	if err != nil {
		return err
	}
	files, err := r.Files()
	if err != nil {
		return err
	}
	if err := c.write(files); err != nil {
		return err
	}
	for _, f := range files {
		fmt.Fprintln(k.Stdout, filepath.Join(c.Out, f.Name))
		fmt.Fprintf(k.Stdout, "  %s\n", cut(cmp.Or(f.Title, "(no title)"), 78))
		if len(f.Questions) > 0 {
			_ = app.PrintWrapped(k.Stdout, "  asks about %s", fields(f.Questions))
		}
	}
	for _, s := range r.Skipped {
		fmt.Fprintln(k.Stdout, s.Path)
		_ = app.PrintWrapped(k.Stdout, "  %s", s.Why)
	}
	for _, note := range r.Notes {
		_ = app.PrintWrapped(k.Stdout, "Note: %s.", note)
	}
	_, err = fmt.Fprintf(k.Stdout, "%s, %s. The questions are in the files:\nanswer them there, then onsale event import FILE.\n",
		counted(len(files), "event file"), counted(r.Questions(), "question"))
	return err
}

// fields are what questions are about, each once.
func fields(questions []importer.Question) string {
	var all []string
	for _, q := range questions {
		if !slices.Contains(all, q.Field) {
			all = append(all, q.Field)
		}
	}
	return strings.Join(all, ", ")
}

// write writes all files or, where one is in the way, none.
func (c *eventConvert) write(files []importer.File) error {
	if err := os.MkdirAll(c.Out, 0o755); err != nil {
		return err
	}
	for _, f := range files {
		path := filepath.Join(c.Out, f.Name)
		if _, err := os.Lstat(path); err == nil && !c.Force {
			return fmt.Errorf("%s is there already: use --force to write over it, or --out for another folder", path)
		} else if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(c.Out, f.Name), f.Data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// readAtMost reads a file; one more byte than possible is left for the reader to refuse.
func readAtMost(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most+1))
}
