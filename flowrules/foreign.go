package flowrules

import (
	"fmt"
	"strings"

	"netsplit/controller/of13"
	"netsplit/model"
)

// Foreign is a rule of somebody else that takes packets of our hosts before
// rules of ours that may have to hold them back, or to forward them.
type Foreign struct {
	Flow of13.FlowStats
	Host model.NodeID // one whose packets it takes
	// Drops: it loses them. Otherwise they go round our rules: nothing that is
	// cut there is cut.
	Drops bool
}

// Uncuts says whether what is cut already passes by the rule. In table 2 that is cut
// only which is behind the gate; below it everything else has gone by its drop rules.
func (f Foreign) Uncuts() bool {
	return !f.Drops && (uint8(f.Flow.TableID) != TableForward || f.Flow.Priority >= prioGuardSome)
}

// removeLeft removes every rule of netsplit's; hosts then wait for the next
// controller's.
const removeLeft = "ovs-ofctl -O OpenFlow13 del-flows BRIDGE cookie=0x4e00000000000000/0xff00000000000000 (the hosts are not connected until netsplit serves them)"

// String names the rule and says what can be done.
func (f Foreign) String() string {
	if Cookie(f.Flow.Cookie).left() {
		return fmt.Sprintf("rule that netsplit left for a testbed of another name (cookie %#x) in table %d, in the way of host %s; "+
			"serve the testbed by that name, or remove all that netsplit left: %s", f.Flow.Cookie, f.Flow.TableID, f.Host, removeLeft)
	}
	does := "takes packets of host %s past netsplit's rules, so no cut would hold"
	if f.Drops {
		does = "drops packets of host %s before netsplit's rules see them"
	}
	return fmt.Sprintf("rule of somebody else (cookie %#x) in table %d: priority=%d %s actions=%s "+does+
		"; remove it (ovs-ofctl --strict del-flows), give it a priority below %d, or take the host out of the testbed",
		f.Flow.Cookie, f.Flow.TableID, f.Flow.Priority, f.Flow.Match, actions(f.Flow), f.Host, lowest[uint8(f.Flow.TableID)])
}

func actions(s of13.FlowStats) string {
	if drops(s) {
		return "drop"
	}
	var p []string
	for _, i := range s.Instructions {
		p = append(p, fmt.Sprint(i))
	}
	return strings.Join(p, ",")
}

// drops says that nothing leaves by the rule: it neither acts nor goes on.
func drops(s of13.FlowStats) bool { return len(s.Instructions) == 0 }

// lowest is the lowest priority of ours in a table at which a rule is needed for
// a partition to hold or for packets to find their host.
var lowest = map[uint8]uint16{TableAdmit: prioFromHost, TablePolicy: prioFlood, TableForward: prioGroup}

// InTheWay lists the rules of others that take packets of the switch's hosts
// from ours, in the order of the tables. Rules of others that rank below ours,
// or match nothing that comes from our hosts, are not in the way, and neither
// are those of tables that ours never lead to.
func InTheWay(have []of13.FlowStats, in Input) []Foreign {
	var out []Foreign
	for _, s := range sorted(have) {
		c := Cookie(s.Cookie)
		if c.Ours(in.Lab) || c>>56 == Tag && c.Kind() == KindTrial {
			continue
		}
		if low, used := lowest[uint8(s.TableID)]; !used || s.Priority < low {
			continue
		}
		if h, takes := takes(s, in); takes {
			out = append(out, Foreign{Flow: s, Host: h, Drops: drops(s)})
		}
	}
	return out
}

// takes says whether some packet that a host sends to another, or to everybody,
// fits the rule; and which host.
func takes(s of13.FlowStats, in Input) (model.NodeID, bool) {
	to := false
	for _, h := range in.Hosts {
		to = to || overlap(s.Match, of13.Match{of13.EthDst(h.MAC)})
	}
	to = to || overlap(s.Match, of13.Match{of13.EthDstMasked(group, group)})
	if !to {
		return "", false
	}
	for _, h := range in.Hosts {
		if h.far() {
			h.Port = h.Via // packets of others come there; it is named as one of them
		}
		from := of13.Match{of13.InPort(of13.PortNo(h.Port))}
		if uint8(s.TableID) != TableAdmit {
			from = append(from, of13.Metadata(uint64(h.Port)))
		}
		if overlap(s.Match, from) {
			return h.Name, true
		}
	}
	return "", false
}
