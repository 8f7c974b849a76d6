package agent

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netsplit/internal/labtest"
	"netsplit/model"
)

// helperArg makes the test binary a parent that starts an agent, tells its
// pid, and waits to be killed.
const helperArg = "agent-helper"

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) == 2 && os.Args[1] == "agent":
		if err := Serve(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	case len(os.Args) == 2 && os.Args[1] == helperArg:
		c, err := Start(context.Background(), model.TestbedHost{Name: "n1"}, os.Args[0])
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(c.cmd.Process.Pid)
		select {}
	}
	os.Exit(labtest.Main(m.Run))
}

func self(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

func sh(t *testing.T, format string, args ...any) {
	t.Helper()
	script := fmt.Sprintf(format, args...)
	if out, err := exec.Command("sh", "-ec", script).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", script, err, out)
	}
}

var hostCount int

// pair makes a host in a namespace of its own, 10.9.N.2, joined to ours,
// 10.9.N.1 and 10.9.N.3, by a veth.
func pair(t *testing.T) (h model.TestbedHost, ours, theirs netip.Addr) {
	t.Helper()
	hostCount++
	ns := fmt.Sprintf("agent-%d-%d", os.Getpid(), hostCount)
	sh(t, `ip netns add %[1]s
ip link add ag%[2]d type veth peer name e0 netns %[1]s
ip addr add 10.9.%[2]d.1/24 dev ag%[2]d; ip addr add 10.9.%[2]d.3/24 dev ag%[2]d
ip link set ag%[2]d up
ip -n %[1]s addr add 10.9.%[2]d.2/24 dev e0; ip -n %[1]s link set e0 up; ip -n %[1]s link set lo up`, ns, hostCount)
	t.Cleanup(func() { sh(t, "ip link del ag%d; ip netns del %s", hostCount, ns) })
	a := func(last byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 9, byte(hostCount), last}) }
	return model.TestbedHost{Name: "n1", IP: a(2), Exec: []string{"nsenter", "--net=/run/netns/" + ns}}, a(1), a(2)
}

