package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"netsplit/campaign/judge"
	"netsplit/model"
	"netsplit/sut"
	"netsplit/sut/software"
)

// runCheck starts a target without any cut, under the settings given, and says
// what it never shows: a variable, traffic on a port, the answer of a probe. With problems
// there is an error, too.
type runCheck func(c *cobra.Command, name string, set map[string]string) (*judge.Examination, error)

func targetCheckCommand(checkRun runCheck) *cobra.Command {
	var run bool
	var set map[string]string
	var o output
	check := &cobra.Command{
		Use: "check NAME[@RELEASE]", Short: "say what is wrong with a target file, and what this machine lacks to run it",
		Args: exactArgs(1, "a target's name or file"),
		RunE: func(c *cobra.Command, args []string) error {
			if len(set) > 0 && !run {
				return usage("--set needs --run: without it nothing is started")
			}
			t, dir, err := sut.Load(args[0])
			if err != nil {
				return err
			}
			notes, err := checkMachine(t, dir)
			if err != nil {
				return err
			}
			x := checkedTarget{Name: t.Name, Release: t.Release, Nodes: len(t.Nodes), Clients: len(t.Clients), Processes: len(t.Processes),
				Variables: len(t.Variables), Checks: len(t.Checks), Notes: append([]string{}, notes...)}
			if o == outTable {
				if err := printCheckedTarget(c.OutOrStdout(), &x); err != nil { // a run takes long
					return err
				}
			}
			if !run {
				return printOne(o, c.OutOrStdout(), &x, func(io.Writer, *checkedTarget) error { return nil })
			}
			seen, failed := checkRun(c, args[0], set)
			if seen == nil {
				return failed
			}
			made := examinedOf(seen)
			x.Run = &made
			return errors.Join(printOne(o, c.OutOrStdout(), &x, func(out io.Writer, x *checkedTarget) error {
				err := printExamined(out, *x.Run)
				if err == nil && failed == nil {
					_, err = fmt.Fprintf(out, "%s runs as its file says\n", args[0])
				}
				return err
			}), failed)
		},
	}
	if checkRun != nil {
		check.Flags().BoolVar(&run, "run", false, "also make a clean run, and report variables, traffic and probes that it did not show")
		check.Flags().StringToStringVar(&set, "set", nil, "settings of the target for --run, name=value")
	}
	o.register(check.Flags())
	return check
}

// checkedTarget is what target check says of a target without mistakes.
type checkedTarget struct {
	Name      string    `json:"name"`
	Release   string    `json:"release,omitempty"`
	Nodes     int       `json:"nodes"`
	Clients   int       `json:"clients"`
	Processes int       `json:"processes"`
	Variables int       `json:"variables"`
	Checks    int       `json:"checks"`
	Notes     []string  `json:"notes"`         // about this machine
	Run       *examined `json:"run,omitempty"` // with --run
}

func printCheckedTarget(out io.Writer, t *checkedTarget) error {
	name := t.Name
	if t.Release != "" {
		name += " " + t.Release
	}
	fmt.Fprintf(out, "%s has no mistakes: %s, %s, %s, %s, %s\n",
		name, model.Count(t.Nodes, "node", "nodes"), model.Count(t.Clients, "client", "clients"), model.Count(t.Processes, "process", "processes"),
		model.Count(t.Variables, "variable", "variables"), model.Count(t.Checks, "check", "checks"))
	for _, n := range t.Notes {
		fmt.Fprintln(out, n)
	}
	return nil
}

// checkMachine looks for what a target needs of the machine: programs,
// artifacts of every release the file names, Java, memory. The error has all
// that is missing, a line each; notes is what is worth knowing.
func checkMachine(t *model.Target, dir string) (notes []string, err error) {
	errs := []error{sut.CheckNeeds(t), sut.CheckScripts(t, dir)}
	if t.Software != nil {
		chosen := t.Release
		for _, v := range t.Software.Versions {
			c := *t
			c.Release = v
			r, _, err := software.ForTarget(&c, dir)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			s, err := software.Find(r)
			switch {
			case v == chosen && err != nil:
				errs = append(errs, err)
			case v == chosen:
				notes = append(notes, fmt.Sprintf("software: %d files, %.1f MB, in %s", s.Count, float64(s.Bytes)/1e6, s.Lib))
				if s.Java != "" {
					notes = append(notes, "java: "+s.Java)
				}
			case errors.Is(err, software.ErrAbsent):
				notes = append(notes, fmt.Sprintf("release %s is not in the cache; fetch it with: %s", v, r.GetCommand()))
			case err != nil:
				notes = append(notes, fmt.Sprintf("release %s: %v", v, err))
			}
		}
	}
	note, err := sut.CheckMemory(t)
	if note != "" {
		notes = append(notes, note)
	}
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	if dir != "" {
		notes = append(notes, "files: "+filepath.Clean(dir))
	}
	return notes, nil
}
