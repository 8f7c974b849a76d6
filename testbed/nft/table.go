package nft

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"netsplit/flowrules/hostrules"
)

// ErrExpired: the lease ran out before it was renewed, so packets have passed
// that rules were to drop.
var ErrExpired = errors.New("the rules were not renewed in time and let packets pass")

// ErrClosed: the table is gone, and its rules with it. Another can be opened.
var ErrClosed = errors.New("the table was given up")

// priority puts the chains before those of others.
const priority = -1000

// ownerFlag is NFT_TABLE_F_OWNER (linux/netfilter/nf_tables.h).
const ownerFlag = 2

// leaseKey is the one element of the set of leases.
var leaseKey = binary.NativeEndian.AppendUint32(nil, 1)

// Table is one table and its two chains. Its methods may be called concurrently.
type Table struct {
	device *net.Interface

	mu     sync.Mutex
	lib    *nftables.Conn
	conn   *netlink.Conn // the library's, for what it does not know
	table  *nftables.Table
	chains map[hostrules.Hook]*nftables.Chain
	lease  *nftables.Set
	until  time.Time // the lease runs out
	rules  int       // in force
	room   int       // bytes that the socket's buffers take
	closed error     // it was given up
}

// Open makes the table at the device that has the address. The error says what is
// missing: rights, a device, the kernel's support.
func Open(name string, addr netip.Addr) (*Table, error) {
	device, err := deviceOf(addr)
	if err != nil {
		return nil, err
	}
	t := &Table{device: device, room: firstRoom, table: &nftables.Table{Name: name, Family: nftables.TableFamilyNetdev}}
	t.lib, err = nftables.New(nftables.AsLasting(), nftables.WithSockOptions(func(c *netlink.Conn) error { t.conn = c; return nil }))
	if err != nil {
		return nil, fmt.Errorf("nftables: %w", err)
	}
	if err := t.build(); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

func (t *Table) build() error {
	err := t.commit([]netlink.Message{t.message(unix.NFT_MSG_NEWTABLE, netlink.Create|netlink.Excl, []netlink.Attribute{
		text(unix.NFTA_TABLE_NAME, t.table.Name), number(unix.NFTA_TABLE_FLAGS, ownerFlag)})})
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EEXIST): // one with another owner is refused as rights are
		tables, lerr := t.lib.ListTablesOfFamily(nftables.TableFamilyNetdev)
		if slices.ContainsFunc(tables, func(o *nftables.Table) bool { return o.Name == t.table.Name }) {
			return fmt.Errorf("nftables: table netdev %s: %w: another netsplit cuts this host for a testbed of that name; end it, or rename the testbed", t.table.Name, unix.EEXIST)
		}
		return errors.Join(fmt.Errorf("nftables: %w: it takes root, or CAP_NET_ADMIN", err), lerr)
	case err != nil:
		return fmt.Errorf("nftables: table netdev %s: %w (the kernel needs nf_tables, and tables with an owner: Linux 5.12 or later)", t.table.Name, err)
	}
	t.lease = &nftables.Set{Table: t.table, Name: "lease", KeyType: nftables.TypeMark, KeyByteOrder: binaryutil.NativeEndian, HasTimeout: true}
	if err := t.lib.AddSet(t.lease, nil); err != nil {
		return err
	}
	t.chains = map[hostrules.Hook]*nftables.Chain{}
	for hook, num := range map[hostrules.Hook]*nftables.ChainHook{hostrules.Ingress: nftables.ChainHookIngress, hostrules.Egress: nftables.ChainHookEgress} {
		c := t.lib.AddChain(&nftables.Chain{Name: string(hook), Table: t.table, Type: nftables.ChainTypeFilter, Hooknum: num,
			Priority: nftables.ChainPriorityRef(priority), Device: t.device.Name})
		t.chains[hook] = c
	}
	if err := t.lib.Flush(); err != nil {
		return fmt.Errorf("nftables: chains at ingress and egress of %s: %w (a chain at egress takes Linux 5.16 or later)", t.device.Name, err)
	}
	noLease := []expr.Any{&expr.Immediate{Register: register1, Data: leaseKey}, &expr.Lookup{SourceRegister: register1, SetName: t.lease.Name, Invert: true}, accept}
	var first []netlink.Message
	for _, r := range []struct {
		hook  hostrules.Hook
		exprs []expr.Any
	}{{hostrules.Ingress, noLease}, {hostrules.Egress, noLease}, {hostrules.Egress, toAGroup()}} {
		m, err := t.rule(r.hook, 0, "", r.exprs...)
		if err != nil {
			return err
		}
		first = append(first, m)
	}
	if err := t.commit(first); err != nil {
		return fmt.Errorf("nftables: table netdev %s: %w", t.table.Name, err)
	}
	return nil
}