func start(t *testing.T, h model.TestbedHost) *Client {
	t.Helper()
	c, err := Start(t.Context(), h, self(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// inNetns runs f in the host's namespace.
func inNetns(t *testing.T, h model.TestbedHost, f func() error) {
	t.Helper()
	if err := labtest.In(filepath.Base(h.Exec[1]), f); err != nil {
		t.Fatal(err)
	}
}

func TestCountsWhatArrives(t *testing.T) {
	h, ours, theirs := pair(t)
	c := start(t, h)
	other := netip.AddrFrom4([4]byte{10, 9, ours.As4()[2], 3})
	// Resolve first, so that ARP is not among what is counted below.
	send(t, ours, theirs, 1)
	send(t, other, theirs, 1)
	time.Sleep(20 * time.Millisecond)

	from := time.Now()
	send(t, ours, theirs, 10)
	mid := time.Now()
	time.Sleep(5 * time.Millisecond)
	send(t, other, theirs, 3)
	send(t, ours, theirs, 4)
	// What the host sends does not count. (Somebody listens, so that it is not
	// refused: a refusal would be a packet to the host.)
	l, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(ours, 9999)))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	inNetns(t, h, func() error { return sendFrom(theirs, ours, 5) })
	to := time.Now()

	for _, q := range []struct {
		name     string
		src      Sender
		from, to time.Time
		want     int
	}{
		{"all", Sender{Addrs: []netip.Addr{ours}}, from, to, 14},
		{"first part", Sender{Addrs: []netip.Addr{ours}}, from, mid, 10},
		{"second part", Sender{Addrs: []netip.Addr{ours}}, mid, to, 4},
		{"another sender", Sender{Addrs: []netip.Addr{other}}, from, to, 3},
		{"both", Sender{Addrs: []netip.Addr{ours, other}}, from, to, 17},
		{"nobody", Sender{Addrs: []netip.Addr{netip.MustParseAddr("10.1.1.1")}}, from, to, 0},
		{"the host itself", Sender{Addrs: []netip.Addr{theirs}}, from, to, 0},
	} {
		n, err := c.CountFrom(t.Context(), q.src, q.from, q.to)
		if err != nil || n.Packets != q.want || n.Group != 0 || n.Incomplete {
			t.Errorf("%s: %+v, %v; want %d packets", q.name, n, err, q.want)
		}
		if q.want > 0 && (n.First.Before(q.from) || n.First.After(n.Last) || n.Last.After(q.to) || n.Bytes != int64(q.want)*(14+20+8+4)) {
			t.Errorf("%s: %+v", q.name, n)
		}
	}
	first, err := c.FirstFrom(t.Context(), Sender{Addrs: []netip.Addr{ours}}, mid)
	if err != nil || first.Before(mid) || first.After(to) {
		t.Errorf("first after %v: %v, %v", mid, first, err)
	}
	if first, err := c.FirstFrom(t.Context(), Sender{Addrs: []netip.Addr{ours}}, to); err != nil || !first.IsZero() {
		t.Errorf("first after the last: %v, %v", first, err)
	}
}

func TestCountWaitsForItsEnd(t *testing.T) {
	h, ours, theirs := pair(t)
	c := start(t, h)
	send(t, ours, theirs, 1)
	time.Sleep(20 * time.Millisecond)
	var from time.Time
	for late := true; late; { // on a machine that stood still
		from = time.Now()
		to := from.Add(300 * time.Millisecond)
		sent := make(chan time.Time)
		time.AfterFunc(100*time.Millisecond, func() {
			_ = sendFrom(ours, theirs, 2)
			sent <- time.Now()
		})
		n, err := c.CountFrom(t.Context(), Sender{Addrs: []netip.Addr{ours}}, from, to)
		if late = !(<-sent).Before(to); !late && (err != nil || n.Packets != 2) {
			t.Errorf("%+v, %v", n, err)
		}
	}
	if _, err := c.CountFrom(t.Context(), Sender{Addrs: []netip.Addr{ours}}, from, from.Add(time.Hour)); err == nil || !strings.Contains(err.Error(), "ahead") {
		t.Errorf("count until next hour: %v", err)
	}
}

func TestCountsARPForTheHostOnly(t *testing.T) {
	h, ours, theirs := pair(t)
	c := start(t, h)
	from := time.Now()
	nobody := netip.AddrFrom4([4]byte{10, 9, ours.As4()[2], 77})
	send(t, ours, nobody, 1) // broadcast: who has 77
	time.Sleep(50 * time.Millisecond)
	n, err := c.CountFrom(t.Context(), Sender{Addrs: []netip.Addr{ours}}, from, time.Now())
	if err != nil || n.Packets != 0 || n.Group == 0 {
		t.Errorf("ARP for another host: %+v, %v", n, err)
	}
	if first, err := c.FirstFrom(t.Context(), Sender{Addrs: []netip.Addr{ours}}, from); err != nil || first.Before(from) {
		t.Errorf("the first to all: %v, %v", first, err)
	}
	send(t, ours, theirs, 1) // who has 2, then the datagram
	time.Sleep(50 * time.Millisecond)
	n, err = c.CountFrom(t.Context(), Sender{Addrs: []netip.Addr{ours}}, from, time.Now())
	if err != nil || n.Packets < 2 {
		t.Errorf("ARP for the host: %+v, %v", n, err)
	}
}

// What the host is to pass on, to a container say, has crossed as well.
func TestCountsWhatIsForAddressesBehindTheHost(t *testing.T) {
	h, ours, theirs := pair(t)
	c := start(t, h)
	behind := netip.AddrFrom4([4]byte{172, 31, ours.As4()[2], 5})
	sh(t, "ip route add %s via %s", behind, theirs)
	send(t, ours, theirs, 1) // resolve
	time.Sleep(20 * time.Millisecond)
	from := time.Now()
	send(t, ours, behind, 3)
	n, err := c.CountFrom(t.Context(), Sender{Addrs: []netip.Addr{ours}, Only: []model.Traffic{{Proto: "udp"}}}, from, time.Now())
	if err != nil || n.Packets != 3 || n.Group != 0 {
		t.Errorf("%+v, %v; want 3 packets", n, err)
	}
}

func TestCountFromBeforeTheAgentIsIncomplete(t *testing.T) {
	h, ours, _ := pair(t)
	before := time.Now()
	c := start(t, h)
	n, err := c.CountFrom(t.Context(), Sender{Addrs: []netip.Addr{ours}}, before, time.Now())
	if err != nil || !n.Incomplete {
		t.Errorf("%+v, %v", n, err)
	}
}

func TestKernelDropsMakeCountIncomplete(t *testing.T) {
	h, ours, theirs := pair(t)
	c := start(t, h)
	send(t, ours, theirs, 1)
	time.Sleep(20 * time.Millisecond)
	from := time.Now()
	// While the agent is stopped its buffer overflows.
	agent := c.cmd.Process
	agent.Signal(unix.SIGSTOP)
	const sent = 120000
	send(t, ours, theirs, sent)
	agent.Signal(unix.SIGCONT)
	to := time.Now()
	n, err := c.CountFrom(t.Context(), Sender{Addrs: []netip.Addr{ours}}, from, to)
	if err != nil {
		t.Fatal(err)
	}
	if n.Packets == sent || n.Packets == 0 || !n.Incomplete {
		t.Errorf("%+v of %d sent", n, sent)
	}
	// What comes after is complete again.
	time.Sleep(10 * time.Millisecond)
	from = time.Now()
	send(t, ours, theirs, 100)
	if n, err := c.CountFrom(t.Context(), Sender{Addrs: []netip.Addr{ours}}, from, time.Now()); err != nil || n.Packets != 100 || n.Incomplete {
		t.Errorf("afterwards: %+v, %v", n, err)
	}
}

// send sends datagrams of 4 bytes.
func send(t *testing.T, from, to netip.Addr, n int) {
	t.Helper()
	if err := sendFrom(from, to, n); err != nil {
		t.Fatal(err)
	}
}

// sendFrom sends from a socket that is not connected: a refusal by the other
// side would otherwise take the place of the next datagram.
func sendFrom(from, to netip.Addr, n int) error {
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(from, 0)))
	if err != nil {
		return err
	}
	defer c.Close()
	for range n {
		if _, err := c.WriteToUDPAddrPort([]byte("ping"), netip.AddrPortFrom(to, 9999)); err != nil {
			return err
		}
	}
	return nil
}

