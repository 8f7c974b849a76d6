package lab

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"netsplit/testbed/config"
)

// listen is the least of a controller: it says hello and answers echoes
// (OpenFlow 1.3 §7.5.1, §7.5.2).
func listen(t *testing.T, addr string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				c.Write([]byte{4, 0, 0, 8, 0, 0, 0, 1})
				for {
					h := make([]byte, 8)
					if _, err := io.ReadFull(c, h); err != nil {
						return
					}
					body := make([]byte, max(0, int(binary.BigEndian.Uint16(h[2:]))-8))
					if _, err := io.ReadFull(c, body); err != nil {
						return
					}
					if h[1] == 2 {
						h[1] = 3
						c.Write(append(h, body...))
					}
				}
			}()
		}
	}()
	return l
}

func TestTuneController(t *testing.T) {
	before := world(t)
	l := mustUp(t, Spec{Name: "demo", Hosts: twoHosts, Controller: "tcp:127.0.0.1:7653"})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	err := l.TuneController(ctx)
	cancel()
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "tcp:127.0.0.1:7653") {
		t.Errorf("nobody listens: %v", err)
	}
	listen(t, "127.0.0.1:7653")
	backoff := func() string {
		return strings.TrimSpace(sh(t, "ovs-vsctl --timeout=5 --db=unix:%s/db.sock get controller %s max_backoff connection_mode", l.OVSRunDir(), l.Bridge()))
	}
	for range 2 { // a second time, too, the setting must change to be taken over
		ctx, cancel = context.WithTimeout(t.Context(), patience)
		defer cancel()
		if err := l.TuneController(ctx); err != nil {
			t.Fatal(err)
		}
		if got := backoff(); got != "1000\nout-of-band" {
			t.Errorf("max_backoff, connection_mode: %q", got)
		}
	}
	if st, err := Default().Show(t.Context(), "demo"); err != nil || !st.Connected || st.Controller != "tcp:127.0.0.1:7653" {
		t.Errorf("%+v, %v", st, err)
	}
	// Another controller, then none.
	listen(t, "127.0.0.1:7654")
	if err := l.SetController(t.Context(), "tcp:127.0.0.1:7654"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := l.TuneController(ctx); err != nil {
		t.Error(err)
	}
	if err := l.SetController(t.Context(), ""); err != nil {
		t.Error(err)
	}
	if st, err := Default().Show(t.Context(), "demo"); err != nil || st.Connected || st.Controller != "" {
		t.Errorf("%+v, %v", st, err)
	}
	if err := l.TuneController(t.Context()); err == nil || !strings.Contains(err.Error(), "no controller") {
		t.Error(err)
	}
	if err := l.SetController(t.Context(), "nonsense"); err == nil {
		t.Error("nonsense was set as controller")
	}
	mustDown(t, "demo")
	checkWorld(t, before)
}

