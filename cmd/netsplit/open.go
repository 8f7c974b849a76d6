package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"netsplit/api/client"
)

func openCommand(conn *daemonFlags) *cobra.Command {
	var runsDir, save string
	c := &cobra.Command{
		Use: "open RUN", Short: "open the report of a run in a browser, or save it",
		Long: `Fetches the report of a run, one file that needs nothing else, and opens it in the browser
of this desktop (xdg-open). Without a desktop, or with --save, it only saves the file and
prints its path.`,
		Args: exactArgs(1, "a run's id"),
		RunE: func(c *cobra.Command, args []string) error {
			return conn.read(c, runsDir, func(ctx context.Context, cl *client.Client, _ string) error {
				b, err := fetchReport(ctx, cl, args[0])
				if err != nil {
					return err
				}
				path := save
				if path == "" {
					if path, err = pagesDir(); err != nil {
						return err
					}
					path = filepath.Join(path, filepath.Base(args[0])+".html")
				}
				if err := renameio.WriteFile(path, b, 0o600); err != nil {
					return fmt.Errorf("save the report: %w", err)
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

func fetchReport(ctx context.Context, cl *client.Client, run string) ([]byte, error) {
	r, err := cl.Report(ctx, run)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(r)
	return b, errors.Join(err, r.Close())
}

// pagesDir is a folder of this user for pages that a browser opens. They hold what crossed
// the network under test, so that no other user may read them.
func pagesDir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("%w: name a file with --save", err)
	}
	dir := filepath.Join(cache, "netsplit-reports")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("%w: name a file with --save", err)
	}
	return dir, nil
}

// desktop says whether a browser can show something here.
func desktop() bool {
	_, err := exec.LookPath("xdg-open")
	return err == nil && (os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != "")
}
