package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"netsplit/deploy/grafana"
	"netsplit/deploy/targets"
	"netsplit/model"
	"netsplit/sut"
	"netsplit/sut/software"
)

// runCheck starts a target without any cut, under the settings given, and says
// what it never shows: a variable, traffic on a port, the answer of a probe.
type runCheck func(c *cobra.Command, name string, set map[string]string) error

func targetCommand(checkRun runCheck) *cobra.Command {
	c := &cobra.Command{Use: "target", Short: "list the known targets, fetch their software, check target files"}
	c.AddCommand(targetListCommand(), targetGetCommand(), targetCheckCommand(checkRun))
	return c
}

// targetRow is what target list says of a target.
type targetRow struct {
	Name     string   `json:"name"`
	Title    string   `json:"title,omitempty"`
	Releases []string `json:"releases,omitempty"` // default first; none: Debian packages
	Cached   []string `json:"cached,omitempty"`   // those that could start now
	Error    string   `json:"error,omitempty"`    // why it cannot be used
}

func targetListCommand() *cobra.Command {
	var o output
	c := &cobra.Command{
		Use: "list", Short: "list the targets that come with netsplit, their releases, and which releases are in the cache", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, args []string) error {
			var rows []targetRow
			for _, name := range sut.Builtin(targets.FS) {
				row := targetRow{Name: name}
				t, dir, err := sut.Load(name)
				if err == nil {
					row.Title = t.Title
					row.Releases, row.Cached, err = listReleases(t, dir)
				}
				if err != nil { // the others are of use all the same
					row.Error = err.Error()
				}
				rows = append(rows, row)
			}
			return printAll(o, c.OutOrStdout(), rows, printTargets)
		},
	}
	o.register(c.Flags())
	return c
}

func printTargets(out io.Writer, rows []targetRow) error {
	w := newTable(out, "TARGET", "RELEASES (first: default)", "IN CACHE", "TITLE")
	for _, r := range rows {
		releases := strings.Join(r.Releases, " ")
		switch {
		case r.Error != "":
			w.row(r.Name, "-", "-", "cannot be used: see netsplit target check "+r.Name)
			continue
		case releases == "":
			releases = "Debian packages"
		}
		w.row(r.Name, releases, cmp.Or(strings.Join(r.Cached, " "), "-"), r.Title)
	}
	return w.end()
}

// listReleases lists the releases of a target, default first, and those that could start
// now; none of Debian packages.
func listReleases(t *model.Target, dir string) (all, have []string, err error) {
	if t.Software == nil {
		return nil, nil, nil
	}
	all = []string{t.Software.Default}
	for _, v := range t.Software.Versions {
		if v != t.Software.Default {
			all = append(all, v)
		}
	}
	for _, t.Release = range all {
		r, _, err := software.ForTarget(t, dir)
		if err != nil {
			return nil, nil, err
		}
		if _, err := software.Find(r); err == nil {
			have = append(have, t.Release)
		}
	}
	return all, have, nil
}

func targetGetCommand() *cobra.Command {
	var all, writeLock bool
	get := &cobra.Command{
		Use: "get NAME[@RELEASE]", Short: "fetch the software of a target into the cache and verify all of it",
		Long: `Fetches the jars, agents and Java of a target's release with mvn and pip, and
builds its programs with go (with their configured mirrors and proxies), and
verifies every file by its SHA-256; of a built program, the list of its modules.
Files in the cache are verified again.

NAME is a target, built in or a file, or a product of the catalogue (` + strings.Join(software.Products(), ", ") + `).
The cache is $NETSPLIT_CACHE, or netsplit in the user's cache directory.`,
		Args: exactArgs(1, "a target's name or file"),
		RunE: func(c *cobra.Command, args []string) error {
			releases, err := releasesOf(args[0], all)
			if err != nil {
				return err
			}
			for _, r := range releases {
				if writeLock {
					lock, err := software.Pin(c.Context(), r, c.ErrOrStderr())
					if err != nil {
						return err
					}
					if _, err := c.OutOrStdout().Write(lock); err != nil {
						return err
					}
					continue
				}
				s, err := software.Get(c.Context(), r, c.ErrOrStderr())
				if err != nil {
					return err
				}
				fmt.Fprintln(c.OutOrStdout(), describeSet(r, s))
			}
			return nil
		},
	}
	get.Flags().BoolVar(&all, "all-versions", false, "fetch every release of the target")
	get.Flags().BoolVar(&writeLock, "write-lock", false, "fetch again and print the hashes as sha256sum does, instead of comparing them")
	return get
}

