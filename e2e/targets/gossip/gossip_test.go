package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestDigest(t *testing.T) {
	tb := table{self: "n2", forget: time.Second, entries: map[string]entry{
		"n1": {statusLeft, 5000}, "n2": {statusNormal, 3}, "n3": {statusNormal, 4}}}
	for _, c := range []struct {
		now          int64
		digest, view string
	}{
		{5999, "n1=LEFT:5000 n2=NORMAL:3 n3=NORMAL:4", "n1=LEFT n2=NORMAL n3=NORMAL"},
		{6000, "~n1:5000 n2=NORMAL:3 n3=NORMAL:4", "n2=NORMAL n3=NORMAL"},
	} {
		if got := tb.digest(c.now); got != c.digest {
			t.Errorf("digest at %d: %q, want %q", c.now, got, c.digest)
		}
		if got := tb.view(c.now); got != c.view {
			t.Errorf("view at %d: %q, want %q", c.now, got, c.view)
		}
		back, err := parseDigest(strings.Fields(c.digest))
		if err != nil || len(back) != 3 || back["n1"] != (entry{statusLeft, 5000}) {
			t.Errorf("%q reads as %v, %v", c.digest, back, err)
		}
	}
	for _, bad := range []string{"n1", "n1=NORMAL", "n1=AWAY:3", "=LEFT:3", "~:3", "n1=LEFT:-3", "n1=LEFT:x", "n1:3"} {
		if got, err := parseDigest([]string{bad}); err == nil {
			t.Errorf("%q reads as %v, want an error", bad, got)
		}
	}
}

func TestMerge(t *testing.T) {
	const now = 10_000
	for _, c := range []struct {
		name     string
		bug      bool
		have     map[string]entry
		reported string
		view     string
	}{
		{"newer wins", false, map[string]entry{"n1": {statusNormal, 5}}, "n1=LEFT:9900", "n1=LEFT n2=NORMAL"},
		{"older is ignored", false, map[string]entry{"n1": {statusLeft, 9900}}, "n1=NORMAL:5", "n1=LEFT n2=NORMAL"},
		{"unknown is believed", false, nil, "n1=NORMAL:5", "n1=NORMAL n2=NORMAL"},
		{"oneself is not told by others", false, nil, "n2=LEFT:9999", "n2=NORMAL"},
		{"a tombstone keeps the old away", false, map[string]entry{"n1": {statusLeft, 8000}}, "n1=NORMAL:5", "n2=NORMAL"},
		{"a tombstone is learned", false, map[string]entry{"n1": {statusNormal, 5}}, "~n1:8000", "n2=NORMAL"},
		{"who joins again has a newer version", false, map[string]entry{"n1": {statusLeft, 8000}}, "n1=NORMAL:9000", "n1=NORMAL n2=NORMAL"},
		{"bug: forgotten, so the old is believed", true, map[string]entry{"n1": {statusLeft, 8000}}, "n1=NORMAL:5", "n1=NORMAL n2=NORMAL"},
		{"bug: not yet forgotten", true, map[string]entry{"n1": {statusLeft, 9900}}, "n1=NORMAL:5", "n1=LEFT n2=NORMAL"},
	} {
		tb := table{self: "n2", forget: time.Second, bug: c.bug, entries: map[string]entry{"n2": {statusNormal, 1}}}
		for id, e := range c.have {
			tb.entries[id] = e
		}
		digest, err := parseDigest(strings.Fields(c.reported))
		if err != nil {
			t.Fatal(err)
		}
		tb.merge(digest, now)
		if got := tb.view(now); got != c.view {
			t.Errorf("%s: %q, want %q", c.name, got, c.view)
		}
	}
}

func TestReceiveRefuses(t *testing.T) {
	m := newMember("n1", []string{"n2"}, time.Second, time.Second, false, 1, 1)
	for _, bad := range []string{"", "GOSSIP", "GOSSIP n9 n9=NORMAL:3", "HELLO n2", "GOSSIP n2 x", "GOSSIP n1 n1=LEFT:9"} {
		if out, err := m.receive(bad, 2); err == nil || len(out) > 0 {
			t.Errorf("%q: answered %v, error %v", bad, out, err)
		}
	}
}

func TestLeaveIsRefusedWhenAPeerIsDown(t *testing.T) {
	m := newMember("n1", []string{"n2", "n3"}, time.Second, 100*time.Millisecond, false, 1, 1)
	if out := m.leave(1000); len(out) != 2 || !strings.HasPrefix(out[0].text, "HANDOVER n1 n1=NORMAL:1") {
		t.Fatalf("leave sends %v", out)
	}
	if _, err := m.receive("TAKEN n2 n2=NORMAL:1", 1001); err != nil {
		t.Fatal(err)
	}
	m.tick(2001)
	if !strings.HasPrefix(m.refused, "peer-down n3") || m.leaving || m.view(2001) != "n1=NORMAL n2=NORMAL" {
		t.Fatalf("refused %q, leaving %v, view %s", m.refused, m.leaving, m.view(2001))
	}
	m.leave(3000)
	for _, p := range []string{"n2", "n3"} {
		if _, err := m.receive("TAKEN "+p+" n1=NORMAL:1", 3001); err != nil {
			t.Fatal(err)
		}
	}
	if !m.leaving || m.refused != "" || m.entries["n1"] != (entry{statusLeft, 3001}) {
		t.Fatalf("leaving %v, refused %q, %v", m.leaving, m.refused, m.entries["n1"])
	}
}

// relay carries the datagrams between the nodes of a test, so that it can cut
// one off: the network of a cluster on one loopback address.
type relay struct {
	mu   sync.Mutex
	real map[string]*net.UDPAddr
	drop func(from, to, text string) bool
}

