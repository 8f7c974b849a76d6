package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func run(args []string, out, errs io.Writer) error {
	fs := flag.NewFlagSet("compare", flag.ContinueOnError)
	fs.SetOutput(errs)
	replays := fs.Int("replays", 10, "replays wanted of each finding (plan)")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() != 2 || fs.Arg(0) != "plan" && fs.Arg(0) != "table" {
		return fmt.Errorf("usage: compare [-replays N] plan|table DIR")
	}
	all, unfinished, err := load(fs.Arg(1))
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("no finished campaign below %s", fs.Arg(1))
	}
	found := aggregate(all)
	if fs.Arg(0) == "plan" {
		_, err := io.WriteString(out, plan(found, *replays))
		return err
	}
	for _, d := range unfinished {
		fmt.Fprintf(errs, "compare: not counted, its campaign has not come to its end: %s\n", d)
	}
	return print(out, all, found)
}

// plan lists the replays that are missing, a line each: runs directory, run,
// how many times. Two findings of one run share its replays.
func plan(found []finding, want int) string {
	var lines []string
	for _, f := range found {
		for _, b := range f.by {
			if b.run != "" && b.replayed < want {
				lines = append(lines, fmt.Sprintf("%s\t%s\t%d\n", b.dir, b.run, want-b.replayed))
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "")
}
