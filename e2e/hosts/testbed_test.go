package hosts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsplit/api/client"
	"netsplit/api/wire"
	"netsplit/e2e/harness"
	"netsplit/e2e/need"
	"netsplit/e2e/traffic"
	"netsplit/flowrules"
	"netsplit/model"
)

func TestMain(m *testing.M) { harness.Main(m) }

// testbed is five hosts on a bridge of the kernel, and a daemon that has them.
type testbed struct {
	traffic.Testbed
	t    *testing.T
	file string // testbed file
	dir  string // of runs
	*harness.Process
	daemon *harness.Daemon
	api    *client.Client
}

// limit is how long anything may take on a machine with other things to do.
const limit = 30 * time.Second

func newTestbed(t *testing.T) *testbed {
	t.Helper()
	need.Program(t, "nft", "nftables")
	harness.LeavesNothing(t)
	b := &testbed{t: t, dir: t.TempDir()}
	b.file = filepath.Join(b.dir, "testbed.yaml")
	b.sh("ip link add nb type bridge mcast_snooping 0; echo 1 > /proc/sys/net/ipv6/conf/nb/disable_ipv6; ip link set nb up")
	t.Cleanup(func() { b.sh("ip link del nb") })
	tb := model.Testbed{Name: "cloud", Backend: model.BackendNFTables}
	y := "name: cloud\nbackend: nftables\nroles:\n  leader: {hosts: [h1, h2, h3, h4, h5], probe: {command: [ip, -o, addr]}, match: '10\\.77\\.0\\.2/'}\nhosts:\n"
	for i := 1; i <= 5; i++ {
		h := traffic.NewStation(model.NodeID(fmt.Sprintf("h%d", i)), fmt.Sprintf("nb-h%d", i), "e0", [6]byte{2, 0x4e, 0x53, 0, 0, byte(i)}, netip.AddrFrom4([4]byte{10, 77, 0, byte(i)}))
		mac := h.MAC()
		b.sh(`ip netns add %[1]s; ip netns exec %[1]s sh -c 'for f in all default; do echo 1 > /proc/sys/net/ipv6/conf/$f/disable_ipv6; done'
ip link add nbp%[2]d type veth peer name e0 netns %[1]s address %[3]s; echo 1 > /proc/sys/net/ipv6/conf/nbp%[2]d/disable_ipv6
ip -n %[1]s addr add %[4]s/24 dev e0; ip -n %[1]s link set lo up; ip -n %[1]s link set e0 up; ip link set nbp%[2]d master nb up; bridge fdb replace %[3]s dev nbp%[2]d master static`,
			h.Netns, i, net.HardwareAddr(mac[:]), h.IP())
		t.Cleanup(func() { b.sh("ip link del nbp%d; ip netns del %s", i, h.Netns) })
		h.Open(t)
		b.Hosts = append(b.Hosts, h)
		tb.Hosts = append(tb.Hosts, model.TestbedHost{Name: h.Name})
		y += fmt.Sprintf("  - {name: %s, mac: %q, ip: %s, exec: [ip, netns, exec, %s]", h.Name, net.HardwareAddr(mac[:]), h.IP(), h.Netns)
		if rack := traffic.Labels[h.Name]["rack"]; rack != "" {
			y += ", labels: {rack: " + rack + "}"
		}
		y += "}\n"
	}
	if err := os.WriteFile(b.file, []byte(y), 0o600); err != nil {
		t.Fatal(err)
	}
	b.Where = flowrules.WhereOn(&tb, func(string) (model.Holders, error) {
		return model.Holders{Have: []model.NodeID{traffic.Leader}, Of: tb.Names()}, nil
	})
	b.Where.Labels = traffic.Labels
	b.Cut = func(n int, p model.Partition) { b.cut(fmt.Sprintf("p%d", n), p) }
	b.Heal = func(n int) { b.heal(fmt.Sprintf("p%d", n)) }
	b.Show = func() (all string) {
		for _, h := range b.Hosts {
			all += string(h.ID()) + ":\n" + b.sh("ip netns exec %s nft list ruleset", h.(*traffic.Station).Netns)
		}
		return all
	}
	b.serve()
	return b
}

// serve starts the daemon, as a user does.
func (b *testbed) serve(args ...string) {
	b.t.Helper()
	b.daemon = harness.Serve(b.t, append([]string{"--testbed", b.file, "--runs-dir", b.dir, "--listen", "127.0.0.1:0"}, args...)...)
	b.Process = b.daemon.Process
	var err error
	if b.api, err = client.New(client.Config{API: "unix:" + b.daemon.Socket}); err != nil {
		b.t.Fatal(err)
	}
}

// cut cuts by REST and waits until that is proved.
func (b *testbed) cut(name string, p model.Partition) {
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
func (b *testbed) heal(name string) wire.PartitionStatus {
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

func (b *testbed) state(name, want string) wire.PartitionStatus {
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

func (b *testbed) sh(format string, args ...any) string {
	b.t.Helper()
	script := fmt.Sprintf(format, args...)
	out, err := exec.Command("sh", "-ec", script).CombinedOutput()
	if err != nil {
		b.t.Fatalf("%s: %v: %s", script, err, out)
	}
	return string(out)
}

// opens waits until packets pass over every link. It returns how long that took, and
// when the last look began that did not see it.
func (b *testbed) opens() (took, held time.Duration) {
	b.t.Helper()
	began := time.Now()
	harness.Until(b.t, limit, "packets pass", func() error {
		look := time.Since(began)
		if !b.Open(b.t) {
			held = look
			return errors.New("not over every link")
		}
		return nil
	})
	return time.Since(began), held
}
