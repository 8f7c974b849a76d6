package testbed

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"netsplit/api/wire"
	"netsplit/e2e/harness"
	"netsplit/internal/labtest"
)

// Ports of the datagrams that hosts send one another.
const (
	postPort  = 7900
	otherPort = 7901
)

// post is what each host got in datagrams.
type post struct {
	r   *rack
	mu  sync.Mutex
	got map[string]map[string]bool // by host and text
	num int
}

// newPost gives each host an IPv6 address, tells it all others', so that neither
// ARP nor neighbour discovery decides what passes, and has it listen.
func newPost(r *rack) *post {
	r.t.Helper()
	p := &post{r: r, got: map[string]map[string]bool{}}
	for _, h := range r.hosts {
		p.got[h.name] = map[string]bool{}
		r.in(h, "ip", "addr", "add", h.ip6()+"/64", "dev", "eth0", "nodad")
		for _, o := range r.hosts {
			if o == h {
				continue
			}
			for _, ip := range []string{o.ip, o.ip6()} {
				r.in(h, "ip", "neigh", "replace", ip, "lladdr", o.mac, "dev", "eth0", "nud", "permanent")
			}
		}
		for _, port := range []int{postPort, otherPort} {
			var c *net.UDPConn
			if err := labtest.In(h.netns(), func() (err error) { c, err = net.ListenUDP("udp", &net.UDPAddr{Port: port}); return err }); err != nil {
				r.t.Fatal(err)
			}
			done := make(chan struct{})
			r.t.Cleanup(func() { c.Close(); <-done })
			go func() {
				defer close(done)
				buf := make([]byte, 256)
				for {
					n, err := c.Read(buf)
					if err != nil {
						return
					}
					p.mu.Lock()
					p.got[h.name][string(buf[:n])] = true
					p.mu.Unlock()
				}
			}()
		}
	}
	return p
}

// way is a kind of datagram: to whom it goes.
type way struct {
	name string
	addr func(to *host) (ip string, port int)
	all  bool // one goes to every host
}

var (
	ipv4      = way{"IPv4", func(to *host) (string, int) { return to.ip, postPort }, false}
	ipv6      = way{"IPv6", func(to *host) (string, int) { return to.ip6(), postPort }, false}
	otherIPv4 = way{"IPv4, another port", func(to *host) (string, int) { return to.ip, otherPort }, false}
	otherIPv6 = way{"IPv6, another port", func(to *host) (string, int) { return to.ip6(), otherPort }, false}
	broadcast = way{"broadcast", func(*host) (string, int) { return "10.79.0.255", postPort }, true}
	multicast = way{"multicast", func(*host) (string, int) { return "ff02::1", postPort }, true}
	ways      = []way{ipv4, ipv6, otherIPv4, otherIPv6, broadcast, multicast}
)

// expect sends datagrams of all ways between all hosts, in both directions, until
// those came that pass; none of the others may come.
func (p *post) expect(what string, passes func(from, to string, w way) bool) {
	p.r.t.Helper()
	type letter struct {
		from, to *host
		w        way
		text     string // how those begin that were sent this way
	}
	var letters []letter
	for _, w := range ways {
		for _, from := range p.r.hosts {
			p.num++
			for _, to := range p.r.hosts {
				if from == to {
					continue
				}
				if !w.all {
					p.num++
				}
				letters = append(letters, letter{from, to, w, fmt.Sprintf("%d ", p.num)})
			}
		}
	}
	came := func(l letter) bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		for text := range p.got[l.to.name] {
			if strings.HasPrefix(text, l.text) {
				return true
			}
		}
		return false
	}
	harness.Until(p.r.t, time.Minute, what+": what passes arrives", func() error {
		sent := map[string]bool{}
		for _, l := range letters {
			if sent[l.text] {
				continue // to all, once
			}
			sent[l.text] = true
			err := labtest.In(l.from.netns(), func() error {
				ip, port := l.w.addr(l.to)
				addr := &net.UDPAddr{IP: net.ParseIP(ip), Port: port}
				if addr.IP.IsMulticast() {
					nic, err := net.InterfaceByName("eth0")
					if err != nil {
						return err
					}
					addr.Zone = strconv.Itoa(nic.Index)
				}
				c, err := net.DialUDP("udp", nil, addr)
				if err != nil {
					return err
				}
				defer c.Close()
				_, err = fmt.Fprintf(c, "%s%s", l.text, l.w.name)
				return err
			})
			if err != nil {
				return fmt.Errorf("%s sends to %s by %s: %w", l.from.name, l.to.name, l.w.name, err)
			}
		}
		time.Sleep(100 * time.Millisecond)
		for _, l := range letters {
			if passes(l.from.name, l.to.name, l.w) && !came(l) {
				return fmt.Errorf("%s to %s by %s", l.from.name, l.to.name, l.w.name)
			}
		}
		return nil
	})
	for _, l := range letters {
		if came(l) && !passes(l.from.name, l.to.name, l.w) {
			p.r.t.Errorf("%s: %s reached %s by %s", what, l.from.name, l.to.name, l.w.name)
		}
	}
}

