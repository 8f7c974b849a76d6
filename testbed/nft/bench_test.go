package nft

import (
	"errors"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"netsplit/flowrules/hostrules"
	"netsplit/model"
)

// BenchmarkCut cuts and heals at the receiver of a steady stream of datagrams. It
// reports how long the kernel takes to confirm a cut, and how many datagrams arrived
// that were sent after it had: cuts are to take effect at once.
func BenchmarkCut(b *testing.B) {
	sh(b, `ip netns add nd-far; ip link add nd0 type veth peer name nd1 netns nd-far
ip addr add 10.8.0.1/24 dev nd0; ip link set nd0 up; ip -n nd-far addr add 10.8.0.2/24 dev nd1; ip -n nd-far link set nd1 up`)
	defer sh(b, "ip link del nd0; ip netns del nd-far")
	tb := open(b, "netsplit-a")
	far := hostrules.Host{Name: "n2", IP: netip.MustParseAddr("10.8.0.2")}
	mac := strings.TrimSpace(sh(b, "ip netns exec nd-far cat /sys/class/net/nd1/address"))
	hw, err := net.ParseMAC(mac)
	if err != nil {
		b.Fatal(err)
	}
	far.MAC = hostrules.MAC(hw)
	rules := hostrules.Compile("n1", []hostrules.Host{hosts[0], far}, []model.Partition{{Shape: model.Partial, Groups: [][]model.NodeID{{"n1"}, {"n2"}}}})

	in, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("10.8.0.1:9000")))
	if err != nil {
		b.Fatal(err)
	}
	defer in.Close()
	var stop atomic.Bool
	var sent atomic.Int64
	done := make(chan error, 1)
	go func() { // each datagram says when it was sent
		runtime.LockOSThread()
		done <- func() error {
			ns, err := netns.GetFromName("nd-far")
			if err != nil {
				return err
			}
			defer ns.Close()
			if err := netns.Set(ns); err != nil {
				return err
			}
			out, err := net.Dial("udp", "10.8.0.1:9000")
			if err != nil {
				return err
			}
			defer out.Close()
			for !stop.Load() {
				if _, err := out.Write([]byte(time.Now().Format(time.RFC3339Nano))); err != nil && !errors.Is(err, unix.ECONNREFUSED) {
					return err
				}
				sent.Add(1)
				time.Sleep(20 * time.Microsecond)
			}
			return nil
		}()
	}()
	var confirmed atomic.Pointer[time.Time]
	var late, arrived atomic.Int64
	go func() {
		buf := make([]byte, 100)
		for {
			n, err := in.Read(buf)
			if err != nil {
				return
			}
			arrived.Add(1)
			at, err := time.Parse(time.RFC3339Nano, string(buf[:n]))
			if c := confirmed.Load(); err == nil && c != nil && at.After(*c) {
				late.Add(1)
			}
		}
	}()
	var took []time.Duration
	for b.Loop() {
		for before := arrived.Load(); arrived.Load() < before+5; {
			time.Sleep(100 * time.Microsecond)
		}
		began := time.Now()
		if _, err := tb.Set(rules, time.Minute); err != nil {
			b.Fatal(err)
		}
		now := time.Now()
		took = append(took, now.Sub(began))
		confirmed.Store(&now)
		time.Sleep(2 * time.Millisecond)
		confirmed.Store(nil)
		if _, err := tb.Set(nil, time.Minute); err != nil {
			b.Fatal(err)
		}
	}
	stop.Store(true)
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	slices.Sort(took)
	b.ReportMetric(float64(late.Load())/float64(len(took)), "late-packets/cut")
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs/cut")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs/cut")
	b.ReportMetric(float64(sent.Load())/b.Elapsed().Seconds(), "packets/s")
}
