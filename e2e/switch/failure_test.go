package ofswitch

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"netsplit/controller"
	"netsplit/internal/labtest"
	"netsplit/model"
	"netsplit/testbed/fabric"
)

// childEnv makes this binary a controller that cuts and then waits to be
// killed; its value is the path of a testbed file.
const childEnv = "NETSPLIT_E2E_SWITCH_CHILD"

// liftEnv has the controller take its drop rules away again: meters alone hold.
const liftEnv = "NETSPLIT_E2E_SWITCH_LIFT"

func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		if err := child(path); err != nil {
			fmt.Println("child:", err)
			os.Exit(1)
		}
	}
	os.Exit(labtest.Main(m.Run))
}

// child gates one pair and cuts another, says so, and holds that until killed.
func child(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var t model.Testbed
	if err := yaml.Unmarshal(b, &t); err != nil {
		return err
	}
	c, err := controller.Listen(controller.Config{Addr: "127.0.0.1:0"})
	if err != nil {
		return err
	}
	f, err := fabric.New(fabric.Config{Testbed: t, Controller: c})
	if err != nil {
		return err
	}
	fmt.Println("listening on", c.Addr())
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := f.Ready(ctx); err != nil {
		return err
	}
	if err := f.SetTaps(ctx, []fabric.Pair{{A: "h3", B: "h4"}}, nil); err != nil {
		return err
	}
	if err := f.Cut(ctx, 1, shapes[0].p); err != nil {
		return err
	}
	if os.Getenv(liftEnv) != "" {
		if links, err := f.Lift(ctx, 1, shapes[0].p.ProbePackets()); err != nil || len(links) == 0 {
			return fmt.Errorf("lifted %d links: %w", len(links), err)
		}
	}
	fmt.Println("cut")
	select {}
}

// lines collects what a process prints.
type lines struct {
	mu  sync.Mutex
	buf strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *lines) after(prefix string) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, rest, ok := strings.Cut(l.buf.String(), prefix)
	line, _, whole := strings.Cut(rest, "\n")
	if !ok || !whole {
		return "", fmt.Errorf("no %q in %q", prefix, l.buf.String())
	}
	return strings.TrimSpace(line), nil
}

func TestKilledControllerMeansHealedNetwork(t *testing.T) {
	onBothGates(t, testKilledControllerMeansHealedNetwork)
}

func testKilledControllerMeansHealedNetwork(t *testing.T, by model.Gate) {
	b := newBench(t, 4)
	if by == model.GateByPacketIn { // as for any testbed that names no gate port
		b.testbed.Gates = nil
	}
	cmd := b.cutByChild()
	b.settled()
	if gated := strings.Contains(b.flows(), "push_vlan"); gated != (by == model.GateByPort) {
		t.Fatalf("not gated by %s:\n%s", by, b.flows())
	}
	cut := matrix(shapes[0].p)
	closed := func(from, to model.NodeID) bool {
		return cut(from, to) && from+to != "h3h4" && from+to != "h4h3" // nobody releases
	}
	// An ARP request of h3 for another host floods, to h4 too: that is what
	// gating a pair leaves open. The probes here are unicast.
	b.expectUnicast("cut and gated", closed)
	time.Sleep(6 * time.Second)
	b.expectUnicast("still, after more than the hard timeout", closed)
	stopProcess(cmd)
	b.healsAlone()
}

// cutByChild starts a controller that cuts, as a process to be killed.
func (b *bench) cutByChild(env ...string) *exec.Cmd {
	b.tb.Helper()
	file, err := yaml.Marshal(b.testbed)
	if err != nil {
		b.tb.Fatal(err)
	}
	if err := os.WriteFile(b.path("testbed.yaml"), file, 0o600); err != nil {
		b.tb.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		b.tb.Fatal(err)
	}
	out := &lines{}
	cmd := exec.Command("ip", "netns", "exec", b.sw(), exe)
	cmd.Env = append(append(os.Environ(), childEnv+"="+b.path("testbed.yaml")), env...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		b.tb.Fatal(err)
	}
	b.tb.Cleanup(func() { stopProcess(cmd) })
	var addr string
	b.until("child listens", func() (err error) { addr, err = out.after("listening on "); return err })
	b.connect(addr)
	b.until("child cuts", func() error { _, err := out.after("cut"); return err })
	return cmd
}

// healsAlone waits until everything passes after the controller was killed, no
// longer than its rules live.
func (b *bench) healsAlone() {
	b.tb.Helper()
	died := time.Now()
	b.opens(died, 5*time.Second+2*time.Second)
	b.tb.Logf("all traffic back %v after the kill", time.Since(died).Round(10*time.Millisecond))
	b.expect("healed by itself", everything)
}

