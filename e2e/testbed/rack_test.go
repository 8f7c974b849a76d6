package testbed

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"netsplit/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// rack is somebody's network: an Open vSwitch of its own with bridges, hosts
// that are network namespaces, and a testbed file.
type rack struct {
	*harness.OVS
	t     *testing.T
	hosts []*host
	file  string
	named bool // the file gives ports by name
}

type host struct {
	name, bridge, link, mac, ip string
	number                      int // over all bridges, from 1
	port                        int
	exec                        string // as the testbed file has it
}

const netnsPrefix = "rack-"

func (h *host) netns() string { return netnsPrefix + h.name }

// dpid of the bridge rk1, rk2, …
func dpid(bridge string) string { return "00000000000000b" + strings.TrimPrefix(bridge, "rk") }

// newRack makes a bridge for every list of hosts: rk1, rk2, …; the hosts of each
// are on ports 11, 12, ….
func newRack(t *testing.T, bridges ...[]string) *rack {
	t.Helper()
	var names []string
	for i := range bridges {
		names = append(names, fmt.Sprintf("rk%d", i+1))
	}
	r := &rack{OVS: harness.StartOVS(t, names...), t: t}
	r.file = r.Path("testbed.yaml")
	for i, hosts := range bridges {
		br := fmt.Sprintf("rk%d", i+1)
		r.VSCtl("add-br", br, "--", "set", "bridge", br, "datapath_type=netdev", "protocols=OpenFlow13", "fail-mode=secure", "other-config:datapath-id="+dpid(br))
		for j, name := range hosts {
			n := len(r.hosts) + 1
			h := &host{name: name, bridge: br, link: netnsPrefix + name, number: n, port: 11 + j, ip: fmt.Sprintf("10.79.0.%d", n), mac: fmt.Sprintf("02:79:00:00:00:%02x", n)}
			h.exec = "[nsenter, --net=/run/netns/" + h.netns() + "]"
			r.hosts = append(r.hosts, h)
			harness.Output(t, "ip", "netns", "add", h.netns())
			t.Cleanup(func() { harness.Output(t, "ip", "netns", "del", h.netns()) })
			r.veth(h.link, h.port, br, "peer", "name", "eth0", "netns", h.netns(), "address", h.mac)
			r.in(h, "ip", "link", "set", "lo", "up")
			r.in(h, "ip", "addr", "add", h.ip+"/24", "dev", "eth0")
			r.in(h, "ip", "link", "set", "eth0", "up")
			r.in(h, "ethtool", "-K", "eth0", "tx", "off")
		}
	}
	r.write("")
	return r
}

// twoBridges is a rack of two bridges with a link between, a veth: port 50 of rk1
// is port 51 of rk2.
func twoBridges(t *testing.T, one, two []string) *rack {
	t.Helper()
	r := newRack(t, one, two)
	r.veth("rkt1", 50, "rk1", "peer", "name", "rkt2")
	harness.Output(t, "ethtool", "-K", "rkt2", "tx", "off")
	harness.Output(t, "ip", "link", "set", "rkt2", "up")
	r.VSCtl("add-port", "rk2", "rkt2", "--", "set", "interface", "rkt2", "ofport_request=51")
	r.write(theLink())
	return r
}

// theLink is that of two bridges, in the words of a testbed file.
func theLink() string {
	return fmt.Sprintf("links:\n  - {a: {datapath: %q, port: 50}, b: {datapath: %q, port: 51}}\n", dpid("rk1"), dpid("rk2"))
}

// veth makes a port of a bridge; peer says where its far end is.
func (r *rack) veth(link string, port int, bridge string, peer ...string) {
	r.t.Helper()
	harness.Output(r.t, "ip", append([]string{"link", "add", link, "type", "veth"}, peer...)...)
	r.t.Cleanup(func() { _ = exec.Command("ip", "link", "del", link).Run() })
	harness.Output(r.t, "ethtool", "-K", link, "tx", "off")
	harness.Output(r.t, "ip", "link", "set", link, "up")
	r.VSCtl("add-port", bridge, link, "--", "set", "interface", link, fmt.Sprintf("ofport_request=%d", port))
}

