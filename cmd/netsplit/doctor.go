package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"netsplit/api/client"
	"netsplit/controller"
	"netsplit/controller/of13"
	"netsplit/model"
	"netsplit/testbed/doctor"
)

func doctorCommand(conn *daemonFlags) *cobra.Command {
	var file, openflow string
	var wait time.Duration
	var o output
	var switches switchFlags
	cmd := &cobra.Command{
		Use:   "doctor [--testbed FILE]",
		Short: "examine a testbed and say what will work",
		Long: `Examines the switches and hosts of a testbed and says what will work on them:
manual partitions, their proof, the gate by packet-in and by a gate port, the mirror.
It leaves nothing behind, and the rules that it tries match no real packets.

With --testbed it takes the place of netsplit serve and waits for the switches.
Without, a running daemon (--api) examines its own testbed. It stops nothing and
leaves out checks that would disturb a campaign or a manual partition.

Exit status 1 if the main job cannot be done: cuts, their proof, and one of the
two gates.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			examine := func() (model.Diagnosis, error) { return conn.examine(c.Context()) }
			if file != "" {
				for _, name := range daemonFlagNames {
					if c.Flags().Changed(name) {
						return usage("--testbed and --%s exclude one another: the daemon examines the testbed that it drives", name)
					}
				}
				examine = func() (model.Diagnosis, error) { return examineFile(c.Context(), file, openflow, wait, &switches) }
			} else if c.Flags().Changed("openflow") || c.Flags().Changed("wait") || switches.specified() {
				return usage("--openflow, --wait and --tls-* need --testbed; see %s --help", c.CommandPath())
			}
			d, err := examine()
			if err != nil {
				return err
			}
			if err := c.Context().Err(); err != nil {
				return err
			}
			if err := printOne(o, c.OutOrStdout(), d, printDiagnosis); err != nil {
				return err
			}
			if !d.OK {
				return &exitError{exitFailed, fmt.Errorf("testbed %s is not fit for the main job", d.Testbed)}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&file, "testbed", "", "testbed file to examine; default: the testbed of a running daemon")
	f.StringVar(&openflow, "openflow", "127.0.0.1:6653", "address that switches connect to")
	f.DurationVar(&wait, "wait", 15*time.Second, "how long to wait for the switches to connect")
	o.register(f)
	switches.registerTrust(f)
	conn.register(cmd)
	return cmd
}

func (d *daemonFlags) examine(ctx context.Context) (model.Diagnosis, error) {
	var got model.Diagnosis
	daemon, err := d.client()
	if err == nil {
		got, err = daemon.Examine(ctx)
	}
	if errors.Is(err, client.ErrNoDaemon) {
		return model.Diagnosis{}, fmt.Errorf("%w: name the testbed file to examine (--testbed), or the daemon (--api)", err)
	}
	return got, err
}

func examineFile(ctx context.Context, file, openflow string, wait time.Duration, switches *switchFlags) (model.Diagnosis, error) {
	tb, err := readTestbed(file)
	if err != nil {
		return model.Diagnosis{}, err
	}
	if tb.Backend == model.BackendNFTables {
		return model.Diagnosis{}, usage("testbed %s has no switch to examine (backend: %s): netsplit serve tests every host when it starts, and reports what is wrong", tb.Name, tb.Backend)
	}
	conf, allowed, err := switches.load(tb)
	if err != nil {
		return model.Diagnosis{}, err
	}
	exe, err := binary()
	if err != nil {
		return model.Diagnosis{}, err
	}
	var refused refusals
	// As equal: a master that is there stays.
	ctrl, err := controller.Listen(controller.Config{Addr: openflow, TLS: conf, Allowed: allowed, Role: of13.RoleEqual, Refused: refused.add})
	if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("%w; if netsplit serve runs there, leave out --testbed: it then examines its own testbed (--api)", err)
	}
	if err != nil {
		return model.Diagnosis{}, fmt.Errorf("listen for switches (--openflow): %w", err)
	}
	defer ctrl.Close()
	return doctor.Examine(ctx, doctor.Config{Testbed: *tb, Controller: ctrl, Binary: exe, Wait: wait, TLS: conf != nil, Refused: refused.latest}), nil
}

// latest keeps the last few different ones.
func latest(all []string) []string {
	var out []string
	seen := map[string]bool{}
	for i := len(all) - 1; i >= 0 && len(out) < 3; i-- {
		if !seen[all[i]] {
			out = append(out, all[i])
		}
		seen[all[i]] = true
	}
	return out
}

func printDiagnosis(out io.Writer, d model.Diagnosis) error {
	t := newTable(out)
	about := ""
	for _, c := range d.Checks {
		if c.About != about {
			about = c.About
			t.say(about)
		}
		t.row("  "+c.Level, c.Name, c.Found)
		if c.Means != "" {
			t.row("  ", "", "→ "+c.Means)
		}
	}
	t.say("what will work")
	for _, a := range d.Abilities {
		level := string(a.Level)
		if a.Absent {
			level = "none"
		}
		t.row("  "+level, a.Ability, strings.Join(a.Why, "; "))
	}
	return t.end()
}
