package hosts

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netsplit/api/client"
	"netsplit/api/wire"
	"netsplit/deploy/lab/labtest"
	"netsplit/e2e/harness"
	"netsplit/e2e/need"
	"netsplit/e2e/traffic"
	"netsplit/model"
)

func TestMain(m *testing.M) { harness.Main(m) }

// bed is five hosts on a bridge of the kernel, and a daemon that has them.
type bed struct {
	traffic.Bed
	t    *testing.T
	file string // testbed file
	dir  string // of runs
	*harness.Process
	api *client.Client
}

// limit is how long anything may take on a machine with other things to do.
const limit = 30 * time.Second

func newBed(t *testing.T) *bed {
	t.Helper()
	need.Program(t, "nft", "nftables")
	harness.LeavesNothing(t)
	b := &bed{t: t, dir: t.TempDir()}
	b.file = filepath.Join(b.dir, "testbed.yaml")
	b.sh("ip link add nb type bridge mcast_snooping 0; echo 1 > /proc/sys/net/ipv6/conf/nb/disable_ipv6; ip link set nb up")
	t.Cleanup(func() { b.sh("ip link del nb") })
	tb := model.Testbed{Name: "cloud", Backend: model.BackendNFTables}
	y := "name: cloud\nbackend: nftables\nroles:\n  leader: {hosts: [h1, h2, h3, h4, h5], probe: {command: [ip, -o, addr]}, match: '10\\.77\\.0\\.2/'}\nhosts:\n"
	for i := 1; i <= 5; i++ {
		h := &host{name: model.NodeID(fmt.Sprintf("h%d", i)), ns: fmt.Sprintf("nb-h%d", i), mac: [6]byte{2, 0x4e, 0x53, 0, 0, byte(i)},
			ip: netip.AddrFrom4([4]byte{10, 77, 0, byte(i)}), got: map[uint32]int{}}
		b.sh(`ip netns add %[1]s; ip netns exec %[1]s sh -c 'for f in all default; do echo 1 > /proc/sys/net/ipv6/conf/$f/disable_ipv6; done'
ip link add nbp%[2]d type veth peer name e0 netns %[1]s address %[3]s; echo 1 > /proc/sys/net/ipv6/conf/nbp%[2]d/disable_ipv6
ip -n %[1]s addr add %[4]s/24 dev e0; ip -n %[1]s link set lo up; ip -n %[1]s link set e0 up; ip link set nbp%[2]d master nb up; bridge fdb replace %[3]s dev nbp%[2]d master static`,
			h.ns, i, net.HardwareAddr(h.mac[:]), h.ip)
		t.Cleanup(func() { b.sh("ip link del nbp%d; ip netns del %s", i, h.ns) })
		h.open(t)
		b.Hosts = append(b.Hosts, h)
		tb.Hosts = append(tb.Hosts, model.TestbedHost{Name: h.name})
		y += fmt.Sprintf("  - {name: %s, mac: %q, ip: %s, exec: [ip, netns, exec, %s]", h.name, net.HardwareAddr(h.mac[:]), h.ip, h.ns)
		if rack := traffic.Labels[h.name]["rack"]; rack != "" {
			y += ", labels: {rack: " + rack + "}"
		}
		y += "}\n"
	}
	if err := os.WriteFile(b.file, []byte(y), 0o600); err != nil {
		t.Fatal(err)
	}
	b.Where = tb.Where(func(string) (model.Holders, error) {
		return model.Holders{Have: []model.NodeID{traffic.Leader}, Of: tb.Names()}, nil
	})
	b.Where.Labels = traffic.Labels
	b.Cut = func(n int, p model.Partition) { b.cut(fmt.Sprintf("p%d", n), p) }
	b.Heal = func(n int) { b.heal(fmt.Sprintf("p%d", n)) }
	b.Show = func() (all string) {
		for _, h := range b.Hosts {
			all += string(h.ID()) + ":\n" + b.sh("ip netns exec %s nft list ruleset", h.(*host).ns)
		}
		return all
	}
	b.serve()
	return b
}

var listening = regexp.MustCompile(`API on (http://\S+), hosts cut by themselves,`)

// serve starts the daemon, as a user does.
func (b *bed) serve(args ...string) {
	b.t.Helper()
	b.Process = harness.Start(b.t, append([]string{"serve", "--testbed", b.file, "--runs-dir", b.dir, "--listen", "127.0.0.1:0"}, args...)...)
	harness.Until(b.t, limit, "the daemon listens", func() error {
		m := listening.FindStringSubmatch(b.Stderr())
		if m == nil {
			return fmt.Errorf("it said %q", b.Stderr())
		}
		var err error
		b.api, err = client.New(m[1], "")
		return err
	})
}

