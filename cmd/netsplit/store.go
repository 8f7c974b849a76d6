package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"netsplit/api/client"
	"netsplit/inference/store"
)

func storeCommand(conn *daemonFlags) *cobra.Command {
	c := &cobra.Command{Use: "store", Short: "back up, restore, compact and prune what the daemon keeps"}
	c.AddCommand(storeBackupCommand(conn), storeRestoreCommand(), storeCompactCommand(), storePruneCommand(conn))
	return c
}

// storeFile is what commands say of a store that they wrote.
type storeFile struct {
	File   string `json:"file"`
	Bytes  int64  `json:"bytes,omitempty"`
	Before int64  `json:"before,omitempty"` // compact: bytes that it had
	From   string `json:"from,omitempty"`   // restore: the copy
	Kept   string `json:"kept,omitempty"`   // restore: where the store before is
}

func storeBackupCommand(conn *daemonFlags) *cobra.Command {
	var runsDir string
	var o output
	c := &cobra.Command{
		Use: "backup FILE", Short: "write a copy of the store, all of one moment, while the daemon runs",
		Long: `Writes a copy of the store of your running daemon, or of the one in --runs-dir, as a new
file. The store has campaigns, runs, findings, invariants and schedules. It does not have
records of runs, uploaded targets, and the keys in the folders cluster and access: copy
these with any other tool (docs/operating.md).`,
		Args: exactArgs(1, "a new file"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := newFile(args[0]); err != nil {
				return err
			}
			return conn.read(c, runsDir, func(ctx context.Context, cl *client.Client, _ string) error {
				from, err := cl.Backup(ctx)
				if err != nil {
					return err
				}
				n, err := save(args[0], from)
				if err = errors.Join(err, from.Close()); err != nil {
					return err
				}
				return printOne(o, c.OutOrStdout(), storeFile{File: args[0], Bytes: n}, func(out io.Writer, s storeFile) error {
					_, err := fmt.Fprintf(out, "%s: %d bytes\n", s.File, s.Bytes)
					return err
				})
			})
		},
	}
	o.register(c.Flags())
	c.Flags().StringVar(&runsDir, "runs-dir", "", "where the store is, if no daemon runs")
	conn.register(c)
	return c
}

// save writes a file that is whole as soon as it is there.
func save(path string, from io.Reader) (int64, error) {
	f, err := renameio.NewPendingFile(path, renameio.WithPermissions(0o600))
	if err != nil {
		return 0, fmt.Errorf("save %s: %w", path, err)
	}
	defer func() { _ = f.Cleanup() }()
	n, err := io.Copy(f, from)
	if err == nil {
		err = f.CloseAtomicallyReplace()
	}
	if err != nil {
		return n, fmt.Errorf("save %s: %w", path, err)
	}
	return n, nil
}

func storeRestoreCommand() *cobra.Command {
	var runsDir string
	var o output
	c := &cobra.Command{
		Use: "restore FILE", Short: "put a copy in the place of the store; the daemon must be down",
		Long: `Puts a copy that store backup made in the place of the store in --runs-dir. It first checks
that this netsplit can open the copy. What was there is kept beside it.`,
		Args: exactArgs(1, "a file that store backup made"),
		RunE: func(c *cobra.Command, args []string) error {
			kept, err := store.Restore(args[0], storePath(runsDir))
			if err != nil {
				return err
			}
			return printOne(o, c.OutOrStdout(), storeFile{File: storePath(runsDir), From: args[0], Kept: kept}, func(out io.Writer, s storeFile) error {
				_, err := fmt.Fprintf(out, "%s is restored from %s\n", s.File, s.From)
				if err == nil && s.Kept != "" {
					_, err = fmt.Fprintf(out, "the store before is %s\n", s.Kept)
				}
				return err
			})
		},
	}
	o.register(c.Flags())
	c.Flags().StringVar(&runsDir, "runs-dir", defaultRunsDir, "where the records are")
	return c
}

func storeCompactCommand() *cobra.Command {
	var runsDir string
	var o output
	c := &cobra.Command{
		Use: "compact", Short: "write the store anew without what it no longer holds; the daemon must be down", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := storeIn(runsDir); err != nil {
				return err
			}
			before, after, err := store.Compact(storePath(runsDir))
			if err != nil {
				return err
			}
			return printOne(o, c.OutOrStdout(), storeFile{File: storePath(runsDir), Bytes: after, Before: before}, func(out io.Writer, s storeFile) error {
				_, err := fmt.Fprintf(out, "%s: %d bytes, were %d\n", s.File, s.Bytes, s.Before)
				return err
			})
		},
	}
	o.register(c.Flags())
	c.Flags().StringVar(&runsDir, "runs-dir", defaultRunsDir, "where the records are")
	return c
}