// serveTCP answers each connection on the host with f.
func serveTCP(t *testing.T, h model.TestbedHost, f func(net.Conn)) string {
	t.Helper()
	var l net.Listener
	inNetns(t, h, func() (err error) {
		l, err = net.Listen("tcp", "127.0.0.1:0")
		return err
	})
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				f(c)
			}()
		}
	}()
	return l.Addr().String()
}

func TestTCPProbe(t *testing.T) {
	h, _, _ := pair(t)
	c := start(t, h)
	stay := make(chan struct{})
	defer close(stay)
	addr := serveTCP(t, h, func(conn net.Conn) {
		line, _ := bufio.NewReader(conn).ReadString('\n')
		switch strings.TrimSpace(line) {
		case "slow":
			for _, part := range []string{"a", "b", "c\r\n"} {
				fmt.Fprint(conn, part)
				time.Sleep(50 * time.Millisecond)
			}
			<-stay
		case "burst":
			fmt.Fprint(conn, "one ")
			fmt.Fprint(conn, "two")
			<-stay
		case "late":
			time.Sleep(100 * time.Millisecond)
			fmt.Fprint(conn, "late")
			<-stay
		case "close":
			fmt.Fprint(conn, "bye")
		case "big":
			conn.Write(make([]byte, maxAnswer+1))
		case "binary":
			conn.Write([]byte{0, 0xff, 0xfe, '\n'})
		case "hang":
			<-stay
		case "echo \x00\x80\xff":
			fmt.Fprint(conn, line)
		}
	})
	for _, q := range []struct {
		send, until string
		limit       time.Duration
		want, err   string
	}{
		{"slow\n", `\r\n$`, time.Second, "abc\r\n", ""},
		{"slow\n", `\r\n$`, 70 * time.Millisecond, "a", "no complete answer within 70ms"}, // and b, if the machine is quick
		{"slow\n", "", time.Second, "a", ""},                                              // ends in silence
		{"burst\n", "", time.Second, "one two", ""},
		{"late\n", "", time.Second, "late", ""}, // silence counts from the first byte
		{"close\n", "", time.Second, "bye", ""},
		{"close\n", "never", time.Second, "bye", "closed before"},
		{"binary\n", "", time.Second, "\x00\xff\xfe\n", ""},
		{"echo \x00\x80\xff\n", "", time.Second, "echo \x00\x80\xff\n", ""},
		{"hang\n", "", 50 * time.Millisecond, "", "no complete answer within 50ms"},
		{"x\n", "(", time.Second, "", "until"},
	} {
		got, took, err := c.Probe(t.Context(), model.Probe{TCP: addr, Send: q.send, Until: q.until, Limit: q.limit})
		if !strings.HasPrefix(got, q.want) || err == nil && got != q.want || (err == nil) != (q.err == "") || err != nil && !strings.Contains(err.Error(), q.err) {
			t.Errorf("%q until %q: %q, %v", q.send, q.until, got, err)
		}
		if err == nil && (took <= 0 || took > q.limit) {
			t.Errorf("%q took %v", q.send, took)
		}
	}
	if got, _, err := c.Probe(t.Context(), model.Probe{TCP: addr, Send: "big\n"}); len(got) != maxAnswer || err == nil {
		t.Errorf("big answer: %d bytes, %v", len(got), err)
	}
	if _, _, err := c.Probe(t.Context(), model.Probe{TCP: "127.0.0.1:1"}); err == nil || !strings.Contains(err.Error(), "refused") || !strings.Contains(err.Error(), "n1") {
		t.Errorf("closed port: %v", err)
	}
	if _, _, err := c.Probe(t.Context(), model.Probe{}); err == nil {
		t.Error("an empty probe was answered")
	}
}