// cable makes a port of a bridge whose far end is this machine's: link with an r
// behind its name. It takes full frames with a tag more.
func (r *rack) cable(link string, port int, bridge string) {
	r.t.Helper()
	r.veth(link, port, bridge, "peer", "name", link+"r")
	for _, end := range []string{link, link + "r"} {
		harness.Output(r.t, "ip", "link", "set", end, "mtu", "1600", "up")
		harness.Output(r.t, "ethtool", "-K", end, "tx", "off", "gso", "off", "gro", "off")
	}
}

// write writes the testbed file; more is appended to it.
func (r *rack) write(more string) {
	r.t.Helper()
	var y strings.Builder
	fmt.Fprintf(&y, "name: rack\nhosts:\n")
	for _, h := range r.hosts {
		port := fmt.Sprint(h.port)
		if r.named {
			port = h.link
		}
		fmt.Fprintf(&y, "  - {name: %s, datapath: %q, port: %s, mac: %q, ip: %s, exec: %s}\n", h.name, dpid(h.bridge), port, h.mac, h.ip, h.exec)
	}
	if err := os.WriteFile(r.file, []byte(y.String()+more), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// in runs a command on a host.
func (r *rack) in(h *host, argv ...string) string {
	r.t.Helper()
	return harness.Output(r.t, "ip", append([]string{"netns", "exec", h.netns()}, argv...)...)
}

// connect points every bridge at a controller. Open vSwitch empties the tables
// when a bridge gets its first one, so rules of others come after that.
func (r *rack) connect(addr string) {
	r.t.Helper()
	for i := range r.bridges() {
		br := fmt.Sprintf("rk%d", i+1)
		r.VSCtl("set-controller", br, "tcp:"+addr, "--", "set", "controller", br, "connection_mode=out-of-band", "max_backoff=1000")
	}
}

func (r *rack) bridges() int {
	n := 0
	for _, h := range r.hosts {
		i, _ := strconv.Atoi(strings.TrimPrefix(h.bridge, "rk"))
		n = max(n, i)
	}
	return n
}

var counters = regexp.MustCompile(`(cookie=[^,]+), duration=[^,]+, (table=\d+), n_packets=\d+, n_bytes=\d+, `)

// foreign lists the rules that are not netsplit's, without what changes by
// itself.
func (r *rack) foreign(bridge string) string {
	r.t.Helper()
	var out []string
	for line := range strings.Lines(r.OFCtl(bridge, "dump-flows")) {
		if strings.Contains(line, "cookie=") && !strings.Contains(line, "cookie=0x4e") {
			out = append(out, counters.ReplaceAllString(strings.TrimSpace(line), "$1, $2, "))
		}
	}
	return strings.Join(out, "\n")
}

// ours counts netsplit's rules.
func (r *rack) ours(bridge string) int {
	r.t.Helper()
	return strings.Count(r.OFCtl(bridge, "dump-flows"), "cookie=0x4e")
}

// ping says whether a packet goes from one host to another and back.
func (r *rack) ping(from, to *host) bool {
	return exec.Command("ip", "netns", "exec", from.netns(), "ping", "-n", "-q", "-c", "2", "-i", "0.2", "-W", "1", to.ip).Run() == nil
}

func (r *rack) expect(what string, pass func(a, b string) bool) {
	r.t.Helper()
	for i, a := range r.hosts {
		for _, b := range r.hosts[i+1:] {
			if got := r.ping(a, b); got != pass(a.name, b.name) {
				r.t.Errorf("%s: ping %s > %s: %v", what, a.name, b.name, got)
			}
		}
	}
}

// passing waits until pings pass between all hosts.
func (r *rack) passing(limit time.Duration) {
	r.t.Helper()
	harness.Until(r.t, limit, "pings pass", func() error {
		for i, a := range r.hosts {
			for _, b := range r.hosts[i+1:] {
				if !r.ping(a, b) {
					return fmt.Errorf("%s to %s", a.name, b.name)
				}
			}
		}
		return nil
	})
}
