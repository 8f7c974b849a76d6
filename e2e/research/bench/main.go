package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) > 1 && (os.Args[1] == "child" || os.Args[1] == "agent") {
		args := os.Args[1:]
		if args[0] == "child" {
			args = args[1:]
		}
		if err := child(args); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", strings.Join(args, " ")+":", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// parts are what can be measured, in this order.
var parts = []string{"leaks", "cuts", "inforce", "gate", "mirror", "scale", "codec", "campaigns", "api"}

func run(ctx context.Context, args []string) (err error) {
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	only := fs.String("only", strings.Join(parts, ","), "what to measure")
	cuts := fs.Int("cuts", 1000, "cuts at the gate, and as many by drop rules")
	trials := fs.Int("trials", 20, "cuts by hand of each kind; 1000 take hours")
	many := fs.Int("many-trials", 0, "the same with more than 10 flows; 0: a tenth of -trials")
	flows := fs.String("flows", "10,10000,50000", "flows that a cut by hand meets")
	rounds := fs.Int("rounds", 3, "rounds of the gate's throughput")
	pings := fs.Int("pings", 500, "round trips in each of them")
	pairs := fs.Int("pairs", 7, "iperf3 pairs with and without mirror")
	each := fs.Duration("iperf", 3*time.Second, "length of an iperf3 measurement")
	root := fs.String("root", ".", "the checkout, with bin/netsplit built")
	limit := fs.Duration("limit", time.Hour, "give up after")
	requested := apiSize{}
	fs.IntVar(&requested.runs, "api-runs", 10000, "runs in the store that the API serves")
	fs.IntVar(&requested.events, "api-events", 1000000, "events in it")
	fs.IntVar(&requested.rate, "api-rate", 100, "requests a second")
	fs.DurationVar(&requested.time, "api-time", 30*time.Second, "how long the API is asked")
	fs.StringVar(&requested.dir, "api-dir", "", "keep that store in this folder, and use the one that is there")
	profile := fs.String("cpuprofile", "", "write a CPU profile of the gate's process here")
	if err := fs.Parse(args); err != nil {
		return err
	}
	want := strings.Split(*only, ",")
	if os.Geteuid() != 0 && !slices.Equal(want, []string{"api"}) {
		return errors.New("labs need root: run it with sudo")
	}
	for _, w := range want {
		if !slices.Contains(parts, w) {
			return fmt.Errorf("nothing called %q to measure: %s", w, strings.Join(parts, ", "))
		}
	}
	if *trials < 1 || *many < 0 {
		return fmt.Errorf("-trials %d -many-trials %d: want at least 1, and no less than 0", *trials, *many)
	}
	var crowds []int
	for _, f := range strings.Split(*flows, ",") {
		n, err := strconv.Atoi(f)
		if err != nil || n < 1 || n > 60000 {
			return fmt.Errorf("-flows %s: want numbers from 1 to 60000 with commas between them", *flows)
		}
		crowds = append(crowds, n)
	}
	ctx, cancel := context.WithTimeout(ctx, *limit)
	defer cancel()
	if *profile != "" {
		f, err := os.Create(*profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	began := time.Now()
	say := func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "%4.0fs load %s  %s\n", time.Since(began).Seconds(), load(), fmt.Sprintf(format, args...))
	}
	loads := []string{load()}
	var rows []row
	add := func(part string, f func() ([]row, error)) {
		if err != nil || !slices.Contains(want, part) {
			return
		}
		var more []row
		more, err = f()
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", part, err)
		}
		rows = append(rows, more...)
		loads = append(loads, load())
	}
	// Labs are there while they are needed: ports of idle ones are polled too.
	add("leaks", func() ([]row, error) {
		return onTestbed(ctx, func(b *ourTestbed) ([]row, error) { return leaks(ctx, b, *cuts, say) })
	})
	add("cuts", func() ([]row, error) {
		return onCutTestbed(ctx, func(c *cutTestbed) ([]row, error) { return cutLeaks(ctx, c, *trials, *many, crowds, say) })
	})
	add("inforce", func() ([]row, error) {
		return onCutTestbed(ctx, func(c *cutTestbed) ([]row, error) { return inForce(ctx, c, *trials, say) })
	})
	add("gate", func() ([]row, error) { return gateCost(ctx, *rounds, *pings, *each, say) })
	add("mirror", func() ([]row, error) {
		return onTestbed(ctx, func(b *ourTestbed) ([]row, error) { return mirrorCost(ctx, b, *pairs, *each, say) })
	})
	add("scale", func() ([]row, error) { return scaleCost(ctx, *rounds, say) })
	add("codec", func() ([]row, error) { return codecCost(ctx, *root) })
	add("campaigns", func() ([]row, error) {
		return campaignCost(ctx, *root, []trial{
			{target: "redis-sentinel", labs: 1, clean: 1, runs: 3},
			{target: "redis-sentinel", labs: 3, clean: 1, runs: 6},
			{target: "gossip", labs: 1, clean: 1, runs: 3},
			{target: "gossip", labs: 2, clean: 1, runs: 4},
			{target: "gossip", labs: 4, clean: 1, runs: 8},
			{target: "gossip", labs: 8, clean: 1, runs: 16},
		}, say)
	})
	add("api", func() ([]row, error) { return apiLoad(ctx, requested, say) })
	fmt.Printf("%d processors, %s; load average (1 minute) before and after each part: %s; %s in all\n", runtime.NumCPU(), time.Now().UTC().Format(time.RFC3339),
		strings.Join(loads, " "), time.Since(began).Round(time.Second))
	fmt.Println("Figures are median (least to greatest) of measurements taken in turn; ratios are of pairs, where they do not say of p50.")
	fmt.Printf("A goal of none at all is met by %d trials of each kind without any; with fewer there is no mark. Nor is there one where a pair is missing.\n", goalTrials)
	fmt.Println()
	return errors.Join(err, print(os.Stdout, rows))
}

// onTestbed makes a lab for one part, and removes it.
func onTestbed(ctx context.Context, f func(*ourTestbed) ([]row, error)) ([]row, error) {
	b, err := newOurTestbed(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := f(b)
	return rows, errors.Join(err, b.close())
}

// load is the load average of the last minute.
func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "?"
	}
	first, _, _ := strings.Cut(string(b), " ")
	return first
}