// opens waits until everything passes. What is sent later than limit after a moment has
// to pass, however long the machine takes over it.
func (b *bench) opens(since time.Time, limit time.Duration) {
	b.tb.Helper()
	for {
		began := time.Now()
		late, arrive := began.Sub(since) > limit, 150*time.Millisecond
		if late {
			arrive = 3 * time.Second
		}
		ps := b.sendAll()
		bad := b.mismatches(ps, everything)
		for end := time.Now().Add(arrive); len(bad) > 0 && time.Now().Before(end); bad = b.mismatches(ps, everything) {
			time.Sleep(20 * time.Millisecond)
		}
		if len(bad) == 0 {
			return
		}
		if late {
			b.tb.Fatalf("after %v still:\n%s\n%s", time.Since(since), strings.Join(bad, "\n"), b.flows())
		}
	}
}

// expectUnicast is expect without the broadcast probes.
func (b *bench) expectUnicast(what string, pass func(from, to model.NodeID) bool) {
	b.tb.Helper()
	b.kinds = []string{"tcp", "udp", "icmp", "fragment", "arp reply"}
	defer func() { b.kinds = kinds }()
	b.expect(what, pass)
}

func TestRestartedSwitchIsRepaired(t *testing.T) {
	b := newBench(t, 4)
	down := make(chan error, 10)
	f, _ := b.start(fabric.Config{Events: fabric.Events{SwitchDown: func(_ model.DatapathID, err error) { down <- err }}})
	b.vsctl("set", "controller", bridge, "max_backoff=1000")
	if err := f.Cut(within(t), 1, shapes[1].p); err != nil {
		t.Fatal(err)
	}
	// The pid is that of "ip netns exec", which has become ovs-vswitchd.
	stopProcess(b.vswitch)
	select {
	case err := <-down:
		t.Log("session ended:", err)
	case <-time.After(30 * time.Second):
		t.Fatal("the death of the switch was not noticed within 30 s")
	}
	b.startSwitch()
	if err := f.Ready(within(t)); err != nil {
		t.Fatal(err)
	}
	b.settled()
	b.expect("cut is back after a restart", matrix(shapes[1].p))
}

