package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"netsplit/campaign/doctor"
	"netsplit/campaign/testbed"
	"netsplit/controller"
	"netsplit/controller/of13"
	"netsplit/model"
)

func doctorCommand() *cobra.Command {
	var file, openflow string
	var wait time.Duration
	var asJSON bool
	var switches switchFlags
	cmd := &cobra.Command{
		Use:   "doctor --testbed FILE",
		Short: "examine a testbed and say what will work",
		Long: `Examines the switches and hosts of a testbed file and says what will work on
them: cuts by hand, their proof, the gate by packet-in and by a gate port, the
mirror. It listens for the switches as netsplit serve does, in place of it, and
leaves nothing behind; rules that it tries match nobody's packets.

Exit status 1 if the main job cannot be done: cuts, their proof, and the gate in
one of its two ways.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if file == "" {
				return usage("--testbed is missing: name the testbed file; see %s --help", c.CommandPath())
			}
			tb, err := testbed.Read(file)
			if err != nil {
				return err
			}
			conf, allowed, err := switches.load(tb)
			if err != nil {
				return err
			}
			exe, err := binary()
			if err != nil {
				return err
			}
			var refused refusals
			// As equal: a master that is there stays.
			ctrl, err := controller.Listen(controller.Config{Addr: openflow, TLS: conf, Allowed: allowed, Role: of13.RoleEqual, Refused: refused.add})
			if err != nil {
				return fmt.Errorf("listen for switches (--openflow): %w; netsplit serve must not run there meanwhile", err)
			}
			defer ctrl.Close()
			d := doctor.Examine(c.Context(), doctor.Config{Testbed: *tb, Controller: ctrl, Binary: exe, Wait: wait,
				Refused: refused.latest})
			if err := c.Context().Err(); err != nil {
				return err
			}
			if err := printDiagnosis(c.OutOrStdout(), d, asJSON); err != nil {
				return err
			}
			if !d.OK {
				return &exitError{exitFailed, fmt.Errorf("testbed %s is not fit for the main job", d.Testbed)}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&file, "testbed", "", "testbed file to examine")
	f.StringVar(&openflow, "openflow", "127.0.0.1:6653", "address that switches connect to")
	f.DurationVar(&wait, "wait", 15*time.Second, "how long to wait for the switches to connect")
	f.BoolVar(&asJSON, "json", false, "print the diagnosis as JSON")
	switches.registerTrust(f)
	return cmd
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

func printDiagnosis(out io.Writer, d model.Diagnosis, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return enc.Encode(d)
	}
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	about := ""
	for _, c := range d.Checks {
		if c.About != about {
			about = c.About
			fmt.Fprintf(w, "%s\n", about)
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", c.Level, c.Name, c.Found)
		if c.Means != "" {
			fmt.Fprintf(w, "  \t\t→ %s\n", c.Means)
		}
	}
	fmt.Fprintln(w, "what will work")
	for _, a := range d.Abilities {
		level := string(a.Level)
		if a.Absent {
			level = "none"
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", level, a.Ability, strings.Join(a.Why, "; "))
	}
	return w.Flush()
}
