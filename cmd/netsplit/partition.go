package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"netsplit/api/client"
	"netsplit/api/wire"
	"netsplit/model"
)

// proofWait is how long a command waits for the daemon's proof.
const proofWait = 30 * time.Second

// tellAfter is how long it waits before it says why a cut is not in force yet.
const tellAfter = time.Second

func partitionCommand(conn *daemonFlags) *cobra.Command {
	c := &cobra.Command{Use: "partition", Short: "cut and heal the testbed of a running daemon"}
	var o output
	c.AddCommand(partitionCut(conn, &o), conn.completes(partitionHeal(conn, &o), true, partitionNames), partitionList(conn, &o), conn.completes(partitionShow(conn, &o), false, partitionNames))
	for _, sub := range c.Commands() {
		o.register(sub.Flags())
	}
	conn.register(c.Commands()...)
	return c
}

func partitionCut(conn *daemonFlags, o *output) *cobra.Command {
	var spec wire.PartitionSpec
	var only []string
	var last time.Duration
	var noWait bool
	var file string
	cmd := &cobra.Command{
		Use:   "cut SHAPE [GROUP...] | cut --file FILE",
		Short: "cut, and wait until it is proved that nothing passes",
		Long: `Cuts hosts of the daemon's testbed (netsplit serve --testbed FILE) from one
another, and returns when it is proved that nothing passes. A group is a list of
hosts with commas and no blanks: n1,n2 is one group, n1 n2 are two.

  complete a b,c d,e      the groups from one another; every host is in one
  partial a b             two groups; the others reach both
  simplex a b             packets from b to a are lost, packets from a to b pass
  isolate a               a from all others
  bridge c                halves of the others, which both reach c
  bridge c a,b d,e        the same with the halves named
  ring [a,b,c,d,e]        each reaches a majority, no two the same
  split --label rack      hosts that differ in a label of the testbed file
  leader-in [a,b,c]       those of a,b,c that have a role now, from all others
  leader-out [a,b,c]      one of a,b,c that does not have the role, from all others

For leader-in and leader-out, --size is the number of hosts to cut off; they still
reach one another. leader-in adds hosts without the role up to --size, and cuts off
all hosts with the role even if they are more. Without a list, a,b,c are the hosts
of the role. Other shapes take no --size.

--only cuts some traffic: tcp, udp, icmp, arp (with neighbour discovery), a port
of tcp or udp, or only packets that open TCP connections:

  netsplit partition cut simplex a b --only tcp-opening    b opens none to a
  netsplit partition cut isolate a --only udp/53 --for 10s`,
		Example: "  netsplit partition cut isolate n1 --for 30s\n  netsplit partition heal --all",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 && file == "" {
				return usage("which shape? one of %s", shapeNames())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) (err error) {
			if file != "" {
				if spec, err = readPartition(c, file, args); err != nil {
					return err
				}
				return cut(c, conn, o, spec, noWait)
			}
			if !slices.Contains(model.Shapes(), model.Shape(args[0])) {
				return usage("unknown shape %q: use one of %s", args[0], shapeNames())
			}
			if err := requirePositive(c, "for"); err != nil {
				return err
			}
			if c.Flags().Changed("size") {
				if err := requireCount(c, "size"); err != nil {
					return err
				}
			}
			spec.Shape, spec.For, spec.Groups = args[0], wire.Span(last), nil
			for _, g := range args[1:] {
				hosts, err := groupOf(g)
				if err != nil {
					return err
				}
				spec.Groups = append(spec.Groups, hosts)
			}
			for _, o := range only {
				t, err := model.ParseTraffic(o)
				if err != nil {
					return usage("--only %s: %w", o, err)
				}
				spec.Only = append(spec.Only, wire.Traffic{Proto: t.Proto, Port: int(t.Port), Opening: t.Opening, Messages: t.Messages})
			}
			return cut(c, conn, o, spec, noWait)
		},
	}
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return strings.Split(shapeNames(), ", "), noFiles
		}
		return conn.known(hostNames), noFiles
	}
	f := cmd.Flags()
	f.StringVar(&spec.Name, "name", "", "its name, for heal and show; default: the daemon chooses one")
	f.StringVar(&spec.Label, "label", "", "split: the label to compare")
	f.StringVar(&spec.Role, "role", "", "leader-in, leader-out: the role of the testbed file to ask for (default "+model.DefaultRole+")")
	f.IntVar(&spec.Size, "size", 0, "leader-in, leader-out: number of hosts to cut off together; leader-in cuts off all that have the role, even if they are more (default 1)")
	f.StringVar(&spec.Effect, "effect", "", "drop packets (the default), or reset: also end TCP connections at both ends when they try to cross")
	f.StringArrayVar(&only, "only", nil, "cut only this traffic, such as tcp/7000 or tcp-opening; repeatable")
	f.DurationVar(&last, "for", 0, "heal this long after the partition is in force (default: when asked)")
	f.BoolVar(&noWait, "no-wait", false, "return as soon as the rules were sent")
	f.StringVarP(&file, "file", "f", "", "file with the partition as JSON, as the API takes it; -: standard input")
	return cmd
}

