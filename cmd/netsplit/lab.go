package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"netsplit/model"
	"netsplit/testbed/config"
	"netsplit/testbed/lab"
)

func labCommand() *cobra.Command {
	c := &cobra.Command{Use: "lab", Short: "make and remove testbeds of network namespaces on this machine (root)"}
	var hosts, controller, file, gate string
	up := &cobra.Command{
		Use:   "up NAME",
		Short: "make a lab and print its testbed file",
		Args:  exactArgs(1, "the lab's name"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := model.Gate(gate).Validate(); err != nil {
				return usage("--gate: %w", err)
			}
			var ids []model.NodeID
			for _, h := range strings.Split(hosts, ",") {
				ids = append(ids, model.NodeID(strings.TrimSpace(h)))
			}
			l, err := lab.Up(c.Context(), lab.Spec{Name: args[0], Hosts: ids, Controller: controller, NoGate: model.Gate(gate) == model.GateByPacketIn})
			if err != nil {
				return err
			}
			for _, w := range l.Warnings() {
				fmt.Fprintln(c.ErrOrStderr(), "warning:", w)
			}
			if file != "" {
				t := l.Testbed()
				return config.Write(file, &t, outputMode)
			}
			return yaml.NewEncoder(c.OutOrStdout()).Encode(l.Testbed())
		},
	}
	up.Flags().StringVar(&hosts, "hosts", "n1,n2,n3,c1,c2", "hosts, in port order")
	up.Flags().StringVar(&controller, "controller", "tcp:127.0.0.1:6653", "address of netsplit serve for the lab's switch")
	up.Flags().StringVar(&gate, "gate", string(model.GateByPort), "port (the lab gets a gate port) or packet-in (it gets none)")
	up.Flags().StringVar(&file, "testbed", "", "write the testbed file here instead of printing it")
	down := &cobra.Command{
		Use:   "down [NAME...]",
		Short: "remove labs; without a name, remains of killed ones",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				fmt.Fprintln(c.OutOrStdout(), "removing remains of killed labs; running labs stay: name those to remove")
				return lab.Default().Collect(c.Context())
			}
			for _, name := range args {
				if err := lab.Down(c.Context(), name); err != nil {
					return err
				}
			}
			return nil
		},
	}
	c.AddCommand(up, down, labStatusCommand())
	return c
}

func labStatusCommand() *cobra.Command {
	var o output
	c := &cobra.Command{
		Use:   "status [NAME]",
		Short: "list the labs of this machine",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			list, err := lab.List(c.Context())
			if err != nil {
				return err
			}
			if len(args) == 1 {
				list = slices.DeleteFunc(list, func(s lab.Status) bool { return s.Name != args[0] })
				if len(list) == 0 {
					return fmt.Errorf("no lab %q: netsplit lab status lists the labs", args[0])
				}
			}
			return printAll(o, c.OutOrStdout(), list, printLabs)
		},
	}
	o.register(c.Flags())
	return c
}

func printLabs(out io.Writer, list []lab.Status) error {
	t := newTable(out, "LAB", "STATE", "BRIDGE", "DATAPATH", "HOSTS", "CONTROLLER", "OWNER")
	var dirs []string
	for _, s := range list {
		dirs = append(dirs, s.OVSRunDir)
		var hosts []string
		for _, h := range s.Hosts {
			hosts = append(hosts, string(h.Name))
		}
		owner := "none"
		if s.Owner != 0 {
			owner = fmt.Sprintf("process %d", s.Owner)
			if !s.OwnerAlive {
				owner += " (dead: the next up or down removes the lab)"
			}
		}
		control := "none"
		if s.Controller != "" {
			control = s.Controller
			if !s.Connected {
				control += " (not connected)"
			}
		}
		t.row(s.Name, s.Phase, s.Bridge, s.Datapath, strings.Join(hosts, ","), control, owner)
	}
	slices.Sort(dirs)
	for _, dir := range slices.Compact(dirs) {
		t.say(fmt.Sprintf("their Open vSwitch: ovs-vsctl --db=unix:%s/db.sock show, ovs-ofctl -O OpenFlow13 dump-flows unix:%s/BRIDGE.mgmt", dir, dir))
	}
	return t.end()
}

func binary() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program's own file: %w", err)
	}
	return path, nil
}

func exactArgs(n int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != n {
			return usage("%s takes %s; see %s --help", c.CommandPath(), what, c.CommandPath())
		}
		return nil
	}
}

// labsFlag says how many runs are made at once; 0 leaves it to the daemon.
func labsFlag(f *pflag.FlagSet, labs *int) {
	f.IntVar(labs, "labs", 0, "labs used at once (default 1); of a daemon with runners: runs at once (default: as many as they have room for)")
}

// requireCount refuses flags that are given as less than 1: to the daemon, 0 means that the flag
// was not given.
func requireCount(c *cobra.Command, flags ...string) error {
	for _, name := range flags {
		if n, err := c.Flags().GetInt(name); err != nil || n < 1 && c.Flags().Changed(name) {
			return usage("--%s %s: use 1 or more; see %s --help", name, c.Flags().Lookup(name).Value, c.CommandPath())
		}
	}
	return nil
}

// requirePositive refuses flags that are given a time of 0 or less: to the daemon, 0 means that
// the flag was not given.
func requirePositive(c *cobra.Command, flags ...string) error {
	for _, name := range flags {
		if d, err := c.Flags().GetDuration(name); err != nil || d <= 0 && c.Flags().Changed(name) {
			return usage("--%s %v: write a time greater than 0, such as 30s, or leave it out; see %s --help", name, d, c.CommandPath())
		}
	}
	return nil
}
