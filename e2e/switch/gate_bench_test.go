package ofswitch

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netsplit/e2e/need"
	"netsplit/model"
	"netsplit/testbed/fabric"
)

// BenchmarkForwarding measures what a way through the switch carries: packets
// per second with 256 in flight, and the delay of one packet alone (p50, p99).
//
//	go test ./e2e/switch -run '^$' -bench Forwarding -benchtime 100000x
//
// plain: rules only; port and packet-in: every packet through the gate, by either
// transport; testcontroller: Open vSwitch's own C controller doing the same, if
// ovs-testcontroller is in PATH or NETSPLIT_TESTCONTROLLER names it.
func BenchmarkForwarding(b *testing.B) {
	ways := []struct {
		name  string
		setup func(*testing.B, *bench)
	}{
		{"plain", func(_ *testing.B, be *bench) { be.start(fabric.Config{}) }},
		{"port", func(b *testing.B, be *bench) { setUpGate(b, be, model.GateByPort) }},
		{"packet-in", func(b *testing.B, be *bench) { setUpGate(b, be, model.GateByPacketIn) }},
		{"testcontroller", setUpTestController},
	}
	for _, w := range ways {
		b.Run(w.name, func(b *testing.B) {
			be := newBench(b, 2)
			w.setup(b, be)
			be.warmUp(b)
			for _, window := range []int{256, 1} {
				b.Run(fmt.Sprintf("inflight=%d", window), func(b *testing.B) { be.flow(b, window) })
			}
		})
	}
}

func setUpGate(b *testing.B, be *bench, by model.Gate) {
	var f atomic.Pointer[fabric.Fabric]
	to := map[model.NodeID]model.NodeID{"h1": "h2", "h2": "h1"}
	made, _ := be.start(fabric.Config{Gate: by, PacketIn: func(from model.NodeID, _ time.Time, frame []byte) {
		_ = f.Load().Release(frame, to[from])
	}})
	f.Store(made)
	if err := made.SetTaps(context.Background(), allPairs(be.testbed.Names()), nil); err != nil {
		b.Fatal(err)
	}
}

func setUpTestController(b *testing.B, be *bench) {
	path := os.Getenv("NETSPLIT_TESTCONTROLLER")
	if path == "" {
		path = need.Program(b, "ovs-testcontroller", "openvswitch-testcontroller")
	}
	be.daemon(path, "--noflow", "--unixctl="+be.path("tc.ctl"), "ptcp:6653:127.0.0.1")
	be.connect("127.0.0.1:6653")
	be.until("connected", func() error {
		if out := be.vsctl("get", "controller", bridge, "is_connected"); out != "true\n" {
			return fmt.Errorf("is_connected is %s", out)
		}
		return nil
	})
}

// warmUp sends both ways until a packet passes, so that a learning controller
// knows both hosts.
func (b *bench) warmUp(tb testing.TB) {
	b.until("packets pass", func() error {
		n, there := frame("udp", b.hosts[0], b.hosts[1])
		b.hosts[0].send(tb, there)
		m, back := frame("udp", b.hosts[1], b.hosts[0])
		b.hosts[1].send(tb, back)
		time.Sleep(50 * time.Millisecond)
		if b.hosts[1].received(n) == 0 || b.hosts[0].received(m) == 0 {
			return fmt.Errorf("nothing came")
		}
		return nil
	})
}

// flow sends b.N packets of 64 bytes from the first host to the second, at
// most window of them unanswered.
func (be *bench) flow(b *testing.B, window int) {
	from, to := be.hosts[0], be.hosts[1]
	rx := to.second(b)
	_, f := frame("udp", from, to)
	at := len(f) - 4
	sent := make([]time.Time, b.N)
	delay := make([]time.Duration, 0, b.N)
	free := make(chan struct{}, window) // one for each packet that may be sent
	for range window {
		free <- struct{}{}
	}
	release := func() {
		select {
		case free <- struct{}{}:
		default:
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 2048)
		for idle := 0; len(delay) < b.N && idle < 30; {
			n, _, err := unix.Recvfrom(rx, buf, 0)
			if err != nil {
				idle++ // 0.1 s each
				for range window {
					release() // lost ones must not hold up the rest
				}
				continue
			}
			if n < at+4 || string(buf[6:12]) != string(f[6:12]) || string(buf[at-len(marker):at]) != marker {
				continue
			}
			idle = 0
			i := binary.BigEndian.Uint32(buf[at:])
			delay = append(delay, time.Since(sent[i]))
			release()
		}
	}()
	b.ResetTimer()
	begin := time.Now()
	for i := range b.N {
		<-free
		binary.BigEndian.PutUint32(f[at:], uint32(i))
		sent[i] = time.Now()
		from.send(b, f)
	}
	<-done
	took := time.Since(begin)
	b.StopTimer()
	slices.Sort(delay)
	if len(delay) > 0 {
		b.ReportMetric(float64(len(delay))/took.Seconds(), "packets/s")
		b.ReportMetric(float64(delay[len(delay)/2].Microseconds()), "p50-us")
		b.ReportMetric(float64(delay[len(delay)*99/100].Microseconds()), "p99-us")
	}
	b.ReportMetric(float64(b.N-len(delay)), "lost")
}

// second opens another raw socket on the host.
func (h *host) second(tb testing.TB) int {
	tb.Helper()
	other := &host{id: h.id, ns: h.ns}
	if err := other.socket(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { unix.Close(other.fd) })
	return other.fd
}
