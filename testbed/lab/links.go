package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

const netnsDir = "/run/netns"

func netnsPath(name string) string { return filepath.Join(netnsDir, name) }

// offloads are switched off on both ends of every veth. With any of them on,
// frames leave with a partial checksum or larger than the MTU and rely on a
// mark that a userspace datapath loses: UDP and TCP then never arrive, while
// ping works.
var offloads = []struct{ flag, feature string }{
	{"tx", "tx-checksumming"},
	{"tso", "tcp-segmentation-offload"},
	{"gso", "generic-segmentation-offload"},
	{"gro", "generic-receive-offload"},
}

// addHost makes a host: its namespace, its link, its address.
func (m *Manager) addHost(ctx context.Context, s *state, h hostState) error {
	if _, err := run(ctx, "ip", "netns", "add", h.Netns); err != nil {
		return fmt.Errorf("cannot make the namespace of host %s: %w", h.Name, err)
	}
	ns, err := netns.GetFromPath(netnsPath(h.Netns))
	if err != nil {
		return fmt.Errorf("cannot open the namespace of host %s: %w", h.Name, err)
	}
	defer ns.Close()
	in, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("cannot enter the namespace of host %s: %w", h.Name, err)
	}
	defer in.Close()
	lo, err := in.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("host %s: loopback: %w", h.Name, err)
	}
	if err := in.LinkSetAlias(lo, m.markOf(s).String()); err != nil {
		return fmt.Errorf("host %s: cannot mark its namespace: %w", h.Name, err)
	}
	if err := in.LinkSetUp(lo); err != nil {
		return fmt.Errorf("host %s: loopback up: %w", h.Name, err)
	}

	mac, err := net.ParseMAC(h.MAC)
	if err != nil {
		return fmt.Errorf("host %s: %w", h.Name, err)
	}
	if err := m.addVeth(s, h.Link, &netlink.Veth{PeerName: hostLink, PeerHardwareAddr: mac, PeerNamespace: netlink.NsFd(ns)}); err != nil {
		return fmt.Errorf("host %s: %w", h.Name, err)
	}
	if err := quietLink(ctx, "", h.Link); err != nil {
		return fmt.Errorf("host %s: %w", h.Name, err)
	}
	// The host's end is kept free of IPv6 too: hosts have no IPv6 address, and
	// unasked-for neighbour discovery would differ from run to run.
	if err := quietLink(ctx, h.Netns, hostLink); err != nil {
		return fmt.Errorf("host %s: %w", h.Name, err)
	}
	end, err := in.LinkByName(hostLink)
	if err != nil {
		return fmt.Errorf("host %s: %w", h.Name, err)
	}
	addr, err := netlink.ParseAddr(h.IP + "/24")
	if err != nil {
		return fmt.Errorf("host %s: %w", h.Name, err)
	}
	if err := in.AddrAdd(end, addr); err != nil {
		return fmt.Errorf("host %s: address %s: %w", h.Name, h.IP, err)
	}
	if err := in.LinkSetUp(end); err != nil {
		return fmt.Errorf("host %s: link up: %w", h.Name, err)
	}
	// What goes to many names no interface, as a rule: without routes it finds none, and
	// there is no default one.
	for _, many := range []string{"224.0.0.0/4", "255.255.255.255/32"} {
		to, err := netlink.ParseIPNet(many)
		if err == nil {
			err = in.RouteAdd(&netlink.Route{LinkIndex: end.Attrs().Index, Dst: to, Scope: netlink.SCOPE_LINK})
		}
		if err != nil {
			return fmt.Errorf("host %s: route to %s: %w", h.Name, many, err)
		}
	}
	return linkUp(h.Link)
}

const (
	// hostMTU is the MTU of hosts' links, the default of a veth.
	hostMTU = 1500
	// gateMTU has room for a full frame of a host with tags of its own and the
	// gate's on top.
	gateMTU = 1600
)

// addTap makes the veth of a mirror or gate port; both ends stay in our
// namespace.
func (m *Manager) addTap(ctx context.Context, s *state, atSwitch, reader string, mtu int) error {
	if err := m.addVeth(s, atSwitch, &netlink.Veth{PeerName: reader}); err != nil {
		return err
	}
	for _, name := range []string{atSwitch, reader} {
		if err := quietLink(ctx, "", name); err != nil {
			return err
		}
		l, err := netlink.LinkByName(name)
		if err == nil {
			err = netlink.LinkSetMTU(l, mtu)
		}
		if err != nil {
			return fmt.Errorf("link %s: MTU %d: %w", name, mtu, err)
		}
		if err := linkUp(name); err != nil {
			return err
		}
	}
	return nil
}

func (m *Manager) addVeth(s *state, name string, v *netlink.Veth) error {
	v.LinkAttrs = netlink.NewLinkAttrs()
	v.Name = name
	if err := netlink.LinkAdd(v); err != nil {
		return fmt.Errorf("cannot make veth %s: %w", name, err)
	}
	l, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("veth %s: %w", name, err)
	}
	if err := netlink.LinkSetAlias(l, m.markOf(s).String()); err != nil {
		return fmt.Errorf("veth %s: cannot mark it: %w", name, err)
	}
	return nil
}