// readPartition reads what is to be cut from a file; nothing else may be said of it.
func readPartition(c *cobra.Command, file string, args []string) (spec wire.PartitionSpec, err error) {
	for _, f := range []string{"name", "label", "role", "size", "effect", "only", "for"} {
		if c.Flags().Changed(f) {
			args = append(args, "--"+f)
		}
	}
	if len(args) > 0 {
		return spec, usage("--file %s and %s both say what to cut: leave one out", file, strings.Join(args, " "))
	}
	in := c.InOrStdin()
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return spec, usage("%w", err)
		}
		defer f.Close()
		in = f
	}
	d := json.NewDecoder(in)
	d.DisallowUnknownFields()
	if err := d.Decode(&spec); err != nil {
		return spec, usage("%s: %w: want JSON such as {\"shape\": \"isolate\", \"groups\": [[\"n1\"]]}", file, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return spec, usage("%s: text after the partition: a file holds one partition", file)
	}
	return spec, nil
}

func cut(c *cobra.Command, conn *daemonFlags, o *output, spec wire.PartitionSpec, noWait bool) error {
	return conn.ask(c.Context(), func(ctx context.Context, cl *client.Client) error {
		wait := tellAfter
		if noWait {
			wait = 0
		}
		p, err := cl.CreatePartition(ctx, spec, wait)
		if err == nil && !noWait {
			p, err = waitUntilProved(ctx, cl, p, c.ErrOrStderr())
		}
		if err != nil {
			return err
		}
		if err := printOne(*o, c.OutOrStdout(), p, describePartition); err != nil {
			return err
		}
		if !noWait && p.InForce == nil { // one with --for may have ended, and then InForce still has its time
			return fmt.Errorf("partition %s is %s and not in force: %s", p.Name, p.State, p.Reason)
		}
		return nil
	})
}

func waitUntilProved(ctx context.Context, cl *client.Client, p wire.PartitionStatus, out io.Writer) (wire.PartitionStatus, error) {
	reported := ""
	for end := time.Now().Add(proofWait); p.State == string(model.PartitionRequested) && time.Now().Before(end); {
		if why := cmp.Or(model.OneLine(p.Reason), "it is being proved"); why != reported {
			fmt.Fprintf(out, "netsplit: partition %s is not in force yet, trying again: %s\n", p.Name, why)
			reported = why
		}
		select {
		case <-ctx.Done():
			return p, ctx.Err()
		case <-time.After(tellAfter / 4):
		}
		var err error
		if p, err = cl.Partition(ctx, p.Name); err != nil {
			return p, err
		}
	}
	return p, nil
}

func groupOf(arg string) ([]string, error) {
	hosts := strings.Split(arg, ",")
	for i, h := range hosts {
		if hosts[i] = strings.TrimSpace(h); hosts[i] == "" || strings.ContainsAny(hosts[i], " \t\n") {
			return nil, usage("group %q: write host names with single commas and no blanks: n1,n2 is one group, n1 n2 are two", arg)
		}
	}
	return hosts, nil
}

func partitionHeal(conn *daemonFlags, o *output) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "heal NAME...", Short: "heal partitions, and wait until a packet passes again",
		RunE: func(c *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return usage("name the partitions to heal, or use --all, but not both")
			}
			if slices.Contains(args, "") {
				return usage("the name of a partition is empty: netsplit partition list lists the partitions")
			}
			return conn.ask(c.Context(), func(ctx context.Context, cl *client.Client) error {
				if all {
					names, err := cl.Reset(ctx)
					return errors.Join(err, printOne(*o, c.OutOrStdout(), wire.Reset{Healed: append([]string{}, names...)}, func(out io.Writer, r wire.Reset) error {
						return printReset(out, r.Healed, err)
					}))
				}
				var errs []error
				var healed []wire.PartitionStatus
				for _, name := range args {
					p, err := cl.DeletePartition(ctx, name, proofWait)
					if err != nil {
						errs = append(errs, err)
						continue
					}
					if healed = append(healed, p); *o == outTable { // as they heal
						errs = append(errs, describePartition(c.OutOrStdout(), p))
					}
				}
				return errors.Join(append(errs, printAll(*o, c.OutOrStdout(), healed, func(io.Writer, []wire.PartitionStatus) error { return nil }))...)
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "heal all of them")
	return cmd
}

func partitionList(conn *daemonFlags, o *output) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "list", Short: "list manual partitions, newest first", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return conn.ask(c.Context(), func(ctx context.Context, cl *client.Client) error {
				return printList(c, *o, all, func(cursor string) ([]wire.PartitionStatus, string, error) {
					p, err := cl.Partitions(ctx, 0, cursor)
					return p.Items, p.Next, err
				}, printPartitions)
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "list all; default: current partitions and the newest 100")
	return cmd
}

func partitionShow(conn *daemonFlags, o *output) *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "show a partition", Args: exactArgs(1, "a partition's name"),
		RunE: func(c *cobra.Command, args []string) error {
			if args[0] == "" {
				return usage("the name of a partition is empty: netsplit partition list lists the partitions")
			}
			return conn.ask(c.Context(), func(ctx context.Context, cl *client.Client) error {
				p, err := cl.Partition(ctx, args[0])
				if err != nil {
					return err
				}
				return printOne(*o, c.OutOrStdout(), p, describePartition)
			})
		},
	}
}

// ask calls a daemon that runs; there is nothing to do without one.
func (d *daemonFlags) ask(ctx context.Context, do func(context.Context, *client.Client) error) error {
	c, err := d.client()
	if err != nil {
		return err
	}
	return do(ctx, c)
}

func shapeNames() string {
	var names []string
	for _, s := range model.Shapes() {
		names = append(names, string(s))
	}
	return strings.Join(names, ", ")
}