func TestHangingProbesDoNotDelayOthers(t *testing.T) {
	h, _, _ := pair(t)
	c := start(t, h)
	stay := make(chan struct{})
	defer close(stay)
	hang := serveTCP(t, h, func(net.Conn) { <-stay })
	quick := serveTCP(t, h, func(conn net.Conn) { fmt.Fprint(conn, "ok\n") })
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for range 20 {
		wg.Go(func() {
			if _, _, err := c.Probe(ctx, model.Probe{TCP: hang, Limit: time.Minute}); !errors.Is(err, context.Canceled) {
				t.Errorf("hanging probe: %v", err)
			}
		})
	}
	for range 50 {
		if got, _, err := c.Probe(t.Context(), model.Probe{TCP: quick, Until: "\n"}); got != "ok\n" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
	cancel()
	wg.Wait()
}

func TestHTTPProbe(t *testing.T) {
	h, _, _ := pair(t)
	c := start(t, h)
	var l net.Listener
	inNetns(t, h, func() (err error) {
		l, err = net.Listen("tcp", "127.0.0.1:0")
		return err
	})
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/sick":
			http.Error(w, "no leader", http.StatusServiceUnavailable)
		case "/hang":
			<-r.Context().Done()
		default:
			fmt.Fprint(w, "healthy")
		}
	})}
	go srv.Serve(l)
	defer srv.Close()
	base := "http://" + l.Addr().String()
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1") // must not be used; loopback never is, so this is only half a check
	if got, _, err := c.Probe(t.Context(), model.Probe{HTTP: base + "/"}); got != "healthy" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if got, _, err := c.Probe(t.Context(), model.Probe{HTTP: base + "/sick"}); got != "no leader\n" || err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("%q, %v", got, err)
	}
	if _, _, err := c.Probe(t.Context(), model.Probe{HTTP: base + "/hang", Limit: 50 * time.Millisecond}); err == nil || !strings.Contains(err.Error(), "50ms") {
		t.Errorf("%v", err)
	}
}

