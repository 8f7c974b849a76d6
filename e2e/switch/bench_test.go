package ofswitch

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netsplit/controller"
	"netsplit/e2e/harness"
	"netsplit/e2e/need"
	"netsplit/e2e/traffic"
	"netsplit/internal/labtest"
	"netsplit/model"
)

// bench is one private Open vSwitch with hosts on it.
type bench struct {
	tb      testing.TB
	name    string // prefix of every namespace
	dir     string // run directory
	dpid    model.DatapathID
	hosts   []*host
	testbed model.Testbed
	vswitch *exec.Cmd
	kinds   []string // of probes
}

// host is a namespace with one interface, e0, and a raw socket on it.
type host struct {
	id   model.NodeID
	ns   string
	port uint32
	mac  [6]byte
	ip   netip.Addr
	fd   int

	mu    sync.Mutex
	got   map[uint32]int // probe number: times received
	order []uint32       // of probes received, where it is not nil
}

const bridge = "br0"

func newBench(tb testing.TB, n int) *bench {
	tb.Helper()
	require(tb)
	dir, err := os.MkdirTemp("", "nse")
	if err != nil {
		tb.Fatal(err)
	}
	b := &bench{tb: tb, name: filepath.Base(dir), dir: dir, dpid: 0x4e53_0000_0000_0001, kinds: kinds}
	b.testbed.Name = b.name
	tb.Cleanup(func() { os.RemoveAll(dir) })
	b.do("ip", "netns", "add", b.sw())
	b.do("ip", "-n", b.sw(), "link", "set", "lo", "up")

	b.do("ovsdb-tool", "create", b.path("conf.db"), "/usr/share/openvswitch/vswitch.ovsschema")
	b.daemon("ovsdb-server", b.path("conf.db"), "--remote=punix:"+b.path("db.sock"), "--unixctl="+b.path("db.ctl"), "--log-file="+b.path("db.log"))
	b.until("ovsdb-server answers", func() error {
		c, err := net.Dial("unix", b.path("db.sock"))
		if err == nil {
			c.Close()
		}
		return err
	})
	b.vsctl("--no-wait", "init")
	b.startSwitch()
	b.vsctl("add-br", bridge, "--", "set", "bridge", bridge, "datapath_type=netdev", "protocols=OpenFlow13",
		"fail-mode=secure", "other-config:datapath-id="+b.dpid.String())
	for i := 1; i <= n; i++ {
		b.addHost(i)
	}
	b.addGate()
	return b
}

// The gate port and its far end, both in the switch's namespace.
const (
	gatePort   = 900
	gateSwitch = "gs"
	gateReader = "gr"
)

func (b *bench) addGate() {
	b.tb.Helper()
	b.do("ip", "-n", b.sw(), "link", "add", gateSwitch, "mtu", "1600", "type", "veth", "peer", "name", gateReader, "mtu", "1600")
	for _, ifn := range []string{gateSwitch, gateReader} {
		b.quiet(b.sw(), ifn)
		b.do("ip", "-n", b.sw(), "link", "set", ifn, "up")
	}
	b.vsctl("add-port", bridge, gateSwitch, "--", "set", "interface", gateSwitch, fmt.Sprintf("ofport_request=%d", gatePort))
	b.testbed.Gates = []model.GatePort{{Datapath: b.dpid, Port: model.Port{Number: gatePort}, Interface: gateReader, Netns: b.sw()}}
}

// quiet makes an interface send nothing by itself, and whole checksums.
func (b *bench) quiet(ns, ifn string) {
	b.tb.Helper()
	b.do("ip", "netns", "exec", ns, "sh", "-c", "echo 1 > /proc/sys/net/ipv6/conf/"+ifn+"/disable_ipv6")
	b.do("ip", "netns", "exec", ns, "ethtool", "-K", ifn, "tx", "off", "tso", "off", "gso", "off", "gro", "off")
}

// require fails the test where there is no Open vSwitch.
func require(tb testing.TB) {
	tb.Helper()
	for _, p := range []string{"ovs-vswitchd", "ovsdb-server", "ovs-vsctl", "ovs-ofctl", "ip", "ethtool"} {
		need.Program(tb, p, "openvswitch-switch iproute2 ethtool")
	}
}

func (b *bench) sw() string              { return b.name + "-sw" }
func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

func (b *bench) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "OVS_RUNDIR="+b.dir, "OVS_DBDIR="+b.dir, "OVS_LOGDIR="+b.dir)
	return cmd
}