func TestTamperingIsReportedAndRepaired(t *testing.T) {
	b := newBench(t, 4)
	seen := make(chan fabric.Tampering, 100)
	f, _ := b.start(fabric.Config{Events: fabric.Events{Tampered: func(_ model.DatapathID, x fabric.Tampering) { seen <- x }}})
	if err := f.Cut(within(t), 1, shapes[3].p); err != nil {
		t.Fatal(err)
	}
	next := func(what string) fabric.Tampering {
		t.Helper()
		select {
		case x := <-seen:
			return x
		case <-time.After(30 * time.Second):
			t.Fatalf("%s: not reported within 30 s", what)
			panic("unreachable")
		}
	}
	b.ofctl("del-flows", b.mgmt(), "table=1")
	if x := next("rules deleted"); x.Missing == 0 || len(x.Conflicts) != 0 {
		t.Errorf("rules deleted: reported %v", x)
	}
	b.settled()
	b.expect("repaired", matrix(shapes[3].p))

	b.ofctl("mod-flows", b.mgmt(), "table=1,actions=NORMAL")
	if x := next("rules changed"); x.Changed == 0 || x.Missing != 0 || len(x.Conflicts) != 0 {
		t.Errorf("rules changed: reported %v", x)
	}
	b.settled()
	b.expect("put right", matrix(shapes[3].p))

	down := regexp.MustCompile(`meter=(\d+) [^\n]*\n[^\n]*rate=1 `).FindStringSubmatch(b.meters())
	if down == nil {
		t.Fatalf("no meter is turned down:\n%s", b.meters())
	}
	b.ofctl("mod-meter", b.mgmt(), "meter="+down[1]+",kbps,burst,stats,band=type=drop,rate=1000000,burst_size=1000")
	if x := next("a meter turned up"); x.Changed != 1 || x.Missing != 0 || len(x.Conflicts) != 0 {
		t.Errorf("a meter turned up: reported %v", x)
	}
	b.ofctl("del-meters", b.mgmt()) // and with them the rules that name them
	if x := next("meters deleted"); x.Missing == 0 || len(x.Conflicts) != 0 {
		t.Errorf("meters deleted: reported %v", x)
	}
	b.settled()
	b.expect("with its meters back", matrix(shapes[3].p))

	b.ofctl("add-flow", b.mgmt(), "table=0,priority=500,cookie=0xbad,actions=NORMAL")
	x := next("foreign NORMAL rule")
	if len(x.Conflicts) != 1 || x.Conflicts[0].Flow.Cookie != 0xbad || len(x.Conflicts[0].Defeats) == 0 {
		t.Errorf("foreign NORMAL rule: reported %v", x)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	left := b.flows()
	if strings.Count(left, "cookie=") != 1 || !strings.Contains(left, "cookie=0xbad") {
		t.Errorf("Close left:\n%s", left)
	}
}

// TestKernelsTalk checks with the hosts' own TCP, UDP, ICMP and ARP that what
// the probes show is what applications get.
func TestKernelsTalk(t *testing.T) {
	b := newBench(t, 3)
	f, _ := b.start(fabric.Config{})
	var listeners []net.Listener
	for _, h := range b.hosts {
		err := labtest.In(h.ns, func() error {
			l, err := net.Listen("tcp4", ":7000")
			if err != nil {
				return err
			}
			listeners = append(listeners, l)
			t.Cleanup(func() { l.Close() })
			u, err := net.ListenPacket("udp4", ":7000")
			if err == nil {
				t.Cleanup(func() { u.Close() })
				go echo(u)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range listeners {
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = c.Write([]byte("hello"))
				c.Close()
			}
		}()
	}
	check := func(what string, pass func(from, to model.NodeID) bool) {
		t.Helper()
		for _, from := range b.hosts {
			// Without ARP entries: a cut has to hold for hosts that have just
			// been started too.
			b.do("ip", "-n", from.ns, "neigh", "flush", "dev", "e0")
		}
		for _, from := range b.hosts {
			for _, to := range b.hosts {
				if from == to {
					continue
				}
				want := pass(from.id, to.id) && pass(to.id, from.id)
				if got := b.dial(from, to); (got == nil) != want {
					t.Errorf("%s: tcp %s>%s: %v, want it to work: %v", what, from.id, to.id, got, want)
				}
				if got := b.ping(from, to); (got == nil) != want {
					t.Errorf("%s: ping %s>%s: %v, want it to work: %v", what, from.id, to.id, got, want)
				}
				if got := b.ask(from, to); (got == nil) != want {
					t.Errorf("%s: udp %s>%s: %v, want it to work: %v", what, from.id, to.id, got, want)
				}
			}
		}
	}
	check("nothing cut", everything)
	p := model.Partition{Shape: model.Partial, Effect: model.Drop, Groups: [][]model.NodeID{{"h1"}, {"h2"}}}
	if err := f.Cut(within(t), 1, p); err != nil {
		t.Fatal(err)
	}
	b.settled()
	check("partial", matrix(p))
	if err := f.Heal(within(t), 1); err != nil {
		t.Fatal(err)
	}
	b.settled()
	check("healed", everything)
}

// dial opens a TCP connection from host to host and reads from it.
func (b *bench) dial(from, to *host) error {
	return labtest.In(from.ns, func() error {
		c, err := net.DialTimeout("tcp4", to.ip.String()+":7000", 1500*time.Millisecond)
		if err != nil {
			return err
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(1500 * time.Millisecond))
		_, err = c.Read(make([]byte, 5))
		return err
	})
}

// echo sends datagrams back until the socket is closed.
func echo(u net.PacketConn) {
	buf := make([]byte, 100)
	for {
		n, from, err := u.ReadFrom(buf)
		if err != nil {
			return
		}
		_, _ = u.WriteTo(buf[:n], from)
	}
}

// ask sends a datagram and waits for its echo.
func (b *bench) ask(from, to *host) error {
	return labtest.In(from.ns, func() error {
		c, err := net.Dial("udp4", to.ip.String()+":7000")
		if err != nil {
			return err
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(time.Second))
		if _, err := c.Write([]byte("hello")); err != nil {
			return err
		}
		_, err = c.Read(make([]byte, 5))
		return err
	})
}

// ping sends an ICMP echo request and waits for the kernel's reply.
func (b *bench) ping(from, to *host) error {
	return labtest.In(from.ns, func() error {
		c, err := net.Dial("ip4:icmp", to.ip.String())
		if err != nil {
			return err
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(time.Second))
		// Type 8, code 0, checksum, identifier 1, sequence 1.
		if _, err := c.Write([]byte{8, 0, 0xf7, 0xfd, 0, 1, 0, 1}); err != nil {
			return err
		}
		for buf := make([]byte, 100); ; {
			n, err := c.Read(buf)
			if err != nil {
				return err
			}
			// Read gives the IP header too.
			if at := int(buf[0]&15) * 4; n >= at+8 && buf[at] == 0 { // echo reply
				return nil
			}
		}
	})
}

// TestOnlyOpenFlow10 points a bridge that speaks 1.0 at the controller.
func TestOnlyOpenFlow10(t *testing.T) {
	b := newBench(t, 0)
	refused := make(chan error, 10)
	c := b.listen(controller.Config{Refused: func(_ string, err error) {
		select {
		case refused <- err:
		default:
		}
	}})
	b.vsctl("set", "bridge", bridge, "protocols=OpenFlow10")
	b.connect(c.Addr().String())
	select {
	case err := <-refused:
		for _, says := range []string{"protocols=OpenFlow13", "no common versions"} {
			if !strings.Contains(err.Error(), says) {
				t.Errorf("the error does not say %q: %v", says, err)
			}
		}
	case <-time.After(20 * time.Second):
		t.Fatal("nothing was refused within 20 s")
	}
}