// TestShapesAcrossALink: hosts of two bridges are cut from one another in one
// direction only, in both, and in some of their traffic: what is cut is neither
// reached by IPv4 nor by IPv6, by its own address or by one for all, and
// everything else is.
func TestShapesAcrossALink(t *testing.T) {
	harness.LeavesNothing(t)
	r := twoBridges(t, []string{"a", "b"}, []string{"c", "d"})
	d := serve(t, "--testbed", r.file, "--runs-dir", t.TempDir(), "--openflow", "127.0.0.1:6653")
	r.connect(d.OpenFlow)
	d.Healthy()
	r.passing(time.Minute)
	p := newPost(r)
	everything := func(string, string, way) bool { return true }
	p.expect("before", everything)
	for _, c := range []struct {
		name   string
		cut    wire.Partition
		passes func(from, to string, w way) bool
	}{
		{"simplex", wire.Partition{Shape: "simplex", Groups: [][]string{{"a"}, {"c"}}},
			func(from, to string, _ way) bool { return from+to != "ca" }},
		{"partial", wire.Partition{Shape: "partial", Groups: [][]string{{"a"}, {"c"}}},
			func(from, to string, _ way) bool { return from+to != "ca" && from+to != "ac" }},
		{"complete", wire.Partition{Shape: "complete", Groups: [][]string{{"a", "b"}, {"c", "d"}}},
			func(from, to string, _ way) bool { return strings.Contains("ab", from) == strings.Contains("ab", to) }},
		{"only", wire.Partition{Shape: "partial", Groups: [][]string{{"a"}, {"c", "d"}}, Only: []wire.Traffic{{Proto: "udp", Port: postPort}}},
			func(from, to string, w way) bool {
				across := from == "a" && to != "b" || to == "a" && from != "b"
				return !across || w.name == otherIPv4.name || w.name == otherIPv6.name
			}},
	} {
		d.Call("POST", "/v1/partitions", wire.PartitionSpec{Name: c.name, Partition: c.cut}, nil)
		d.State(c.name, "in_force")
		p.expect(c.name, c.passes)
		st := d.State(c.name, "in_force")
		if st.Leaked != 0 || !st.LeakKnown || st.Wanted == 0 || st.Dropped != st.Wanted {
			t.Errorf("%s: %+v", c.name, st)
		}
		d.Heal(c.name)
		p.expect(c.name+" healed", everything)
	}
}

// TestARunCutsAcrossALink: a campaign whose hosts are on two bridges cuts at the
// gate, which is each sender's switch, and proves it; by gate ports, of which each
// bridge has one, as by packet-in. x1 is a host that the target does not use: what
// isolates n3 isolates it from the others of the target.
func TestARunCutsAcrossALink(t *testing.T) {
	harness.LeavesNothing(t)
	r := twoBridges(t, []string{"n1", "n2", "c1"}, []string{"n3", "x1"})
	gates := "gates:\n"
	for i, br := range []string{"rk1", "rk2"} {
		link := "rkg" + br[2:]
		r.cable(link, 60+i, br)
		gates += fmt.Sprintf("  - {datapath: %q, port: %d, interface: %sr}\n", dpid(br), 60+i, link)
	}
	r.write(theLink() + gates)
	file, err := filepath.Abs("../targets/gossip/target.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	d := serve(t, "--testbed", r.file, "--runs-dir", dir, "--openflow", "127.0.0.1:6653")
	r.connect(d.OpenFlow)
	d.Healthy()
	r.passing(time.Minute)
	var c wire.Campaign
	d.Call("POST", "/v1/campaigns", wire.CampaignSpec{Target: d.Upload(file), Strategy: "random", Seed: 4, Clean: 1, Runs: 4}, &c)
	d.ended(c.ID)
	runs := harness.Records(t, dir, c.ID)
	if harness.CheckProofs(t, runs) == 0 {
		t.Errorf("no run cut: %s", harness.Verdicts(runs))
	}
	across := 0
	for _, run := range runs {
		if run.Proof == nil || run.Verdict.Value == "unknown" {
			continue
		}
		if run.Gate != "port" {
			t.Errorf("run %s held packets by %q", run.Run, run.Gate)
		}
		for _, l := range run.Proof.PerLink {
			if (l.Link.Src == "n3") != (l.Link.Dst == "n3") {
				across += l.Dropped
			}
		}
		if _, err := os.Stat(filepath.Join(run.Dir, "report.html")); err != nil {
			t.Error(err)
		}
	}
	if across == 0 {
		t.Errorf("no run dropped a packet that wanted to cross the link: %s", harness.Verdicts(runs))
	}
	// A shape that takes all hosts takes those of the target.
	d.Call("POST", "/v1/campaigns", wire.CampaignSpec{Target: d.Upload(file), Gate: "packet-in", Runs: 1, Scenario: &wire.ScenarioSpec{
		Cut: &wire.CutSpec{Partition: &wire.Partition{Shape: "isolate", Groups: [][]string{{"n3"}}}, After: wire.Duration(500 * time.Millisecond), AtMost: wire.Span(2 * time.Second)}}}, &c)
	d.ended(c.ID)
	runs = harness.Records(t, dir, c.ID)
	if runs[0].Gate != "packet-in" {
		t.Errorf("packets were held by %q", runs[0].Gate)
	}
	if p := runs[0].Proof; p == nil || len(p.Links) != 6 || p.InForceAt == 0 || p.Leaked != 0 || !p.LeakKnown || runs[0].Verdict.Value == "unknown" {
		t.Errorf("isolated among the target's hosts: %+v, proof %+v", runs[0].Verdict, p)
	}
	r.passing(time.Minute)
}
