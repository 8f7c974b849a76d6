package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"netsplit/model"
)

// patience is for what must arrive, on a machine that is busy.
const patience = 15 * time.Second

var twoHosts = []model.NodeID{"n1", "n2"}

func mustUp(t *testing.T, s Spec) *Lab {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	l, err := Up(ctx, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := Down(context.Background(), s.Name); err != nil && !errors.Is(err, ErrNoLab) {
			t.Error(err)
		}
	})
	return l
}

func mustDown(t *testing.T, name string) {
	t.Helper()
	if err := Down(t.Context(), name); err != nil {
		t.Fatal(err)
	}
}

// carries says whether text sent from one host arrives at another.
func carries(t *testing.T, l *Lab, from, to model.NodeID, network, text string, limit time.Duration) bool {
	t.Helper()
	h, _ := l.testbedHost(to)
	addr := h.IP.String() + ":9000"
	r := on(l, to, "recv", network, addr, limit.String())
	out, err := r.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	br := bufio.NewReader(out)
	if line, err := br.ReadString('\n'); line != "ready\n" {
		t.Fatalf("receiver on %s: %q, %v", to, line, err)
	}
	sent := on(l, from, "send", network, addr, text).Run()
	got, _ := io.ReadAll(br)
	r.Wait()
	return sent == nil && string(got) == text
}

func TestLabCarriesTCPAndUDP(t *testing.T) {
	before := world(t)
	l := mustUp(t, Spec{Name: "demo", Hosts: []model.NodeID{"n1", "n2", "n3"}, Ports: []uint16{8020, 50070}})
	if got := strings.TrimSpace(sh(t, "nsenter --net=%s cat /proc/sys/net/ipv4/ip_local_reserved_ports", netnsPath(l.Netns("n3")))); got != "8020,50070" {
		t.Errorf("reserved ports: %s", got)
	}
	if carries(t, l, "n1", "n2", "udp", "no rule yet", 300*time.Millisecond) {
		t.Error("a packet passed a switch without rules")
	}
	normal(t, l)
	h2, _ := l.testbedHost("n2")
	if out, err := on(l, "n1", "ping", h2.IP.String()).CombinedOutput(); err != nil {
		t.Errorf("ping: %v: %s", err, out)
	}
	for _, network := range []string{"udp", "tcp"} {
		if !carries(t, l, "n1", "n2", network, strings.Repeat("x", 1200), patience) {
			t.Errorf("%s payload did not arrive: checksum offload?", network)
		}
	}
	if !carries(t, l, "n3", "n1", "tcp", strings.Repeat("0123456789", 10000), patience) {
		t.Error("100 kB over TCP did not arrive")
	}
	for to, field := range map[string]string{"224.0.0.1": "InMcastPkts", "255.255.255.255": "InBcastPkts"} {
		seen := func() string {
			return snmpField(t, sh(t, "nsenter --net=%s cat /proc/net/netstat", netnsPath(l.Netns("n2"))), "IpExt", field)
		}
		before := seen()
		out, _ := on(l, "n1", "send", "udp", to+":9", "x").CombinedOutput()
		for end := time.Now().Add(patience); seen() == before && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
		}
		if seen() == before {
			t.Errorf("a datagram to %s did not arrive: %s", to, out)
		}
	}
	for _, n := range []model.NodeID{"n1", "n2", "n3"} {
		snmp := sh(t, "nsenter --net=%s cat /proc/net/snmp", netnsPath(l.Netns(n)))
		if got := snmpField(t, snmp, "Tcp", "InCsumErrors") + snmpField(t, snmp, "Udp", "InCsumErrors"); got != "00" {
			t.Errorf("%s: checksum errors (tcp, udp): %s", n, got)
		}
	}
	mustDown(t, "demo")
	checkWorld(t, before)
}

func snmpField(t *testing.T, snmp, proto, field string) string {
	t.Helper()
	var head []string
	for line := range strings.Lines(snmp) {
		f := strings.Fields(line)
		if f[0] != proto+":" {
			continue
		}
		if head == nil {
			head = f
			continue
		}
		for i := range head {
			if head[i] == field {
				return f[i]
			}
		}
	}
	t.Fatalf("no %s %s in %s", proto, field, snmp)
	return ""
}

func TestDownKillsWhatRunsOnHosts(t *testing.T) {
	before := world(t)
	l := mustUp(t, Spec{Name: "demo", Hosts: twoHosts})
	// In a session of its own, and ignoring what can be ignored.
	cmd := exec.Command("setsid", "nsenter", "--net="+netnsPath(l.Netns("n1")), "sh", "-c", "trap '' TERM HUP INT; sleep 1000 & sleep 1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for range 200 {
		if st, _ := Default().Show(t.Context(), "demo"); st.Hosts[0].Processes == 3 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	st, err := Default().Show(t.Context(), "demo")
	if err != nil || st.Hosts[0].Processes != 3 || st.Problem != "" {
		t.Fatalf("status: %+v, %v", st, err)
	}
	mustDown(t, "demo")
	if err := <-done; err == nil {
		t.Error("the process on the host was not killed")
	}
	checkWorld(t, before)
}

func TestDownTwice(t *testing.T) {
	mustUp(t, Spec{Name: "demo", Hosts: twoHosts})
	mustDown(t, "demo")
	if err := Down(t.Context(), "demo"); !errors.Is(err, ErrNoLab) || !strings.Contains(err.Error(), "demo") {
		t.Errorf("second down: %v", err)
	}
	if _, err := Default().Show(t.Context(), "demo"); !errors.Is(err, ErrNoLab) {
		t.Errorf("status after down: %v", err)
	}
}

func TestNamesAndAddressesAreFixed(t *testing.T) {
	a := mustUp(t, Spec{Name: "demo", Hosts: twoHosts})
	first := fmt.Sprint(a.Testbed(), a.Bridge())
	mustDown(t, "demo")
	b := mustUp(t, Spec{Name: "demo", Hosts: twoHosts})
	if second := fmt.Sprint(b.Testbed(), b.Bridge()); first != second {
		t.Errorf("made twice:\n%s\n%s", first, second)
	}
	got := strings.TrimSpace(sh(t, "ovs-vsctl --timeout=5 --db=unix:%s/db.sock get bridge %s datapath_id", b.OVSRunDir(), b.Bridge()))
	if got != `"`+b.Datapath().String()+`"` {
		t.Errorf("datapath id %s, want %s", got, b.Datapath())
	}
}