func TestCommandProbe(t *testing.T) {
	h, _, _ := pair(t)
	c := start(t, h)
	own, _ := os.Readlink("/proc/self/ns/net")
	ask := func(argv []string, limit time.Duration) (string, error) {
		got, _, err := c.Probe(t.Context(), model.Probe{Command: argv, Limit: limit})
		direct, derr := Command(t.Context(), h, argv, limit)
		if got != direct || (err == nil) != (derr == nil) {
			t.Errorf("%q: by the agent %q, %v; directly %q, %v", argv, got, err, direct, derr)
		}
		return got, err
	}
	if got, err := ask([]string{"readlink", "/proc/self/ns/net"}, time.Second); err != nil || !strings.HasPrefix(got, "net:") || strings.TrimSpace(got) == own {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := ask([]string{"sh", "-c", "echo out; echo bad >&2; exit 3"}, time.Second); got != "out\n" || err == nil || !strings.Contains(err.Error(), "bad") || !strings.Contains(err.Error(), "status 3") {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := ask([]string{"sh", "-c", "echo out; sleep 1000 & sleep 1000"}, 100*time.Millisecond); got != "out\n" || err == nil || !strings.Contains(err.Error(), "100ms") {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := ask([]string{"/nowhere/x"}, time.Second); err == nil {
		t.Error("a command that does not exist was run")
	}
	if out, _ := exec.Command("sh", "-c", "ps -eo args | grep '^sleep 100[0]'").Output(); len(out) > 0 {
		t.Errorf("left: %s", out)
	}
}

func TestAgentEndsWithItsClient(t *testing.T) {
	h, _, _ := pair(t)
	c := start(t, h)
	pid := c.cmd.Process.Pid
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err == nil {
		t.Error("the agent outlives Close")
	}
	if _, _, err := c.Probe(t.Context(), model.Probe{TCP: "127.0.0.1:1"}); !errors.Is(err, ErrGone) {
		t.Errorf("probe after Close: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func TestKilledAgentIsTold(t *testing.T) {
	h, _, _ := pair(t)
	c := start(t, h)
	stay := make(chan struct{})
	defer close(stay)
	hang := serveTCP(t, h, func(net.Conn) { <-stay })
	time.AfterFunc(50*time.Millisecond, func() { c.cmd.Process.Kill() })
	_, _, err := c.Probe(t.Context(), model.Probe{TCP: hang, Limit: time.Minute})
	if !errors.Is(err, ErrGone) || !strings.Contains(err.Error(), "n1") {
		t.Errorf("%v", err)
	}
}

// An agent that is stopped reads nothing: whoever asks it something gives up in
// time, and the agent is lost, so that a new one can take its place.
func TestAgentThatReadsNothingIsGivenUp(t *testing.T) {
	h, _, _ := pair(t)
	c := start(t, h)
	c.cmd.Process.Signal(unix.SIGSTOP)
	fill := model.Probe{TCP: "127.0.0.1:1", Send: strings.Repeat("x", 200<<10), Limit: time.Millisecond} // more than the pipe holds
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			if _, _, err := c.Probe(ctx, fill); err == nil {
				t.Errorf("call %d: a stopped agent answered", i)
			}
		})
	}
	specified := make(chan struct{})
	go func() { wg.Wait(); close(specified) }()
	select {
	case <-specified:
	case <-time.After(10 * time.Second):
		c.cmd.Process.Kill()
		t.Fatal("callers still wait for a stopped agent")
	}
	select {
	case <-c.ended:
	case <-time.After(10 * time.Second):
		t.Fatal("the agent does not count as lost")
	}
	if err := c.Err(); !errors.Is(err, ErrGone) || !strings.Contains(err.Error(), "no longer read") {
		t.Errorf("%v", err)
	}
}

// A caller that gives up leaves an agent alone that reads.
func TestAgentOutlivesCallersThatGiveUp(t *testing.T) {
	h, _, _ := pair(t)
	c := start(t, h)
	for range 200 {
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		_, _, _ = c.Probe(ctx, model.Probe{TCP: "127.0.0.1:1"})
	}
	if _, _, err := c.Probe(t.Context(), model.Probe{TCP: "127.0.0.1:1"}); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("afterwards: %v", err)
	}
}

func TestAgentDiesWithNetsplit(t *testing.T) {
	cmd := exec.Command(self(t), helperArg)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatalf("helper said %q", line)
	}
	cmd.Process.Kill()
	cmd.Wait()
	for range 200 {
		if data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err != nil || strings.Contains(string(data), ") Z ") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the agent outlives its killed parent")
}

func TestStartErrors(t *testing.T) {
	h, _, _ := pair(t)
	for _, c := range []struct {
		name   string
		host   model.TestbedHost
		binary string
		want   string
	}{
		{"no such program", h, "/nowhere/netsplit", "/nowhere/netsplit"},
		{"no such prefix", model.TestbedHost{Name: "n9", Exec: []string{"/nowhere/enter"}}, self(t), "n9"},
		{"another program", h, "/bin/echo", "unexpected output"},
		{"one that says nothing", h, "/bin/true", "ended"},
	} {
		if _, err := Start(t.Context(), c.host, c.binary); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	silent := model.TestbedHost{Name: "n1", Exec: []string{"sh", "-c", "exec sleep 1000", "sh"}}
	if _, err := Start(ctx, silent, "x"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an agent that hangs: %v", err)
	}
}
