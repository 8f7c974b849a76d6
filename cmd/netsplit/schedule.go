package main

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"netsplit/api/client"
	"netsplit/api/wire"
)

func campaignScheduleCommand(conn *daemonFlags) *cobra.Command {
	var what campaignFlags
	var when scheduleFlags
	var o output
	c := &cobra.Command{
		Use: "schedule NAME TARGET", Short: "have the daemon make campaigns at a time, or again and again",
		Long: `Makes a schedule, or replaces the one of this name: your running daemon makes the campaign
at the time --at, or one at each time of the cron expression --cron. netsplit schedule
lists, pauses and deletes schedules. A target file is uploaded now; later changes to it do
not count.`,
		Example: "  netsplit campaign schedule nightly redis-sentinel --cron '0 3 * * *' --time-zone Europe/Berlin --faults 100\n" +
			"  netsplit campaign schedule tonight redis-sentinel --at 2026-11-28T03:00:00Z",
		Args: exactArgs(2, "the schedule's name, and a target's name or file"),
		RunE: func(c *cobra.Command, args []string) error {
			spec, err := what.of(c, args[1])
			if err != nil {
				return err
			}
			return conn.schedule(c, args[0], spec, when, o)
		},
	}
	what.register(c)
	when.register(c)
	o.register(c.Flags())
	conn.register(c)
	return c
}

// scheduleFlags say when a schedule makes its campaigns.
type scheduleFlags struct {
	at   string
	spec wire.ScheduleSpec
}

func (s *scheduleFlags) register(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&s.at, "at", "", "make one campaign at this time (RFC 3339)")
	f.StringVar(&s.spec.Cron, "cron", "", "make a campaign at each of these times: minute, hour, day of month, month, day of week, or @hourly, @daily, @weekly, @every 6h")
	f.StringVar(&s.spec.TimeZone, "time-zone", "", "time zone of --cron, such as Europe/Berlin (default: the daemon's)")
	f.StringVar(&s.spec.Overlap, "overlap", "skip", "while the last campaign of the schedule has not ended: skip this time, or queue one")
}

// schedule makes a schedule of these campaigns, and uploads their target.
func (d *daemonFlags) schedule(c *cobra.Command, name string, campaign wire.CampaignSpec, when scheduleFlags, o output) error {
	spec := when.spec
	if (when.at == "") == (spec.Cron == "") {
		return usage("say when: --at TIME or --cron EXPRESSION, and not both")
	}
	if when.at != "" {
		t, err := timeFlag("at", when.at)
		if err != nil {
			return err
		}
		spec.At = &t
	}
	return d.ask(c.Context(), func(ctx context.Context, cl *client.Client) error {
		var err error
		spec.Campaign = campaign
		if spec.Campaign.Target, err = uploaded(ctx, cl, campaign.Target); err != nil {
			return err
		}
		made, err := cl.PutSchedule(ctx, name, spec)
		if err != nil {
			return err
		}
		return printOne(o, c.OutOrStdout(), made, func(out io.Writer, s wire.Schedule) error { return printSchedules(out, []wire.Schedule{s}) })
	})
}

func scheduleCommand(conn *daemonFlags) *cobra.Command {
	c := &cobra.Command{Use: "schedule", Short: "list, pause and delete schedules of campaigns (netsplit campaign schedule and netsplit script schedule make them)"}
	c.AddCommand(scheduleListCommand(conn))
	for _, sub := range []*cobra.Command{scheduleShowCommand(conn), schedulePauseCommand(conn, "pause", true), schedulePauseCommand(conn, "resume", false), scheduleDeleteCommand(conn)} {
		c.AddCommand(conn.completes(sub, false, scheduleNames))
	}
	conn.register(c.Commands()...)
	return c
}

func scheduleListCommand(conn *daemonFlags) *cobra.Command {
	var o output
	c := &cobra.Command{
		Use: "list", Short: "list schedules by name", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return conn.ask(c.Context(), func(ctx context.Context, cl *client.Client) error {
				list, err := cl.Schedules(ctx)
				if err != nil {
					return err
				}
				return printAll(o, c.OutOrStdout(), list, printSchedules)
			})
		},
	}
	o.register(c.Flags())
	return c
}

func scheduleShowCommand(conn *daemonFlags) *cobra.Command {
	var o output
	c := &cobra.Command{
		Use: "show NAME", Short: "show a schedule", Args: exactArgs(1, "a schedule's name"),
		RunE: func(c *cobra.Command, args []string) error {
			return conn.ask(c.Context(), func(ctx context.Context, cl *client.Client) error {
				s, err := cl.Schedule(ctx, args[0])
				if err != nil {
					return err
				}
				return printOne(o, c.OutOrStdout(), s, func(out io.Writer, s wire.Schedule) error { return printSchedules(out, []wire.Schedule{s}) })
			})
		},
	}
	o.register(c.Flags())
	return c
}

func schedulePauseCommand(conn *daemonFlags, verb string, paused bool) *cobra.Command {
	var o output
	c := &cobra.Command{
		Use: verb + " NAME", Short: map[bool]string{true: "have a schedule make no campaigns until it is resumed", false: "have a paused schedule make campaigns again"}[paused],
		Args: exactArgs(1, "a schedule's name"),
		RunE: func(c *cobra.Command, args []string) error {
			return conn.ask(c.Context(), func(ctx context.Context, cl *client.Client) error {
				s, err := cl.Schedule(ctx, args[0])
				if err != nil {
					return err
				}
				s.Paused = paused
				if s, err = cl.PutSchedule(ctx, args[0], s.ScheduleSpec); err != nil {
					return err
				}
				return printOne(o, c.OutOrStdout(), s, func(out io.Writer, s wire.Schedule) error { return printSchedules(out, []wire.Schedule{s}) })
			})
		},
	}
	o.register(c.Flags())
	return c
}

func scheduleDeleteCommand(conn *daemonFlags) *cobra.Command {
	return &cobra.Command{
		Use: "delete NAME", Short: "delete a schedule; its campaigns stay", Args: exactArgs(1, "a schedule's name"),
		RunE: func(c *cobra.Command, args []string) error {
			return conn.ask(c.Context(), func(ctx context.Context, cl *client.Client) error {
				if err := cl.DeleteSchedule(ctx, args[0]); err != nil {
					return err
				}
				_, err := fmt.Fprintf(c.OutOrStdout(), "schedule %s is deleted\n", args[0])
				return err
			})
		},
	}
}

func printSchedules(out io.Writer, list []wire.Schedule) error {
	head := []any{"SCHEDULE", "TARGET", "WHEN", "NEXT", "LAST", "NOTE"}
	return printTable(out, list, "no schedules: netsplit campaign schedule makes one", head, func(s *wire.Schedule) []any {
		when := s.Cron
		if s.At != nil {
			when = localTime(*s.At)
		}
		if s.TimeZone != "" {
			when += " " + s.TimeZone
		}
		next := "never"
		switch {
		case s.Paused:
			next = "paused"
		case s.Next != nil:
			next = localTime(*s.Next)
		}
		return []any{s.Name, madeOn(s.Campaign), when, next, cmp.Or(s.Last, "-"), s.Note}
	})
}
