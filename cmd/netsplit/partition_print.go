package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"netsplit/api/wire"
	"netsplit/model"
)

// printReset says what was healed; all of it was, if err is nil.
func printReset(out io.Writer, names []string, err error) error {
	for _, n := range names {
		fmt.Fprintf(out, "%s healed\n", n)
	}
	if err == nil && len(names) == 0 {
		fmt.Fprintln(out, "nothing was cut")
	}
	return nil
}

func printPartitions(out io.Writer, ps []wire.PartitionStatus) error {
	t := newTable(out, "NAME", "STATE", "PARTITION", "WANTED", "PROBES", "DROPPED", "LEAKED", "CREATED", "REASON")
	for _, p := range ps {
		t.row(p.Name, p.State, partitionWords(p.PartitionSpec), p.Wanted, p.Probes, p.Dropped, leakWord(p), localTime(p.Created), p.Reason)
	}
	return t.end()
}

func partitionWords(s wire.PartitionSpec) string {
	w := s.Model().Partition.String()
	if s.For > 0 {
		w += " for " + time.Duration(s.For).String()
	}
	return w
}

func leakWord(p wire.PartitionStatus) string {
	if !p.LeakKnown {
		return "not counted"
	}
	return fmt.Sprint(p.Leaked)
}

func describeLapses(w io.Writer, p wire.PartitionStatus) {
	if left := p.Lapsed - len(p.Lapses); left > 0 {
		fmt.Fprintf(w, "  %d earlier lapses are not listed\n", left)
	}
	for _, l := range p.Lapses {
		until := "until now"
		if l.To != nil {
			until = fmt.Sprintf("for %.3f s", l.To.Sub(l.From).Seconds())
		}
		fmt.Fprintf(w, "  lapsed    %s, %s, when packets may have passed: %s\n", l.From.Local().Format("15:04:05.000"), until, model.OneLine(l.Why))
	}
}

func describePartition(w io.Writer, p wire.PartitionStatus) error {
	fmt.Fprintf(w, "%s is %s: %s\n", p.Name, strings.ReplaceAll(p.State, "_", " "), partitionWords(p.PartitionSpec))
	if p.Reason != "" {
		fmt.Fprintf(w, "  %s\n", strings.ReplaceAll(p.Reason, "\n", "\n  "))
	}
	moment := func(what string, at *time.Time) {
		if at != nil {
			fmt.Fprintf(w, "  %s %s, %.3f s after the request\n", what, at.Local().Format("15:04:05.000"), at.Sub(p.Created).Seconds())
		}
	}
	fmt.Fprintf(w, "  requested %s, cuts %d links\n", p.Created.Local().Format("15:04:05.000"), len(p.Links))
	if p.Resets > 0 {
		fmt.Fprintf(w, "  %d resets sent to end TCP connections\n", p.Resets)
	}
	if p.CutBy != "" {
		fmt.Fprintf(w, "  cut by %s\n", p.CutBy)
	}
	moment("installed", p.Installed)
	moment("in force ", p.InForce)
	describeLapses(w, p)
	if p.RenewedUntil != nil {
		fmt.Fprintf(w, "  renewed until %s\n", p.RenewedUntil.Local().Format("15:04:05.000"))
	}
	moment("healed   ", p.Healed)
	if p.InForce != nil || p.Healed != nil {
		fmt.Fprintf(w, "  wanted to cross %d (%d of them netsplit's probe packets), dropped %d, leaked %s\n", p.Wanted, p.Probes, p.Dropped, leakWord(p))
	}
	return nil
}