// cut cuts by REST and waits until that is proved.
func (b *bed) cut(name string, p model.Partition) {
	b.t.Helper()
	spec := wire.PartitionSpec{Name: name}
	text, err := json.Marshal(p)
	if err == nil {
		err = json.Unmarshal(text, &spec.Partition)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	if spec.Effect == "" {
		spec.Effect = "drop"
	}
	began := time.Now()
	st, err := b.api.CreatePartition(context.Background(), spec, limit)
	b.t.Logf("cut %s: answered after %v", name, time.Since(began).Round(time.Millisecond))
	if err != nil {
		b.t.Fatalf("cut %s: %v", name, err)
	}
	if in := b.state(name, "in_force"); in.Installed == nil || in.InForce.Before(*in.Installed) || in.RenewedUntil == nil || in.RenewedUntil.Before(*in.Installed) {
		b.t.Errorf("cut %s: requested %v, installed %v, in force %v, renewed until %v", name, in.Created, in.Installed, in.InForce, in.RenewedUntil)
	}
	if want := len(st.Links); want == 0 {
		b.t.Fatalf("cut %s: %+v", name, st)
	}
}

// heal heals by REST, waits until that is proved, and looks at what was counted.
func (b *bed) heal(name string) wire.PartitionStatus {
	b.t.Helper()
	if _, err := b.api.DeletePartition(context.Background(), name, limit); err != nil {
		b.t.Fatalf("heal %s: %v", name, err)
	}
	st := b.state(name, "healed")
	// Of what netsplit sent itself some may have been dropped for nobody to see:
	// a host that has to ask for an address first waits.
	if st.InForce == nil || st.Healed == nil || st.Dropped == 0 || st.Wanted != st.Dropped || st.Leaked != 0 || !st.LeakKnown || st.Reason != "" && !strings.HasPrefix(st.Reason, "some of its links are still cut, by p") {
		b.t.Errorf("%s: %+v", name, st)
	}
	return st
}

func (b *bed) state(name, want string) wire.PartitionStatus {
	b.t.Helper()
	var st wire.PartitionStatus
	began := time.Now()
	defer func() { b.t.Logf("waited %v until %s is %s", time.Since(began).Round(time.Millisecond), name, want) }()
	harness.Until(b.t, limit, "partition "+name+" is "+want, func() (err error) {
		if st, err = b.api.Partition(context.Background(), name); err == nil && st.State != want {
			err = fmt.Errorf("it is %s: %s", st.State, st.Reason)
		}
		return err
	})
	return st
}

func (b *bed) sh(format string, args ...any) string {
	b.t.Helper()
	script := fmt.Sprintf(format, args...)
	out, err := exec.Command("sh", "-ec", script).CombinedOutput()
	if err != nil {
		b.t.Fatalf("%s: %v: %s", script, err, out)
	}
	return string(out)
}

// opens waits until packets pass over every link, and returns how long that took.
func (b *bed) opens() time.Duration {
	b.t.Helper()
	began := time.Now()
	harness.Until(b.t, limit, "packets pass", func() error {
		if !b.Open(b.t) {
			return errors.New("not over every link")
		}
		return nil
	})
	return time.Since(began)
}

// host is a network namespace with one interface, e0.
type host struct {
	name model.NodeID
	ns   string
	mac  [6]byte
	ip   netip.Addr
	out  int // packet socket that sends

	mu  sync.Mutex
	got map[uint32]int // probe number: times received
}

func (h *host) ID() model.NodeID { return h.name }
func (h *host) MAC() [6]byte     { return h.mac }
func (h *host) IP() netip.Addr   { return h.ip }
func (h *host) Number() byte     { return h.mac[5] }

// types are those of the oracle's frames, with the outermost VLAN tag off. What the host's
// kernel goes on with is what counts: a socket of all types would see packets that
// are dropped at ingress.
var types = []uint16{0x0800, 0x86dd, 0x0806, 0x1234, 0x8100}

// open makes the sockets and their readers.
func (h *host) open(t *testing.T) {
	t.Helper()
	var fds []int
	err := labtest.In(h.ns, func() error {
		ifi, err := net.InterfaceByName("e0")
		if err != nil {
			return err
		}
		for _, typ := range append([]uint16{0}, types...) {
			fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			fds = append(fds, fd)
			if err := errors.Join(unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000}),
				unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20),
				unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: typ<<8 | typ>>8, Ifindex: ifi.Index})); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("packet sockets on %s: %v", h.name, err)
	}
	h.out = fds[0]
	ctx, stop := context.WithCancel(context.Background())
	var readers sync.WaitGroup
	for _, fd := range fds[1:] {
		readers.Go(func() { h.read(ctx, fd) })
	}
	t.Cleanup(func() {
		stop()
		readers.Wait()
		for _, fd := range fds {
			unix.Close(fd)
		}
	})
}

func (h *host) read(ctx context.Context, fd int) {
	buf := make([]byte, 2048)
	for ctx.Err() == nil {
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if err != nil {
			continue // the time limit, to look at ctx
		}
		if at := strings.Index(string(buf[:n]), traffic.Marker); at >= 0 && at+len(traffic.Marker)+4 <= n {
			h.mu.Lock()
			h.got[binary.BigEndian.Uint32(buf[at+len(traffic.Marker):])]++
			h.mu.Unlock()
		}
	}
}

// Send sends a frame; that it is cut the sender must not be told.
func (h *host) Send(tb testing.TB, frame []byte) {
	tb.Helper()
	if _, err := unix.Write(h.out, frame); err != nil {
		tb.Fatalf("%s sends: %v", h.name, err)
	}
}

func (h *host) Received(probe uint32) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.got[probe]
}
