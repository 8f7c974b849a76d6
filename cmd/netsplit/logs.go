package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"netsplit/api/client"
	"netsplit/model"
)

func logsCommand(conn *daemonFlags) *cobra.Command {
	var runsDir string
	var o output
	c := &cobra.Command{
		Use: "logs RUN [FILE]", Short: "list what processes of a run printed and their log files, or print one",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			return conn.read(c, runsDir, func(ctx context.Context, cl *client.Client, _ string) error {
				out := c.OutOrStdout()
				if len(args) == 2 {
					file, err := cl.RunLog(ctx, args[0], args[1])
					if err != nil {
						return err
					}
					_, err = io.Copy(out, file)
					return errors.Join(err, file.Close())
				}
				list, err := cl.RunLogs(ctx, args[0])
				if err != nil {
					return err
				}
				return printAll(o, out, list, printLogFiles)
			})
		},
	}
	c.Flags().StringVar(&runsDir, "runs-dir", "", "where the store is, if no daemon runs")
	o.register(c.Flags())
	conn.register(c)
	return c
}

func printLogFiles(out io.Writer, list []model.LogFile) error {
	return printTable(out, list, "no log files", []any{"FILE", "BYTES"}, func(f *model.LogFile) []any { return []any{f.Name, f.Bytes} })
}
