package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

func codecCost(ctx context.Context, root string) ([]row, error) {
	gobin := os.Getenv("GO")
	if gobin == "" {
		gobin = "go"
	}
	cmd := exec.CommandContext(ctx, gobin, "test", "./controller/of13", "-run", "^$", "-bench", "PacketInDecode|PacketOutEncode", "-benchmem", "-count", "5", "-benchtime", "200ms")
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("benchmarks of the codec: %w\n%s", err, out)
	}
	found, err := parseBench(string(out))
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, b := range []struct{ name, what string }{
		{"BenchmarkPacketInDecode", "codec, ns per packet-in of 1400 bytes decoded"},
		{"BenchmarkPacketOutEncode", "codec, ns per packet-out of 1400 bytes encoded"},
	} {
		r, ok := found[b.name]
		if !ok {
			return nil, fmt.Errorf("the codec has no %s any more:\n%s", b.name, out)
		}
		allocs := spreadOf(r.allocs)
		rows = append(rows, row{what: b.what, ours: fmt.Sprintf("%s; %s allocations", spreadOf(r.ns).text("%.1f"), allocs.text("%.0f")),
			goal: "0 allocations", met: noAllocations(r)})
	}
	return rows, nil
}

// noAllocations judges the goal of none; there is no mark if none were counted.
func noAllocations(b benchmark) mark {
	if len(b.allocs) == 0 {
		return noMark
	}
	return is(spreadOf(b.allocs).max == 0)
}

// benchmark is what repeated runs of one benchmark said.
type benchmark struct{ ns, allocs []float64 }

// parseBench reads the output of go test -bench -benchmem (package testing,
// BenchmarkResult.String and MemString): name, iterations, then pairs of value
// and unit.
func parseBench(out string) (map[string]benchmark, error) {
	found := map[string]benchmark{}
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) < 4 || !strings.HasPrefix(f[0], "Benchmark") {
			continue
		}
		name, _, _ := strings.Cut(f[0], "-") // the number of processors follows
		b := found[name]
		for i := 2; i+1 < len(f); i += 2 {
			v, err := strconv.ParseFloat(f[i], 64)
			if err != nil {
				return nil, fmt.Errorf("benchmark line %q: %w", strings.TrimSpace(line), err)
			}
			switch f[i+1] {
			case "ns/op":
				b.ns = append(b.ns, v)
			case "allocs/op":
				b.allocs = append(b.allocs, v)
			}
		}
		found[name] = b
	}
	return found, nil
}