func deviceOf(addr netip.Addr) (*net.Interface, error) {
	devices, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	for _, d := range devices {
		addrs, err := d.Addrs()
		if err != nil {
			return nil, err
		}
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr() == addr {
				return &d, nil
			}
		}
	}
	return nil, fmt.Errorf("no interface of this host has the address %s: the testbed file gives it as the host's ip", addr)
}

// Set puts exactly these rules in force, all at once, for as long as the lease
// lasts. Those that were in force before stay, with their counts. It returns what
// had been dropped until then, by key. With ErrExpired the rules are in force now,
// and those before them had not been for a while.
func (t *Table) Set(rules []hostrules.Rule, lease time.Duration) (map[string]uint64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed != nil {
		return nil, t.closed
	}
	late := t.late()
	have, err := t.read()
	if err != nil {
		return nil, err
	}
	if err := t.extend(lease); err != nil {
		return nil, err
	}
	var msgs []netlink.Message
	before := map[hostrules.Hook]uint64{} // handle of the rule that comes next
	want := map[string]bool{}
	for _, r := range slices.Backward(rules) {
		want[r.Key()] = true
		if h, old := have[r.Key()]; old {
			before[r.Hook] = h.handle
			continue
		}
		m, err := t.add(r, before[r.Hook])
		if err != nil {
			return nil, err
		}
		msgs = append(msgs, m)
	}
	slices.Reverse(msgs)
	dropped := map[string]uint64{}
	for key, h := range have {
		dropped[key] = h.dropped
		if !want[key] {
			msgs = append(msgs, t.message(unix.NFT_MSG_DELRULE, 0, []netlink.Attribute{text(unix.NFTA_RULE_TABLE, t.table.Name),
				text(unix.NFTA_RULE_CHAIN, string(h.hook)), {Type: unix.NFTA_RULE_HANDLE, Data: binary.BigEndian.AppendUint64(nil, h.handle)}}))
		}
	}
	if err := t.commit(msgs); err != nil {
		return nil, fmt.Errorf("nftables: rules of netdev %s: %w", t.table.Name, err)
	}
	t.rules = len(rules)
	if late {
		return dropped, ErrExpired
	}
	return dropped, nil
}

// Renew lets the lease last that long from now.
func (t *Table) Renew(lease time.Duration) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed != nil {
		return t.closed
	}
	if t.late() {
		return ErrExpired
	}
	if d, err := net.InterfaceByIndex(t.device.Index); err != nil || d.Name != t.device.Name {
		return fmt.Errorf("the interface %s of this host is gone, and its rules with it", t.device.Name)
	}
	return t.extend(lease)
}

// Dropped is what every rule has dropped, by key.
func (t *Table) Dropped() (map[string]uint64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed != nil {
		return nil, t.closed
	}
	have, err := t.read()
	if err != nil {
		return nil, err
	}
	dropped := map[string]uint64{}
	for key, h := range have {
		dropped[key] = h.dropped
	}
	return dropped, nil
}

// Close removes the table: closing its owner's socket does.
func (t *Table) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lib.CloseLasting()
}

// late says that rules were in force and the lease ran out.
func (t *Table) late() bool { return t.rules > 0 && !time.Now().Before(t.until) }

// extend replaces the lease. The time is taken before the kernel takes it: late
// says so a moment before packets pass, never after.
func (t *Table) extend(lease time.Duration) error {
	until := time.Now().Add(lease)
	t.lib.FlushSet(t.lease)
	if err := t.lib.SetAddElements(t.lease, []nftables.SetElement{{Key: leaseKey, Timeout: lease}}); err != nil {
		return err
	}
	if err := t.lib.Flush(); err != nil {
		return fmt.Errorf("nftables: lease of netdev %s: %w", t.table.Name, err)
	}
	t.until = until
	return nil
}

// inForce is a rule as the kernel has it.
type inForce struct {
	hook            hostrules.Hook
	handle, dropped uint64
}

// read lists the rules with a key: all but those that accept.
func (t *Table) read() (map[string]inForce, error) {
	out := map[string]inForce{}
	for hook, c := range t.chains {
		rules, err := t.lib.GetRules(t.table, c)
		if err != nil {
			return nil, fmt.Errorf("nftables: read the rules of netdev %s: %w", t.table.Name, err)
		}
		for _, r := range rules {
			key, ok := userdata.GetString(r.UserData, userdata.TypeComment)
			if !ok {
				continue
			}
			h := inForce{hook: hook, handle: r.Handle}
			for _, e := range r.Exprs {
				if c, ok := e.(*expr.Counter); ok {
					h.dropped = c.Packets
				}
			}
			out[key] = h
		}
	}
	return out, nil
}
