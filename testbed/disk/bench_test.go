package disk

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"netsplit/model"
)

// benchSource does one call many times and says how long one took in the fastest of
// many batches, in ns: what else the machine does is in the others.
const benchSource = `package main

import ("fmt"; "os"; "strconv"; "syscall"; "time")

func main() {
	n, _ := strconv.Atoi(os.Args[2])
	f, err := os.OpenFile(os.Args[1], os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil { panic(err) }
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_DGRAM, 0)
	if err != nil { panic(err) }
	b := make([]byte, 4096)
	one := func(do func() error) {
		const batch = 20
		best := time.Hour
		for range n {
			begin := time.Now()
			for range batch {
				if err := do(); err != nil { panic(err) }
			}
			best = min(best, time.Since(begin)/batch)
		}
		fmt.Print(best.Nanoseconds(), " ")
	}
	one(func() error { _, err := syscall.Pwrite(int(f.Fd()), b, 0); return err })
	one(func() error { return f.Sync() })
	one(func() error { _, err := syscall.Write(pair[0], b[:64]); if err == nil { _, err = syscall.Read(pair[1], b) }; return err })
	one(func() error { _, err := syscall.Pread(int(f.Fd()), b[:0], 0); return err })
}
`

// BenchmarkGate compares calls of one program with and without the gate, turn by turn:
// the fastest of each in ns, and how many times as long the gate makes it. A sync is
// that of a file without changes. Run it with -benchtime 100x: batches of each call.
func BenchmarkGate(b *testing.B) {
	needRoot(b)
	bin, err := build("bench", benchSource)
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	g := gate(b, func(model.FileOperation) Answer { return Pass() }, dir)
	best := [2][4]int{}
	const turns = 3
	for range turns {
		for gated := range 2 {
			argv := []string{bin, dir + "/f", strconv.Itoa(b.N)}
			if gated == 1 {
				argv = g.Argv(self(b), argv...)
			}
			cmd := exec.Command(argv[0], argv[1:]...)
			cmd.Stderr = os.Stderr
			out, err := cmd.Output()
			if err != nil {
				b.Fatal(err)
			}
			for i, w := range strings.Fields(string(out)) {
				ns, err := strconv.Atoi(w)
				if err != nil {
					b.Fatal(err)
				}
				if best[gated][i] == 0 || ns < best[gated][i] {
					best[gated][i] = ns
				}
			}
			os.Remove(dir + "/f")
		}
	}
	closed(b, g)
	for i, call := range []string{"write-4KiB", "sync", "socket-write", "not-held"} {
		b.ReportMetric(float64(best[0][i]), "ns-plain/"+call)
		b.ReportMetric(float64(best[1][i]), "ns-gated/"+call)
		b.ReportMetric(float64(best[1][i])/float64(max(best[0][i], 1)), "ratio/"+call)
	}
	b.ReportMetric(0, "ns/op")
}
