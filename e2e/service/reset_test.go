package service

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"netsplit/api/wire"
	"netsplit/e2e/harness"
	"netsplit/internal/labtest"
)

// conn opens a TCP connection between two hosts; what arrives at the second is
// sent back.
func (b *bench) conn(from, to string, port int) (near, far *net.TCPConn) {
	b.t.Helper()
	var l net.Listener
	addr := fmt.Sprintf("%s:%d", b.ip[to], port)
	err := labtest.In("hand-"+to, func() (err error) { l, err = net.Listen("tcp", addr); return err })
	if err != nil {
		b.t.Fatal(err)
	}
	defer l.Close()
	c, err := b.dial(from, addr)
	if err != nil {
		b.t.Fatal(err)
	}
	f, err := l.Accept()
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { c.Close(); f.Close() })
	return c.(*net.TCPConn), f.(*net.TCPConn)
}

func (b *bench) dial(from, addr string) (c net.Conn, err error) {
	err = labtest.In("hand-"+from, func() error {
		c, err = net.DialTimeout("tcp", addr, 20*time.Second)
		return err
	})
	return c, err
}

// ends waits until reading a connection ends, with an error.
func ends(c *net.TCPConn) error {
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	_, err := io.Copy(io.Discard, c)
	return err
}

// TestResetByHandEndsConnectionsAtBothEnds cuts with effect reset, over IPv4 and IPv6: programs on
// both sides are told, new connections are refused at once, all else goes on,
// and the resets are not taken for packets that crossed.
func TestResetByHandEndsConnectionsAtBothEnds(t *testing.T) {
	harness.LeavesNothing(t)
	b := newBench(t, "a", "b", "c")
	d := serve(t, "--testbed", b.file, "--runs-dir", t.TempDir())
	b.connect(d.OpenFlow)
	d.Healthy()

	v6 := map[string]string{}
	for i, h := range b.hosts {
		v6[h] = fmt.Sprintf("[fd77::%d]", i+1)
		harness.Output(t, "ip", "-n", "hand-"+h, "addr", "add", fmt.Sprintf("fd77::%d/64", i+1), "dev", "eth0", "nodad")
	}
	port := wire.Traffic{Proto: "tcp", Port: 7001}
	for i, c := range []struct {
		ip   map[string]string
		only []wire.Traffic
	}{{b.ip, nil}, {b.ip, []wire.Traffic{port}}, {v6, nil}, {v6, []wire.Traffic{port}}} {
		name, only := fmt.Sprintf("cut-%d", i), c.only
		b.ip = c.ip
		near, far := b.conn("a", "b", 7001)
		other, back := b.conn("a", "c", 7001)
		spec := wire.PartitionSpec{Name: name, Partition: wire.Partition{Shape: "partial", Effect: "reset", Groups: [][]string{{"a"}, {"b"}}, Only: only}}
		d.partition(spec)

		if _, err := near.Write([]byte("across")); err != nil {
			t.Fatal(err)
		}
		if err := ends(near); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%s: the sender was told %v", name, err)
		}
		if err := ends(far); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%s: the receiver was told %v", name, err)
		}
		for _, way := range [][2]string{{"a", "b"}, {"b", "a"}} {
			if _, err := b.dial(way[0], b.ip[way[1]]+":7001"); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("%s: a new connection from %s to %s: %v", name, way[0], way[1], err)
			}
		}
		if _, err := other.Write([]byte("stays")); err != nil {
			t.Error(err)
		}
		buf := make([]byte, 5)
		_ = back.SetReadDeadline(time.Now().Add(20 * time.Second))
		if _, err := io.ReadFull(back, buf); err != nil || string(buf) != "stays" {
			t.Errorf("%s: a connection that does not cross: %q, %v", name, buf, err)
		}

		var now wire.PartitionStatus
		d.Call("GET", "/v1/partitions/"+name, nil, &now)
		if now.State != "in_force" || now.Resets < 4 || now.Leaked != 0 || !now.LeakKnown || now.Dropped == 0 || now.Wanted < now.Dropped {
			t.Errorf("%s, in force: %+v", name, now)
		}
		p := d.Heal(name)
		if p.Resets < 4 || p.Leaked != 0 || !p.LeakKnown || p.Dropped == 0 {
			t.Errorf("%s: %+v", name, p)
		}
		b.conn("a", "b", 7002)
	}
	var all wire.Partitions
	if d.Call("GET", "/v1/partitions", nil, &all); len(all.Items) != 4 || all.Items[0].Name != "cut-3" {
		t.Errorf("not the four partitions, newest first: %+v", all.Items)
	}
}
