// Command netsplit finds partition bugs in distributed systems by controlling the
// switch between their nodes.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"netsplit/model"
	"netsplit/sut"
	"netsplit/testbed/disk"
	"netsplit/testbed/proc"
)

// Exit codes of the program.
const (
	exitPass        = 0
	exitFailed      = 1 // netsplit or the testbed failed
	exitUsage       = 2
	exitFindings    = 3   // broken, or beyond a bound the user stated
	exitUndecided   = 4   // no fault run could be judged, or a search stopped as suspect
	exitInterrupted = 130 // as shells report SIGINT
)

// outputMode is the mode of files that the user names for output: 0644 without the bits of the
// user's umask.
var outputMode os.FileMode = 0o644

// version is set at build time with -ldflags "-X main.version=…".
var version = "dev"

func main() {
	if len(os.Args) > 1 && os.Args[1] == proc.ConfineVerb { // becomes a process of a target
		os.Exit(proc.ConfineMain(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == disk.Verb { // becomes a process whose file operations are held
		os.Exit(disk.Main(os.Args[2:]))
	}
	proc.KeepFiles()
	// Servers of a target run as other users. They must be able to read their files, whatever
	// the umask of the user who started netsplit. Private files get their mode explicitly.
	outputMode &^= os.FileMode(unix.Umask(0o022))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// exitError carries the exit code of an outcome that is no failure of ours.
type exitError struct {
	code int
	err  error // nil: said already
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usage marks an error in how the program was called.
func usage(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := rootCommand()
	root.SetArgs(args)
	root.SetIn(stdin)
	out := &counter{to: stdout}
	root.SetOut(out)
	root.SetErr(stderr)

	c, err := root.ExecuteContextC(ctx)
	if err != nil && out.bytes == 0 {
		printProblem(c, err)
	}
	err = inFlags(c, err)
	var exit *exitError
	var file *sut.Error
	switch {
	case errors.As(err, &exit):
		if exit.err != nil {
			fmt.Fprintln(stderr, "netsplit:", exit.err)
		}
		return exit.code
	case err != nil && ctx.Err() != nil:
		fmt.Fprintln(stderr, "netsplit: interrupted")
		return exitInterrupted
	case errors.Is(err, model.ErrInvalid) || errors.As(err, &file) || wrongAddress(err):
		fmt.Fprintln(stderr, "netsplit:", err)
		return exitUsage
	case err != nil:
		fmt.Fprintln(stderr, "netsplit:", err)
		return exitFailed
	}
	return exitPass
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "netsplit",
		Short:         "find partition bugs in distributed systems by controlling the switch between their nodes",
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version,
	}
	root.SetFlagErrorFunc(flagError)
	var conn daemonFlags
	root.AddCommand(serveCommand(), conn.completesTarget(campaignCommand(&conn), 1), conn.completesTarget(runCommand(&conn), 1), scheduleCommand(&conn), storeCommand(&conn), configCommand(), conn.completes(replayCommand(&conn), false, runNames), conn.completes(shrinkCommand(&conn), false, runNames), runsCommand(&conn), findingsCommand(&conn), conn.completes(logsCommand(&conn), false, runNames), conn.completes(watchCommand(&conn), false, liveRunNames), conn.completes(openCommand(&conn), false, reportNames), conn.completesRecord(judgeCommand(&conn), runNames), conn.completesRecord(queryCommand(&conn), runNames), conn.completesRecord(exportCommand(&conn), runNames), conn.completesRecord(checkCommand(), runNames), pointsCommand(&conn), policyCommand(&conn), invariantsCommand(&conn),
		labCommand(), testbedCommand(&conn), annotationsCommand(&conn), eventsCommand(&conn), healthCommand(&conn), doctorCommand(&conn), partitionCommand(&conn), accessCommand(&conn), scriptCommand(&conn), targetCommand(&conn), nodeCommand(), dashboardCommand(), manCommand(), agentCommand(), clusterCommand(&conn), runnerCommand(), versionCommand(&conn))
	conn.completeFlags(root)
	wantsCommand(root)
	return root
}

// wantsCommand has a command that only has commands of its own refuse what is none of
// them; given nothing it helps.
func wantsCommand(c *cobra.Command) {
	for _, sub := range c.Commands() {
		wantsCommand(sub)
	}
	if c.Runnable() || !c.HasSubCommands() {
		return
	}
	c.Args = cobra.ArbitraryArgs     // cobra's own check is for the first level alone
	c.SuggestionsMinimumDistance = 2 // letters, as cobra does at the first level
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return c.Help()
		}
		hint := ""
		if near := c.SuggestionsFor(args[0]); len(near) > 0 {
			hint = fmt.Sprintf(" (did you mean %s?)", strings.Join(near, " or "))
		}
		return usage("unknown command %q for %q%s; see %s --help", args[0], c.CommandPath(), hint, c.CommandPath())
	}
}

// wrongAddress says whether somebody gave an address to listen on that is none, or
// none of this machine. One that is in use is right: what is there is in the way.
func wrongAddress(err error) bool {
	var op *net.OpError
	var addr *net.AddrError
	var name *net.DNSError
	return errors.As(err, &op) && op.Op == "listen" && (errors.As(op, &addr) || errors.As(op, &name) || errors.Is(op, syscall.EADDRNOTAVAIL))
}