func TestReceiveBufferIsRaisedAndPutBack(t *testing.T) {
	m := &Manager{RunDir: t.TempDir()}
	path := t.TempDir() + "/rmem_default"
	defer func(p string) { rmemPath = p }(rmemPath)
	rmemPath = path
	value := func() int {
		n, err := readInt(path)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	set := func(n int) {
		if err := os.WriteFile(path, []byte(strconv.Itoa(n)+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	set(212992)
	restore, warning := m.raiseRmem()
	if warning != "" || value() != rmemWanted {
		t.Errorf("raised to %d, %q", value(), warning)
	}
	if err := restore(); err != nil || value() != 212992 {
		t.Errorf("restored to %d, %v", value(), err)
	}
	// Killed in between: the next command puts it back.
	m.raiseRmem()
	if err := (&Manager{RunDir: m.RunDir}).restoreRmem(); err != nil || value() != 212992 {
		t.Errorf("after a kill %d, %v", value(), err)
	}
	// Set by somebody else meanwhile: theirs stays.
	restore, _ = m.raiseRmem()
	set(4242)
	if err := restore(); err != nil || value() != 4242 {
		t.Errorf("somebody else's %d, %v", value(), err)
	}
	// Large enough already.
	set(2 * rmemWanted)
	restore, _ = m.raiseRmem()
	if err := restore(); err != nil || value() != 2*rmemWanted {
		t.Errorf("a larger one became %d, %v", value(), err)
	}
	rmemPath = t.TempDir() + "/nowhere"
	if restore, warning = m.raiseRmem(); !strings.Contains(warning, "net.core.rmem_default=16777216") || restore() != nil {
		t.Errorf("where it cannot be set: %q", warning)
	}
	if left, _ := os.ReadDir(m.RunDir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestTestbedFile(t *testing.T) {
	l := mustUp(t, Spec{Name: "demo", Hosts: twoHosts})
	path := t.TempDir() + "/testbed.yaml"
	up := l.Testbed()
	if err := config.Write(path, &up, 0o644); err != nil {
		t.Fatal(err)
	}
	tb, err := config.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := tb.Names(), twoHosts; len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("%v", got)
	}
	h, _ := tb.Host("n2")
	if out := sh(t, "%s ip -o addr show e0", strings.Join(h.Exec, " ")); !strings.Contains(out, h.IP.String()+"/24") {
		t.Errorf("address in the file %s, on the host %s", h.IP, out)
	}
	if out := sh(t, "%s cat /sys/class/net/e0/address || %s ip link show e0", strings.Join(h.Exec, " "), strings.Join(h.Exec, " ")); !strings.Contains(out, h.MAC) {
		t.Errorf("mac in the file %s, on the host %s", h.MAC, out)
	}
	if out := strings.TrimSpace(sh(t, "ovs-vsctl --timeout=5 --db=unix:%s/db.sock get interface %s ofport", l.OVSRunDir(), l.st.MirrorSwitch)); out != strconv.Itoa(int(tb.Mirrors[0].Port.Number)) {
		t.Errorf("mirror port %v in the file, %s in the switch", tb.Mirrors[0].Port, out)
	}
	if _, err := net.InterfaceByName(tb.Mirrors[0].Interface); err != nil || tb.Mirrors[0].Netns != "" {
		t.Errorf("mirror reader: %v", err)
	}
	if out := strings.TrimSpace(sh(t, "ovs-vsctl --timeout=5 --db=unix:%s/db.sock get interface %s ofport", l.OVSRunDir(), l.st.GateSwitch)); out != strconv.Itoa(int(tb.Gates[0].Port.Number)) {
		t.Errorf("gate port %v in the file, %s in the switch", tb.Gates[0].Port, out)
	}
	// A host's own tag and the gate's make a full frame 8 bytes longer.
	for _, end := range []string{tb.Gates[0].Interface, l.st.GateSwitch} {
		if i, err := net.InterfaceByName(end); err != nil || i.MTU < 1508 || i.Flags&net.FlagUp == 0 {
			t.Errorf("gate port's end %s: %+v, %v", end, i, err)
		}
	}
	// Opened by another process, it is the same lab.
	again, err := Default().Open(t.Context(), "demo")
	if err != nil || again.Testbed().Hosts[1].MAC != h.MAC {
		t.Errorf("%v, %v", again, err)
	}
}

// TestQuiet listens on the mirror and the hosts: a lab on which nothing runs
// must not speak, or it would disturb what is counted.
func TestQuiet(t *testing.T) {
	l := mustUp(t, Spec{Name: "demo", Hosts: twoHosts})
	normal(t, l)
	rx := func() string {
		var out []string
		for _, h := range l.st.Hosts {
			out = append(out, sh(t, "ip -s -o link show %s; nsenter --net=%s ip -s -o link show e0", h.Link, netnsPath(h.Netns)))
		}
		for _, name := range []string{l.st.MirrorSwitch, l.st.MirrorReader, l.st.GateSwitch, l.st.GateReader} {
			out = append(out, sh(t, "ip -s -o link show %s", name))
		}
		return strings.Join(out, "\n")
	}
	before := rx()
	time.Sleep(1500 * time.Millisecond) // IPv6 would have asked for its address and for routers by now
	if after := rx(); after != before {
		t.Errorf("an idle lab spoke\n%s\n%s", before, after)
	}
	// As a check of this check.
	sh(t, "nsenter --net=%s sh -c 'echo 0 > /proc/sys/net/ipv6/conf/e0/disable_ipv6'", netnsPath(l.Netns("n1")))
	time.Sleep(1500 * time.Millisecond)
	if after := rx(); after == before {
		t.Error("with IPv6 nothing was heard either: this test shows nothing")
	}
}
