package tap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkPort sends frames of 78 bytes to a port that writes each back, so
// many at a time, and measures the CPU time of all of it per frame, which other
// work on the machine hardly changes.
//
//	go test ./inference/tap -run '^$' -bench Port
func BenchmarkPort(b *testing.B) {
	for _, window := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("inflight=%d", window), func(b *testing.B) {
			near, far, namespace := veth(b)
			p, err := OpenPort(far, namespace)
			if err != nil {
				b.Fatal(err)
			}
			defer p.Close()
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan error, 1)
			go func() {
				ended <- p.Read(ctx, func(_ time.Time, vid uint16, f []byte) {
					if err := p.Write(vid, f); err != nil {
						b.Error(err)
					}
				})
			}()
			fd, err := open(near)
			if err != nil {
				b.Fatal(err)
			}
			defer unix.Close(fd)
			f := withTag(0x8100, 5, frame(1, false, 74))
			in, out := newBatch(), newOutgoing()
			for range window {
				out.add(tag{0x8100, 5}, f)
			}
			poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
			before := cpuTime(b)
			b.ResetTimer()
			for done := 0; done < b.N; done += window {
				for first := 0; first < window; {
					n, err := out.send(fd, first)
					if err != nil {
						b.Fatal(err)
					}
					first += n
				}
				for came := 0; came < window; {
					n, err := in.receive(fd)
					switch {
					case err == unix.EAGAIN:
						if n, err := unix.Poll(poll, 2000); n == 0 || err != nil && err != unix.EINTR {
							b.Fatalf("nothing came back: %v", err)
						}
					case err != nil:
						b.Fatal(err)
					}
					came += n
				}
			}
			b.StopTimer()
			b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/frame")
			cancel()
			if err := await(b, "Read", ended); err != nil {
				b.Error(err)
			}
		})
	}
}

// cpuTime is what this process has used so far, in nanoseconds.
func cpuTime(b *testing.B) int64 {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// BenchmarkWake measures how long after the kernel has a frame its reader sees
// it, and whom the reader wakes by a channel, with as many busy goroutines
// beside: in poll(2) without lingering, and in the scheduler's poller, in turn.
//
//	go test ./inference/tap -run '^$' -bench Wake -benchtime 3000x
func BenchmarkWake(b *testing.B) {
	const inside = "NETSPLIT_TAP_SENDS_ON"
	if iface := os.Getenv(inside); iface != "" { // the sender: another process, so that it needs no processor of ours
		sendOn(b, iface)
	}
	near, far, namespace := veth(b)
	cmd := exec.CommandContext(b.Context(), os.Args[0], "-test.run=^$", "-test.bench=^BenchmarkWake$")
	cmd.Env = append(os.Environ(), inside+"="+near)
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
	}()
	ways := []struct {
		name   string
		linger time.Duration
	}{{"poll", 1}, {"poller", 0}}
	for _, busy := range []int{0, 1, runtime.GOMAXPROCS(0)} {
		b.Run(fmt.Sprintf("busy=%d", busy), func(b *testing.B) {
			keepBusy(b, busy)
			const turn = 300 // frames
			var read, woken [2][]time.Duration
			var cpu [2]int64
			for len(read[1]) < b.N {
				for i, w := range ways {
					r, err := openReader(far, namespace, w.linger)
					if err != nil {
						b.Fatal(err)
					}
					ctx, cancel := context.WithCancel(b.Context())
					wake, done := make(chan time.Time, turn), make(chan struct{})
					go func() {
						for at := range wake {
							woken[i] = append(woken[i], time.Since(at))
						}
						close(done)
					}()
					before, seen, opened := cpuTime(b), 0, time.Now()
					err = r.Read(ctx, func(at time.Time, _ []byte) {
						if seen == turn || at.Before(opened) {
							return
						}
						read[i] = append(read[i], time.Since(at))
						wake <- at
						if seen++; seen == turn {
							cancel()
						}
					})
					cpu[i] += cpuTime(b) - before
					close(wake)
					<-done
					cancel()
					if err := errors.Join(err, r.Close()); err != nil {
						b.Fatal(err)
					}
				}
			}
			for what, of := range map[string]*[2][]time.Duration{"read": &read, "woken": &woken} {
				for name, q := range map[string]int{"p50": 50, "p90": 90} {
					var us [2]float64
					for i, w := range ways {
						slices.Sort(of[i])
						us[i] = float64(of[i][len(of[i])*q/100]) / 1e3
						b.ReportMetric(us[i], fmt.Sprintf("%s-%s-us-%s", what, name, w.name))
					}
					b.ReportMetric(us[0]/us[1], fmt.Sprintf("%s-%s-ratio", what, name))
				}
			}
			if busy == 0 {
				for i, w := range ways {
					b.ReportMetric(float64(cpu[i])/float64(len(read[i]))/1e3, "cpu-us-"+w.name)
				}
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// sendOn sends a frame every 1 to 2 ms until the interface goes.
func sendOn(b *testing.B, iface string) {
	fd, err := open(iface)
	if err != nil {
		b.Fatal(err)
	}
	f := frame(1, false, 74)
	for i := 0; err == nil; i++ {
		time.Sleep(time.Millisecond + time.Duration(i*7919%1000)*time.Microsecond)
		_, err = unix.Write(fd, f)
	}
	b.Fatal(err)
}

// keepBusy has so many goroutines that never wait, until the benchmark ends.
func keepBusy(b *testing.B, n int) {
	var stop atomic.Bool
	b.Cleanup(func() { stop.Store(true) })
	for range n {
		go func() {
			for !stop.Load() {
			}
		}()
	}
}
