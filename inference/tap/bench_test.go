package tap

import (
	"context"
	"fmt"
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
			var before, after unix.Rusage
			if err := unix.Getrusage(unix.RUSAGE_SELF, &before); err != nil {
				b.Fatal(err)
			}
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
			if err := unix.Getrusage(unix.RUSAGE_SELF, &after); err != nil {
				b.Fatal(err)
			}
			cpu := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
			b.ReportMetric(float64(cpu)/float64(b.N), "cpu-ns/frame")
			cancel()
			if err := <-ended; err != nil {
				b.Error(err)
			}
		})
	}
}