func linkUp(name string) error {
	l, err := netlink.LinkByName(name)
	if err == nil {
		err = netlink.LinkSetUp(l)
	}
	if err != nil {
		return fmt.Errorf("link %s up: %w", name, err)
	}
	return nil
}

// quietLink switches IPv6 and offloads off on an interface of the named
// namespace ("" for ours), and checks that it took effect.
func quietLink(ctx context.Context, ns, name string) error {
	var set []string
	for _, o := range offloads {
		set = append(set, o.flag, "off")
	}
	script := `f=/proc/sys/net/ipv6/conf/$1/disable_ipv6; if [ -e "$f" ]; then echo 1 >"$f" || exit 1; fi
i=$1; shift; ethtool -K "$i" "$@" >/dev/null || exit 1; ethtool -k "$i"`
	argv := append([]string{"sh", "-c", script, "sh", name}, set...)
	if ns != "" {
		argv = append([]string{"nsenter", "--net=" + netnsPath(ns)}, argv...)
	}
	out, err := run(ctx, argv[0], argv[1:]...)
	if err != nil {
		return fmt.Errorf("cannot switch offloads off on %s: %w", name, err)
	}
	features := map[string]string{}
	for line := range strings.Lines(out) {
		if k, v, ok := strings.Cut(line, ": "); ok {
			features[strings.TrimSpace(k)] = strings.Fields(v + " ?")[0]
		}
	}
	for _, o := range offloads {
		if got := features[o.feature]; got != "off" {
			return fmt.Errorf("%s stays %q on %s although it was switched off; packets would arrive with wrong checksums", o.feature, got, name)
		}
	}
	return nil
}

// reservePorts keeps the ports of a host's servers from being source ports.
func reservePorts(ctx context.Context, h hostState, ports []uint16) error {
	if len(ports) == 0 {
		return nil
	}
	var list []string
	for _, p := range ports {
		list = append(list, strconv.Itoa(int(p)))
	}
	script := `echo "$1" >/proc/sys/net/ipv4/ip_local_reserved_ports`
	if _, err := run(ctx, "nsenter", "--net="+netnsPath(h.Netns), "sh", "-c", script, "sh", strings.Join(list, ",")); err != nil {
		return fmt.Errorf("host %s: cannot keep its servers' ports from other use: %w", h.Name, err)
	}
	return nil
}

// removeLink deletes an interface of our namespace; none of that name is fine.
func removeLink(name string) error {
	l, err := netlink.LinkByName(name)
	var none netlink.LinkNotFoundError
	if errors.As(err, &none) {
		return nil
	}
	if err == nil {
		err = netlink.LinkDel(l)
	}
	if err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("cannot delete link %s: %w", name, err)
	}
	return nil
}

// removeTap deletes an interface of our namespace if it is a tap device.
func removeTap(name string) error {
	if l, err := netlink.LinkByName(name); err != nil || l.Type() != "tuntap" {
		return nil
	}
	return removeLink(name)
}

// removeNetns kills what runs in a named namespace and deletes it; none of
// that name is fine.
func removeNetns(name string) error {
	path := netnsPath(name)
	if link, ok := netnsLink(path); ok {
		if err := killInNetns(map[string]bool{link: true}); err != nil {
			return fmt.Errorf("namespace %s: %w", name, err)
		}
		// The veth goes now; without this it goes when the kernel gets round to it.
		if ns, err := netns.GetFromPath(path); err == nil {
			if in, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE); err == nil {
				if l, err := in.LinkByName(hostLink); err == nil {
					_ = in.LinkDel(l)
				}
				in.Close()
			}
			ns.Close()
		}
	}
	if err := unix.Unmount(path, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("namespace %s: cannot unmount %s: %w", name, path, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("namespace %s: %w", name, err)
	}
	return nil
}

// ownNetns names our network namespace as /proc/PID/ns/net does. The main thread, by which
// /proc/self goes, may be in a host's for a moment: a packet socket is opened there.
func ownNetns() (string, error) { return os.Readlink("/proc/thread-self/ns/net") }

// netnsLink gives the namespace bound to the path as /proc/<pid>/ns/net names
// it. It is false for a path that is no namespace, and for our own.
func netnsLink(path string) (string, bool) {
	var fsys unix.Statfs_t
	if err := unix.Statfs(path, &fsys); err != nil || fsys.Type != unix.NSFS_MAGIC {
		return "", false
	}
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return "", false
	}
	link := fmt.Sprintf("net:[%d]", st.Ino)
	own, err := ownNetns()
	return link, err == nil && own != link
}

func netnsMark(name string) (mark, bool) {
	if _, ok := netnsLink(netnsPath(name)); !ok {
		return mark{}, false
	}
	ns, err := netns.GetFromPath(netnsPath(name))
	if err != nil {
		return mark{}, false
	}
	defer ns.Close()
	in, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		return mark{}, false
	}
	defer in.Close()
	lo, err := in.LinkByName("lo")
	if err != nil {
		return mark{}, false
	}
	return parseMark(lo.Attrs().Alias)
}
