package flowrules

import (
	"slices"

	"netsplit/model"
)

// Place is the input for one switch of a testbed, without anything cut or tapped: its
// hosts first, then those of other switches, by the ports that lead there. r is its
// route (see Routes), macs are the hosts' addresses, and numbers those of the ports that
// the testbed has on it (see model.Testbed.Locate). What is on none, since the switch
// has no port that is named so, is left out: no rule has its old number, which another
// may have got.
func Place(t model.Testbed, id model.DatapathID, r Route, macs map[model.NodeID]MAC, numbers map[model.Port]uint32) Input {
	in := Input{Lab: LabID(t.Name)}
	some := func(ports []model.Port) (out []uint32) {
		for _, p := range ports {
			if n := numbers[p]; n != 0 {
				out = append(out, n)
			}
		}
		slices.Sort(out)
		return out
	}
	in.Trunks, in.Tree = some(r.Trunks), some(r.Tree)
	var far []Host
	for _, o := range t.Hosts {
		h := Host{Name: o.Name, MAC: macs[o.Name], IP: o.IP}
		if o.Datapath == id {
			if h.Port = numbers[o.Port]; h.Port != 0 {
				in.Hosts = append(in.Hosts, h)
				continue
			}
		} else if via, linked := r.Via[o.Datapath]; linked {
			h.Via, h.Tree = numbers[via], numbers[r.From[o.Datapath]]
			if h.Via != 0 && h.Tree != 0 {
				h.Port = h.Via // on its own switch it has another; here nothing depends on it
				far = append(far, h)
				continue
			}
		}
		in.Elsewhere = append(in.Elsewhere, o.Name)
	}
	in.Hosts = append(in.Hosts, far...)
	return in
}