// via opens a socket through which from reaches to.
func (r *relay) via(t *testing.T, from, to string) string {
	c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	go func() {
		buf := make([]byte, 4096)
		for {
			n, _, err := c.ReadFromUDP(buf)
			if err != nil {
				return
			}
			r.mu.Lock()
			dst, lost := r.real[to], r.drop(from, to, string(buf[:n]))
			r.mu.Unlock()
			if dst != nil && !lost {
				_, _ = c.WriteToUDP(buf[:n], dst)
			}
		}
	}()
	return c.LocalAddr().String()
}

// cluster starts three nodes in this process and returns the addresses of
// their administrations.
func cluster(t *testing.T, bug bool, drop func(from, to, text string) bool) map[string]string {
	r := &relay{real: map[string]*net.UDPAddr{}, drop: drop}
	ids := []string{"n1", "n2", "n3"}
	admins := map[string]string{}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	t.Cleanup(func() { cancel(); wg.Wait() })
	for i, id := range ids {
		all := map[string]string{}
		for _, p := range ids {
			all[p] = "127.0.0.1:1"
			if p != id {
				all[p] = r.via(t, id, p)
			}
		}
		n, err := newNode(id, all, "127.0.0.1:0", io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		n.m = newMember(id, slices.DeleteFunc(slices.Clone(ids), func(p string) bool { return p == id }), 300*time.Millisecond, 20*time.Millisecond, bug, uint64(i), now())
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		admins[id] = l.Addr().String()
		r.mu.Lock()
		r.real[id] = n.conn.LocalAddr().(*net.UDPAddr)
		r.mu.Unlock()
		wg.Go(func() {
			if err := n.serve(ctx, l); err != nil {
				t.Errorf("%s: %v", id, err)
			}
		})
	}
	return admins
}

func until(t *testing.T, admins map[string]string, node string, want func(status string) bool) string {
	t.Helper()
	c := &client{admins: admins}
	var got string
	for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		lines, err := c.ask(t.Context(), node, "STATUS")
		if err != nil {
			t.Fatal(err)
		}
		if got = strings.Join(lines, " "); want(got) {
			return got
		}
	}
	t.Fatalf("%s still says %q", node, got)
	return ""
}

// TestFigure2 cuts n3 off when n2 says that n1 has left, and lets it back when
// n2 has forgotten, over real sockets.
func TestFigure2(t *testing.T) {
	for _, bug := range []bool{false, true} {
		t.Run(fmt.Sprintf("bug=%v", bug), func(t *testing.T) {
			cut, healed := false, false // guarded by the relay's lock
			var mu sync.Mutex
			admins := cluster(t, bug, func(from, to, text string) bool {
				mu.Lock()
				defer mu.Unlock()
				switch {
				case !cut && strings.Contains(text, "n1=LEFT"):
					cut = true
				case cut && from == "n2" && !strings.Contains(text, "n1="):
					healed = true
				}
				return cut && !healed && (from == "n3" || to == "n3")
			})
			for id := range admins {
				until(t, admins, id, func(s string) bool { return s == "n1=NORMAL n2=NORMAL n3=NORMAL met 2" })
			}
			c := &client{admins: admins}
			lines, err := c.ask(t.Context(), "n1", "LEAVE")
			if err != nil || !slices.Equal(lines, []string{"OK"}) {
				t.Fatalf("LEAVE: %v, %v", lines, err)
			}
			until(t, admins, "n2", func(string) bool { mu.Lock(); defer mu.Unlock(); return healed })
			want := "n2=NORMAL n3=NORMAL met 2"
			if bug {
				want = "n1=NORMAL " + want
			}
			for _, id := range []string{"n2", "n3"} {
				until(t, admins, id, func(s string) bool { return s == want })
			}
		})
	}
}

// TestWorkload runs the client against a healthy cluster.
func TestWorkload(t *testing.T) {
	admins := cluster(t, true, func(string, string, string) bool { return false })
	for id := range admins {
		until(t, admins, id, func(s string) bool { return strings.HasSuffix(s, "met 2") })
	}
	var peers []string
	for id, a := range admins {
		peers = append(peers, id+"="+a)
	}
	args := []string{"-id", "n1", "-peers", strings.Join(peers, ","), "-for", "3s"}
	var out bytes.Buffer
	pr, pw := io.Pipe() // standard input stays open
	defer pw.Close()
	if err := run(t.Context(), append(args, "-workload"), pr, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), append(args, "-final"), pr, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		var o operation
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		count[o.F+" "+o.Type]++
		switch {
		case o.F == "decommission" && (o.Key != "n1" || o.Type == "fail"):
			t.Errorf("decommission: %+v", o)
		case o.F == "final-status" && o.Type == "ok" && o.Value != "n2=NORMAL n3=NORMAL":
			t.Errorf("final: %+v", o)
		}
	}
	if count["decommission ok"] != 1 || count["status ok"] < 10 || count["final-status ok"] != 2 {
		t.Errorf("history: %v\n%s", count, out.String())
	}
}

func TestFlags(t *testing.T) {
	for _, bad := range [][]string{
		{}, {"-id", "n1"}, {"-id", "n9", "-peers", "n1=127.0.0.1:1"}, {"-id", "n1", "-peers", "n1=127.0.0.1"},
		{"-id", "n1", "-peers", "n1=127.0.0.1:1,n1=127.0.0.1:2"}, {"-id", "n1", "-peers", "n1=127.0.0.1:1", "-interval", "0s"}, {"-speed", "3"},
	} {
		if err := run(t.Context(), bad, strings.NewReader(""), io.Discard, io.Discard); err == nil {
			t.Errorf("%v: no error", bad)
		}
	}
}