func describeSet(r software.Release, s software.Set) string {
	var parts []string
	if s.Count > 0 {
		parts = append(parts, fmt.Sprintf("%d files, %.1f MB, in %s", s.Count, float64(s.Bytes)/1e6, s.Lib))
	}
	if s.Java != "" {
		parts = append(parts, "java is "+s.Java)
	}
	return r.String() + ": verified: " + strings.Join(parts, "; ")
}

// releasesOf finds what a name stands for: a release of a target, or, with all,
// every one; or of a product of the catalogue.
func releasesOf(name string, all bool) ([]software.Release, error) {
	t, dir, err := sut.Load(name)
	if err != nil {
		product, release, _ := strings.Cut(name, "@")
		has := software.Releases(product)
		if len(has) == 0 || slices.Contains(sut.Builtin(targets.FS), product) && !slices.Contains(has, release) {
			return nil, err
		}
		versions := []string{release}
		if all {
			versions = has
		} else if release == "" {
			return nil, usage("name a release, as %s@%s: there are %s", product, has[0], strings.Join(has, ", "))
		}
		var out []software.Release
		for _, v := range versions {
			r, err := software.Load(product, v, "")
			if err != nil {
				return nil, err
			}
			out = append(out, r)
		}
		return out, nil
	}
	if t.Software == nil {
		if err := sut.CheckNeeds(t); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("nothing to fetch for target %s: it runs on Debian packages", t.Name)
	}
	versions := []string{t.Release}
	if all {
		versions = t.Software.Versions
	}
	var out []software.Release
	for _, t.Release = range versions {
		r, _, err := software.ForTarget(t, dir)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

func targetCheckCommand(checkRun runCheck) *cobra.Command {
	var run bool
	var set map[string]string
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
			name := t.Name
			if t.Release != "" {
				name += " " + t.Release
			}
			fmt.Fprintf(c.OutOrStdout(), "%s has no mistakes: %s, %s, %s, %s, %s\n",
				name, model.Count(len(t.Nodes), "node", "nodes"), model.Count(len(t.Clients), "client", "clients"), model.Count(len(t.Processes), "process", "processes"),
				model.Count(len(t.Variables), "variable", "variables"), model.Count(len(t.Checks), "check", "checks"))
			for _, n := range notes {
				fmt.Fprintln(c.OutOrStdout(), n)
			}
			if run {
				return checkRun(c, args[0], set)
			}
			return nil
		},
	}
	if checkRun != nil {
		check.Flags().BoolVar(&run, "run", false, "also make a clean run, and report variables, traffic and probes that it did not show")
		check.Flags().StringToStringVar(&set, "set", nil, "settings of the target for --run, name=value")
	}
	return check
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

func dashboardCommand() *cobra.Command {
	return &cobra.Command{
		Use: "dashboard [NAME]", Short: "print a Grafana dashboard: " + strings.Join(grafana.Names(), ", "), Args: cobra.MaximumNArgs(1), ValidArgs: grafana.Names(),
		Long: `Prints the JSON of a Grafana dashboard, for its import page: partitions (what was cut, and
whether the cuts held; the default), campaigns (what they do and found) or daemon (whether
it can work, and what it takes).`,
		RunE: func(c *cobra.Command, args []string) error {
			name := append(args, grafana.Partitions)[0]
			b := grafana.Dashboard(name)
			if b == nil {
				return usage("no dashboard %q: use one of %v", name, grafana.Names())
			}
			_, err := c.OutOrStdout().Write(b)
			return err
		},
	}
}
