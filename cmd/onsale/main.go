// Command onsale is the whole of Onsale: the server and everything that its operator does. One file a subcommand; each
// only reads its flags and calls the package that does the work.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/alecthomas/kong"
)

// version is set by the linker in releases: -X main.version=v1.2.3.
var version = ""

// cli is the command line.
type cli struct {
	Serve     ServeCmd     `cmd:"" help:"Run the server."`
	Demo      DemoCmd      `cmd:"" help:"Sell an arena to simulated buyers over HTTP, then audit it."`
	Plan      PlanCmd      `cmd:"" help:"Seating plans: check, import, generate, export."`
	Room      RoomCmd      `cmd:"" help:"Waiting rooms, live: status, open, pause, resume, close, rate, change, value."`
	Event     EventCmd     `cmd:"" help:"Events: import, list, open, pause, resume, close, cancel."`
	Organizer OrganizerCmd `cmd:"" help:"Organizers: add, list, and who may do what for them."`
	Webhook   WebhookCmd   `cmd:"" help:"Webhooks out: list, add, rotate, dead letters, replay."`
	Audit     AuditCmd     `cmd:"" help:"Recompute the promises from what is stored; exit 1 where one is broken."`
	Bench     BenchCmd     `cmd:"" help:"Measure sales on this machine, beside simpler designs: holds, sale."`
	Config    ConfigCmd    `cmd:"" help:"Print the configuration in force."`
	Token     TokenCmd     `cmd:"" help:"Make a token of the throw-away issuer of a demo's data folder."`
	Doctor    DoctorCmd    `cmd:"" help:"Look at everything that the configuration names, and say what to mend."`
	Migrate   MigrateCmd   `cmd:"" help:"Bring the databases up to date; serve does so at its start."`
	Backup    BackupCmd    `cmd:"" help:"Put everything but the master key into one file, also while the server sells."`
	Restore   RestoreCmd   `cmd:"" help:"Bring a backup back into an empty data folder, and compare with the provider."`
	Keys      KeysCmd      `cmd:"" help:"Keys: list, rotate."`
	Customer  CustomerCmd  `cmd:"" help:"A person's data: export, erase; who was erased."`
	Version   VersionCmd   `cmd:"" help:"Print the version."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	k, err := commandLine(&cli{}, os.Args[1:], kong.BindTo(ctx, (*context.Context)(nil)))
	if err != nil {
		fmt.Fprintln(stderr, err)
		os.Exit(exitUsage)
	}
	k.FatalIfErrorf(k.Run())
}

// exitUsage is how the program ends that was called in a way it does not know; 1 is for what went wrong.
const exitUsage = 80

// commandLine reads what the program was called with. `onsale help …` is `onsale … --help`. The error is one line, which
// names where more is said: a whole usage text would hide it.
func commandLine(c *cli, arguments []string, options ...kong.Option) (*kong.Context, error) {
	parser, err := kong.New(c, append([]kong.Option{
		kong.Name("onsale"),
		kong.Description("Sells tickets at the minute when everyone wants them."),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 80}),
	}, options...)...)
	if err != nil {
		return nil, err
	}
	if len(arguments) > 0 && arguments[0] == "help" {
		arguments = append(append([]string{}, arguments[1:]...), "--help")
	}
	k, err := parser.Parse(arguments)
	var wrong *kong.ParseError
	if !errors.As(err, &wrong) {
		return k, err
	}
	command := "onsale"
	if node := wrong.Context.Selected(); node != nil {
		command = node.FullPath()
	}
	return nil, fmt.Errorf("onsale: %w: see %s --help", err, command)
}

// VersionCmd is `onsale version`.
type VersionCmd struct{}

// Run prints the version.
func (VersionCmd) Run(k *kong.Context) error {
	_, err := fmt.Fprintln(k.Stdout, "onsale", versionText())
	return err
}

// versionText is the version set at link time, else what the build knows of itself.
func versionText() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "dev-" + s.Value[:12]
		}
	}
	return "dev"
}

// stderr is where commands tell what is no answer.
var stderr = os.Stderr
