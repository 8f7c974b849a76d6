package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"netsplit/api/client"
	"netsplit/model"
	"netsplit/record/rundir"
)

func openCommand(conn *daemonFlags) *cobra.Command {
	var runsDir, save string
	c := &cobra.Command{
		Use: "open RUN|CAMPAIGN", Short: "open the report of a run or a campaign in a browser, or save it",
		Long: `Fetches the report of a run or a campaign, one file that needs nothing else, and opens it in
the browser of this desktop (xdg-open). Without a desktop, or with --save, it only saves the
file and prints its path.

The report of a campaign links to those of its runs. The command fetches these, too, those of
findings first, until they have 64 MiB, and leaves out links to others. With --save it fetches
none. Without a daemon it opens the report where it is. A campaign that goes on has a report
once a run has ended. Of what it saved without --save, the newest 10 reports stay.`,
		Args: exactArgs(1, "the id of a run or a campaign"),
		RunE: func(c *cobra.Command, args []string) error {
			return conn.read(c, runsDir, func(ctx context.Context, cl *client.Client, dir string) (err error) {
				var path string
				if model.RunNumber(args[0]) > 0 {
					path, err = saveRunReport(ctx, cl, args[0], save)
				} else {
					path, err = saveCampaignReport(ctx, cl, args[0], save, dir, c.ErrOrStderr())
				}
				if err != nil {
					return err
				}
				fmt.Fprintln(c.OutOrStdout(), path)
				if save != "" || !desktop() {
					return nil
				}
				if out, err := exec.CommandContext(ctx, "xdg-open", path).CombinedOutput(); err != nil {
					return fmt.Errorf("the browser could not be opened: xdg-open: %w: %s", err, strings.TrimSpace(string(out)))
				}
				return nil
			})
		},
	}
	c.Flags().StringVar(&save, "save", "", "save the report as this file, and open nothing")
	c.Flags().StringVar(&runsDir, "runs-dir", "", "where the store is, if no daemon runs")
	conn.register(c)
	return c
}

// saveRunReport saves the report of a run as file save, or as one of its own, and gives the path.
func saveRunReport(ctx context.Context, cl *client.Client, run, save string) (string, error) {
	b, err := fetched(cl.Report(ctx, run))
	if err != nil {
		return "", err
	}
	if save == "" {
		if save, err = pagesPath(filepath.Base(run) + ".html"); err != nil {
			return "", err
		}
	}
	return save, saved(save, b)
}

// saveCampaignReport is saveRunReport for a campaign. Without save, the runs' reports are saved
// beside it, or the path is that in dir, where the records are.
func saveCampaignReport(ctx context.Context, cl *client.Client, campaign, save, dir string, say io.Writer) (string, error) {
	page, err := fetched(cl.CampaignReport(ctx, campaign))
	switch {
	case err != nil:
		return "", err
	case save != "":
		return save, saved(save, onlyLinks(page, func(string) bool { return false }))
	case dir != "":
		return filepath.Join(dir, campaign, rundir.ReportFile), nil
	}
	if dir, err = pagesPath(filepath.Base(campaign)); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("%w: name a file with --save", err)
	}
	left, there, without := mostReports, map[string]bool{}, 0
	page = onlyLinks(page, func(run string) bool {
		have, asked := there[run]
		if asked || err != nil {
			return have
		}
		if left > 0 {
			var b []byte
			b, err = fetched(cl.Report(ctx, run))
			if err == nil {
				left -= len(b)
				if err = os.MkdirAll(filepath.Join(dir, run), 0o700); err == nil {
					err = saved(filepath.Join(dir, run, rundir.ReportFile), b)
				}
				there[run] = true
				return true
			}
			if errors.Is(err, model.ErrNotFound) || errors.Is(err, model.ErrConflict) { // somebody deleted or changed it
				err = nil
			}
		}
		there[run] = false
		without++
		return false
	})
	if err != nil {
		return "", err
	}
	if without > 0 {
		fmt.Fprintf(say, "no link in this report: %s; netsplit open RUN opens the report of one that has its record\n", model.Count(without, "run", "runs"))
	}
	path := filepath.Join(dir, rundir.ReportFile)
	return path, saved(path, page)
}

// mostReports bounds the reports of runs that are fetched with that of their campaign, in bytes.
const mostReports = 64 << 20

var (
	anchor  = regexp.MustCompile(`<a href="([^"]*)">([^<]*)</a>`)
	runLink = regexp.MustCompile(`^([a-z0-9-]{1,128})/report\.html$`)
)

// onlyLinks leaves of the links of a campaign's report those to runs that keep names; of others
// their text is left.
func onlyLinks(page []byte, keep func(run string) bool) []byte {
	return anchor.ReplaceAllFunc(page, func(a []byte) []byte {
		m := anchor.FindSubmatch(a)
		if run := runLink.FindSubmatch(m[1]); run != nil && keep(string(run[1])) {
			return a
		}
		return m[2]
	})
}

func fetched(r io.ReadCloser, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(r)
	return b, errors.Join(err, r.Close())
}

func saved(path string, page []byte) error {
	if err := renameio.WriteFile(path, page, 0o600); err != nil {
		return fmt.Errorf("save the report: %w", err)
	}
	return nil
}

// pagesPath is where a browser opens the report of a run or a campaign, a file or a folder of
// this user. It holds what crossed the network under test, so that no other user may read it.
// Reports that were opened long ago make room for it.
func pagesPath(name string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("%w: name a file with --save", err)
	}
	dir := filepath.Join(cache, "netsplit-reports")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("%w: name a file with --save", err)
	}
	return filepath.Join(dir, name), forgetPages(dir, name)
}

// mostPages is how many reports, of runs and of campaigns, are kept.
const mostPages = 10

// forgetPages removes the reports in dir that were opened longest ago, so that there is room for
// one of this name.
func forgetPages(dir, name string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("remove old reports: %w", err)
	}
	opened := map[string]time.Time{}
	var names []string
	for _, e := range entries {
		info, err := e.Info()
		if e.Name() == name || errors.Is(err, fs.ErrNotExist) { // another command removed it
			continue
		}
		if err != nil {
			return fmt.Errorf("remove old reports: %w", err)
		}
		names, opened[e.Name()] = append(names, e.Name()), info.ModTime()
	}
	slices.SortFunc(names, func(a, b string) int { return opened[b].Compare(opened[a]) })
	for len(names) >= mostPages {
		last := len(names) - 1
		if err := os.RemoveAll(filepath.Join(dir, names[last])); err != nil {
			return fmt.Errorf("remove old reports: %w", err)
		}
		names = names[:last]
	}
	return nil
}

// desktop says whether a browser can show something here.
func desktop() bool {
	_, err := exec.LookPath("xdg-open")
	return err == nil && (os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != "")
}
