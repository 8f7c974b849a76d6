package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"netsplit/api/client"
	"netsplit/api/wire"
)

func testbedHostsCommand(conn *daemonFlags) *cobra.Command {
	var o output
	c := &cobra.Command{
		Use: "hosts", Short: "list the hosts of the daemon's testbed, and the switch ports that they are on", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return conn.ask(c.Context(), func(ctx context.Context, cl *client.Client) error {
				list, err := cl.Hosts(ctx)
				if err != nil {
					return err
				}
				return printAll(o, c.OutOrStdout(), list, printHosts)
			})
		},
	}
	o.register(c.Flags())
	conn.register(c)
	return c
}

func printHosts(out io.Writer, list []wire.Host) error {
	nothing := "no hosts: the daemon has no testbed, and no campaign has labs now"
	return printTable(out, list, nothing, []any{"HOST", "IP", "MAC", "DATAPATH", "PORT"}, func(h *wire.Host) []any {
		port := "-" // of a host without a switch
		switch {
		case h.Datapath == "":
		case h.Port == 0:
			port = h.PortName + ", which the switch does not have"
		case h.PortName != "":
			port = fmt.Sprintf("%s (%d)", h.PortName, h.Port)
		default:
			port = fmt.Sprint(h.Port)
		}
		return []any{h.Name, h.IP, h.MAC, cmp.Or(h.Datapath, "-"), port}
	})
}

func testbedSwitchesCommand(conn *daemonFlags) *cobra.Command {
	var rules bool
	var o output
	c := &cobra.Command{
		Use: "switches", Short: "list the daemon's switches, or the rules in them", Args: cobra.NoArgs,
		Long: `Lists the switches that are connected to the daemon, and those of its testbed that are not.
With --rules it lists all rules in them, those of others too.`,
		RunE: func(c *cobra.Command, _ []string) error {
			return conn.ask(c.Context(), func(ctx context.Context, cl *client.Client) error {
				list, err := cl.Switches(ctx)
				if err != nil {
					return err
				}
				if rules {
					return printAll(o, c.OutOrStdout(), rulesOf(list), printRules)
				}
				return printAll(o, c.OutOrStdout(), list, printSwitches)
			})
		},
	}
	c.Flags().BoolVar(&rules, "rules", false, "list the rules in the switches")
	o.register(c.Flags())
	conn.register(c)
	return c
}

func printSwitches(out io.Writer, list []wire.Switch) error {
	head := []any{"DATAPATH", "STATE", "ROLE", "ADDRESS", "SINCE", "HOSTS", "RULES", "CUTS BY", "SWITCH", "REASON"}
	return printTable(out, list, "no switch is connected", head, func(s *wire.Switch) []any {
		state, since := "not connected", "-"
		if s.Connected {
			state = "connected"
		}
		if s.Since != nil {
			since = localTime(*s.Since)
		}
		var hosts []string
		for _, p := range s.Ports {
			switch {
			case p.Host == "":
			case p.Up:
				hosts = append(hosts, string(p.Host))
			default:
				hosts = append(hosts, string(p.Host)+" (port down)")
			}
		}
		return []any{s.Datapath, state, cmp.Or(s.Role, "-"), cmp.Or(s.Address, "-"), since, cmp.Or(strings.Join(hosts, ","), "-"), len(s.Flows), cmp.Or(s.Cuts, "-"),
			cmp.Or(strings.TrimSpace(s.Hardware+" "+s.Software), "-"), cmp.Or(s.Reason, "-")}
	})
}

// switchRule is a rule and the switch that has it.
type switchRule struct {
	Datapath string `json:"datapath"`
	wire.Flow
}

func rulesOf(list []wire.Switch) (out []switchRule) {
	for _, s := range list {
		for _, f := range s.Flows {
			out = append(out, switchRule{s.Datapath, f})
		}
	}
	return out
}

func printRules(out io.Writer, list []switchRule) error {
	head := []any{"DATAPATH", "TABLE", "PRIORITY", "INSTALLED BY", "PACKETS", "BYTES", "AGE", "EXPIRES AFTER", "MATCH", "ACTIONS"}
	return printTable(out, list, "no rules", head, func(r *switchRule) []any {
		by, expires := "another", "-"
		if r.Ours {
			by = "netsplit"
		}
		if r.HardTimeout > 0 {
			expires = r.HardTimeout.String()
		}
		return []any{r.Datapath, r.Table, r.Priority, by, r.Packets, r.Bytes, time.Duration(r.Age).Round(time.Second), expires, r.Match, r.Actions}
	})
}
