package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"netsplit/campaign/target"
	"netsplit/deploy/grafana"
	"netsplit/deploy/targets"
)

func targetCommand() *cobra.Command {
	c := &cobra.Command{Use: "target", Short: "list the known targets and check target files"}
	list := &cobra.Command{
		Use: "list", Short: "list the targets that come with netsplit", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, args []string) error {
			w := tabwriter.NewWriter(c.OutOrStdout(), 0, 4, 2, ' ', 0)
			for _, name := range target.Builtin(targets.FS) {
				t, _, err := target.Load(name)
				if err != nil {
					return err
				}
				fmt.Fprintf(w, "%s\t%s\n", name, t.Title)
			}
			return w.Flush()
		},
	}
	check := &cobra.Command{
		Use: "check TARGET", Short: "say what is wrong with a target file, and which programs it lacks", Args: exactArgs(1, "a target's name or file"),
		RunE: func(c *cobra.Command, args []string) error {
			t, _, err := target.Load(args[0])
			if err != nil {
				return err
			}
			if err := target.CheckNeeds(t); err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "%s is in order: %d nodes, %d clients, %d processes, %d variables, %d checks\n",
				t.Name, len(t.Nodes), len(t.Clients), len(t.Processes), len(t.Variables), len(t.Checks))
			return nil
		},
	}
	c.AddCommand(list, check)
	return c
}

func dashboardCommand() *cobra.Command {
	return &cobra.Command{
		Use: "dashboard", Short: "print the Grafana dashboard of the injected partitions", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, args []string) error {
			_, err := c.OutOrStdout().Write(grafana.Dashboard())
			return err
		},
	}
}
