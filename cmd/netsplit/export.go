package main

import (
	"context"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"netsplit/api/client"
	"netsplit/model"
	"netsplit/record/export"
	"netsplit/record/rundir"
)

func exportCommand(conn *daemonFlags) *cobra.Command {
	var runsDir, file, format string
	c := &cobra.Command{
		Use:   "export RUN",
		Short: "write the record of a run as a log for ShiViz, or as a trace for Perfetto",
		Long: "Writes what happened in a run (RUN is its id below --runs-dir, or its directory) in a format of another tool: " +
			"shiviz is a log with vector clocks, trace is JSON for ui.perfetto.dev and chrome://tracing. A message leaves when it came to the switch, " +
			"and arrives when the switch let it pass. The packets are in the record, as packets.pcapng. With --api RUN is an id, and a daemon writes.",
		Example: "  netsplit export c-20261125-030405-1-r0003 --format shiviz --file run.log",
		Args:    exactArgs(1, "a run's id or directory"),
		RunE: func(c *cobra.Command, args []string) error {
			f := model.ExportFormat(format)
			if !slices.Contains(model.ExportFormats(), f) {
				return usage("--format %q: use one of %v", format, model.ExportFormats())
			}
			if err := newFile(file); err != nil {
				return err
			}
			if conn.named(c) {
				return conn.ask(c.Context(), func(ctx context.Context, cl *client.Client) error {
					from, err := cl.ExportRun(ctx, args[0], f)
					if err != nil {
						return err
					}
					return writeStream(c.OutOrStdout(), file, from)
				})
			}
			dir, err := findRun(runsDir, args[0])
			if err != nil {
				return err
			}
			write := func(w io.Writer) error { return export.Write(c.Context(), w, dir, f, 0) }
			if file == "" {
				return write(c.OutOrStdout())
			}
			return rundir.WriteFile(file, write)
		},
	}
	f := c.Flags()
	f.StringVar(&format, "format", string(model.ExportShiViz), "shiviz or trace")
	f.StringVar(&file, "file", "", "write to this new file instead of the standard output")
	f.StringVar(&runsDir, "runs-dir", "runs", "where the records are")
	conn.register(c)
	return c
}
