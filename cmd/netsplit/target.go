package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"netsplit/api/client"
	"netsplit/deploy/grafana"
	"netsplit/deploy/targets"
	"netsplit/model"
	"netsplit/sut"
	"netsplit/sut/software"
)

func targetCommand(conn *daemonFlags) *cobra.Command {
	c := &cobra.Command{Use: "target", Short: "list the known targets, fetch their software, check target files, and upload them"}
	here := func() []string { return sut.Builtin(targets.FS) }
	c.AddCommand(targetListCommand(conn), completed(targetGetCommand(), 1, 1, orFiles, here), completed(targetCheckCommand(checkRunOf(conn)), 1, 1, orFiles, here),
		conn.completes(targetShowCommand(conn), false, targetNames), targetUploadCommand(conn), conn.completes(targetDeleteCommand(conn), false, uploadNames))
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

func targetListCommand(conn *daemonFlags) *cobra.Command {
	var o output
	c := &cobra.Command{
		Use: "list", Short: "list the targets that come with netsplit, their releases, and which releases are in the cache", Args: cobra.NoArgs,
		Long: `Lists the targets that come with netsplit, their releases, and which releases are in the
cache of this machine. With --api it lists the targets of a daemon: those that come with
it, and uploads.`,
		RunE: func(c *cobra.Command, args []string) error {
			if conn.named(c) {
				return conn.ask(c.Context(), func(ctx context.Context, cl *client.Client) error {
					list, err := cl.Targets(ctx)
					if err != nil {
						return err
					}
					return printAll(o, c.OutOrStdout(), list, printDaemonTargets)
				})
			}
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
	conn.register(c)
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
	var o output
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
			var have []fetchedRelease
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
				if o == outTable { // as they come
					fmt.Fprintln(c.OutOrStdout(), describeSet(r, s))
				}
				have = append(have, fetchedRelease{Software: r.String(), Files: s.Count, Bytes: s.Bytes, Lib: s.Lib, Java: s.Java})
			}
			if writeLock {
				return nil
			}
			return printAll(o, c.OutOrStdout(), have, func(io.Writer, []fetchedRelease) error { return nil })
		},
	}
	get.Flags().BoolVar(&all, "all-versions", false, "fetch every release of the target")
	get.Flags().BoolVar(&writeLock, "write-lock", false, "fetch again and print the hashes as sha256sum does, instead of comparing them")
	o.register(get.Flags())
	get.MarkFlagsMutuallyExclusive(outputFlag, "write-lock")
	return get
}

// fetchedRelease is what target get says of a release that is in the cache and verified.
type fetchedRelease struct {
	Software string `json:"software"` // product and release
	Files    int    `json:"files,omitempty"`
	Bytes    int64  `json:"bytes,omitempty"`
	Lib      string `json:"lib,omitempty"`  // folder of the files
	Java     string `json:"java,omitempty"` // path of its Java
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