func (b *bench) do(name string, args ...string) string {
	b.tb.Helper()
	out, err := b.command(name, args...).CombinedOutput()
	if err != nil {
		b.tb.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (b *bench) vsctl(args ...string) string {
	b.tb.Helper()
	return b.do("ovs-vsctl", append([]string{"--timeout=20", "--db=unix:" + b.path("db.sock")}, args...)...)
}

func (b *bench) ofctl(args ...string) string {
	b.tb.Helper()
	return b.do("ovs-ofctl", append([]string{"-O", "OpenFlow13"}, args...)...)
}

// mgmt is the bridge's management socket, for ofctl.
func (b *bench) mgmt() string { return "unix:" + b.path(bridge+".mgmt") }

// daemon starts a process in the switch's namespace and ends it with the test.
func (b *bench) daemon(name string, args ...string) *exec.Cmd {
	b.tb.Helper()
	cmd := b.command("ip", append([]string{"netns", "exec", b.sw(), name}, args...)...)
	if err := cmd.Start(); err != nil {
		b.tb.Fatal(err)
	}
	b.tb.Cleanup(func() { stopProcess(cmd) })
	return cmd
}

func stopProcess(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

func (b *bench) startSwitch() {
	b.tb.Helper()
	b.vswitch = b.daemon("ovs-vswitchd", "unix:"+b.path("db.sock"), "--unixctl="+b.path("vs.ctl"), "--log-file="+b.path("vs.log"))
}

func (b *bench) appctl(args ...string) string {
	b.tb.Helper()
	return b.do("ovs-appctl", append([]string{"-t", b.path("vs.ctl")}, args...)...)
}

// until waits for f to succeed; the first try after 20 s has to.
func (b *bench) until(what string, f func() error) {
	b.tb.Helper()
	harness.Until(b.tb, 20*time.Second, what, f)
}

func (b *bench) addHost(i int) {
	b.tb.Helper()
	h := &host{id: model.NodeID(fmt.Sprintf("h%d", i)), ns: fmt.Sprintf("%s-h%d", b.name, i), port: uint32(i),
		mac: [6]byte{2, 0x4e, 0x53, 0, 0, byte(i)}, ip: netip.AddrFrom4([4]byte{10, 77, 0, byte(i)}), got: map[uint32]int{}}
	ifn := fmt.Sprintf("p%d", i)
	b.do("ip", "netns", "add", h.ns)
	b.do("ip", "-n", b.sw(), "link", "add", ifn, "type", "veth", "peer", "name", "e0", "netns", h.ns)
	b.quiet(b.sw(), ifn)
	b.quiet(h.ns, "e0")
	b.do("ip", "-n", h.ns, "link", "set", "e0", "address", net.HardwareAddr(h.mac[:]).String())
	b.do("ip", "-n", h.ns, "addr", "add", h.ip.String()+"/24", "dev", "e0")
	b.do("ip", "-n", h.ns, "link", "set", "lo", "up")
	b.do("ip", "-n", h.ns, "link", "set", "e0", "up")
	b.do("ip", "-n", b.sw(), "link", "set", ifn, "up")
	b.vsctl("add-port", bridge, ifn, "--", "set", "interface", ifn, fmt.Sprintf("ofport_request=%d", i))
	h.open(b.tb)
	b.hosts = append(b.hosts, h)
	b.testbed.Hosts = append(b.testbed.Hosts, model.TestbedHost{Name: h.id, Datapath: b.dpid, Port: model.Port{Number: h.port},
		MAC: net.HardwareAddr(h.mac[:]).String(), IP: h.ip, Exec: []string{"ip", "netns", "exec", h.ns}})
}

// listen starts a controller inside the switch's namespace.
func (b *bench) listen(cfg controller.Config) *controller.Controller {
	b.tb.Helper()
	var c *controller.Controller
	if cfg.Addr == "" {
		cfg.Addr = "127.0.0.1:0"
	}
	err := labtest.In(b.sw(), func() (err error) { c, err = controller.Listen(cfg); return err })
	if err != nil {
		b.tb.Fatal(err)
	}
	b.tb.Cleanup(func() { c.Close() })
	return c
}

// connect points the bridge at the controller.
func (b *bench) connect(addr string) {
	b.tb.Helper()
	b.vsctl("set-controller", bridge, "tcp:"+addr, "--", "set", "controller", bridge, "connection_mode=out-of-band")
}

func (b *bench) host(id model.NodeID) *host {
	for _, h := range b.hosts {
		if h.id == id {
			return h
		}
	}
	b.tb.Fatalf("no host %s", id)
	return nil
}

// marker precedes the number of a probe in a frame.
const marker = traffic.Marker

// socket opens a raw socket on the host's interface.
func (h *host) socket() error {
	return labtest.In(h.ns, func() error {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(swap(unix.ETH_P_ALL)))
		if err != nil {
			return err
		}
		ifi, err := net.InterfaceByName("e0")
		if err != nil {
			return err
		}
		h.fd = fd
		return errors.Join(unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20),
			unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000}),
			unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: swap(unix.ETH_P_ALL), Ifindex: ifi.Index}))
	})
}

func (h *host) open(tb testing.TB) {
	tb.Helper()
	if err := h.socket(); err != nil {
		tb.Fatalf("raw socket on %s: %v", h.id, err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.read(ctx)
	}()
	tb.Cleanup(func() { stop(); <-done; unix.Close(h.fd) })
}

func swap(v uint16) uint16 { return v<<8 | v>>8 }

func (h *host) read(ctx context.Context) {
	buf := make([]byte, 2048)
	for ctx.Err() == nil {
		n, _, err := unix.Recvfrom(h.fd, buf, 0)
		if err != nil {
			continue // the time limit, to look at ctx
		}
		at := strings.Index(string(buf[:n]), marker)
		if at < 0 || at+len(marker)+4 > n {
			continue
		}
		h.mu.Lock()
		probe := binary.BigEndian.Uint32(buf[at+len(marker):])
		h.got[probe]++
		if h.order != nil {
			h.order = append(h.order, probe)
		}
		h.mu.Unlock()
	}
}

func (h *host) received(probe uint32) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.got[probe]
}

func (h *host) send(tb testing.TB, frame []byte) {
	tb.Helper()
	if _, err := unix.Write(h.fd, frame); err != nil {
		tb.Fatalf("%s sends: %v", h.id, err)
	}
}
