package flowrules_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"netsplit/flowrules"
	"netsplit/internal/switchtest"
	"netsplit/model"
)

// network is several model switches with links between, and hosts on each.
type network struct {
	t        *testing.T
	links    []model.SwitchLink
	switches map[model.DatapathID]*switchtest.Switch
	hosts    []flowrules.Host
	on       map[model.NodeID]model.DatapathID
}

func link(a model.DatapathID, ap uint32, b model.DatapathID, bp uint32) model.SwitchLink {
	return model.SwitchLink{A: model.SwitchPort{Datapath: a, Port: model.Port{Number: ap}}, B: model.SwitchPort{Datapath: b, Port: model.Port{Number: bp}}}
}

// shapes of networks: hosts by switch, and links; some with more than one way,
// one with a switch that has no hosts.
var networks = []struct {
	hosts []int
	links []model.SwitchLink
}{
	{[]int{2, 2}, []model.SwitchLink{link(1, 50, 2, 50)}},
	{[]int{2, 2}, []model.SwitchLink{link(1, 50, 2, 50), link(1, 51, 2, 51)}},
	{[]int{2, 0, 2}, []model.SwitchLink{link(1, 50, 2, 50), link(3, 50, 2, 51)}},
	{[]int{2, 1, 2}, []model.SwitchLink{link(1, 50, 2, 50), link(2, 51, 3, 50), link(3, 51, 1, 51)}},
	{[]int{1, 1, 1, 2}, []model.SwitchLink{link(1, 50, 2, 50), link(2, 51, 3, 50), link(3, 51, 4, 51), link(4, 52, 1, 52), link(4, 53, 2, 53)}},
}

func newNetwork(t *testing.T, hosts []int, links []model.SwitchLink) *network {
	n := &network{t: t, links: links, switches: map[model.DatapathID]*switchtest.Switch{}, on: map[model.NodeID]model.DatapathID{}}
	for i, count := range hosts {
		id := model.DatapathID(i + 1)
		ports := []uint32{1, 2, 50, 51, 52, 53}
		n.switches[id] = switchtest.New(switchtest.Config{Datapath: id, Ports: ports, Meters: topMeter, Now: func() time.Time { return time.Unix(0, 0) }})
		for p := range count {
			k := byte(len(n.hosts) + 1)
			h := flowrules.Host{Name: model.NodeID(fmt.Sprintf("h%d", k)), Port: uint32(p + 1), MAC: flowrules.MAC{2, 0, 0, 0, 7, k}, IP: netip.AddrFrom4([4]byte{10, 0, 0, k})}
			n.hosts, n.on[h.Name] = append(n.hosts, h), id
		}
	}
	return n
}

// install brings every switch to the rules of the partitions and gated pairs, with
// just as many meters as it needs or without. Without any of them nothing is held.
func (n *network) install(parts []flowrules.Desired, gate []flowrules.Pair, meters bool) {
	n.t.Helper()
	routes, err := flowrules.Routes(n.links)
	if err != nil {
		n.t.Fatal(err)
	}
	for id, sw := range n.switches {
		in := flowrules.Input{Lab: 7, Partitions: parts, Gate: gate, HardTimeout: 5 * time.Second, Trunks: numbers(routes[id].Trunks), Tree: numbers(routes[id].Tree)}
		for _, h := range n.hosts {
			if at := n.on[h.Name]; at != id {
				h.Via, h.Tree = routes[id].Via[at].Number, routes[id].From[at].Number
			}
			in.Hosts = append(in.Hosts, h)
		}
		if local := n.local(id); meters {
			in.TopMeter = uint32(flowrules.MetersFor(local, len(n.hosts)-local))
		}
		plan, err := flowrules.Compile(in)
		if err != nil {
			n.t.Fatal(err)
		}
		turn(n.t, sw, plan, 1, nil)
		if len(parts) > 0 {
			continue
		}
		for _, r := range plan.Rules {
			if r.Kind == flowrules.KindHold {
				n.t.Fatalf("switch %s holds what nobody cuts: %v", id, r)
			}
		}
	}
}

func numbers(ports []model.Port) (out []uint32) {
	for _, p := range ports {
		out = append(out, p.Number)
	}
	return out
}

// local is how many hosts a switch has.
func (n *network) local(id model.DatapathID) (count int) {
	for _, at := range n.on {
		if at == id {
			count++
		}
	}
	return count
}

// send lets a host send a frame and says whom it reaches, sorted; "gate" is the
// controller.
func (n *network) send(from flowrules.Host, frame []byte) []string {
	n.t.Helper()
	type at struct {
		id   model.DatapathID
		port uint32
	}
	var got []string
	queue := []at{{n.on[from.Name], from.Port}}
	for steps := 0; len(queue) > 0; steps++ {
		if steps > 50 {
			n.t.Fatalf("a frame of %s goes round", from.Name)
		}
		here := queue[0]
		queue = queue[1:]
		for _, o := range n.switches[here.id].Inject(here.port, frame) {
			far := at{}
			for _, l := range n.links {
				for _, e := range [][2]model.SwitchPort{{l.A, l.B}, {l.B, l.A}} {
					if e[0] == (model.SwitchPort{Datapath: here.id, Port: model.Port{Number: o.Port}}) {
						far = at{e[1].Datapath, e[1].Port.Number}
					}
				}
			}
			if far.id != 0 {
				queue = append(queue, far)
				continue
			}
			who := "gate"
			for _, h := range n.hosts {
				if n.on[h.Name] == here.id && h.Port == o.Port {
					who = string(h.Name)
				}
			}
			got = append(got, who)
		}
	}
	slices.Sort(got)
	return got
}

// TestPartitionsSpanSwitches: over every network, with and without partitions
// and gated pairs, a frame reaches exactly those it may, once, and none goes
// round.
func TestPartitionsSpanSwitches(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for i, shape := range networks {
		n := newNetwork(t, shape.hosts, shape.links)
		var names []model.NodeID
		for _, h := range n.hosts {
			names = append(names, h.Name)
		}
		for round := range 24 {
			var parts []flowrules.Desired
			var gate []flowrules.Pair
			if round > 1 {
				parts = append(parts, flowrules.Desired{ID: 1, Partition: randomPartition(r, names)})
			}
			if round%3 == 2 {
				a := r.IntN(len(names) - 1)
				gate = append(gate, flowrules.Pair{A: names[a], B: names[a+1]})
			}
			n.install(parts, gate, round%2 == 1)
			whole, some := map[model.Link]bool{}, map[model.Link][]model.Traffic{}
			for _, p := range parts {
				for _, l := range p.Partition.Links() {
					if some[l] = p.Partition.Only; len(some[l]) == 0 {
						whole[l] = true
					}
				}
			}
			for _, a := range n.hosts {
				for _, b := range n.hosts {
					if a.Name == b.Name {
						continue
					}
					gated := func(to model.NodeID) bool {
						return slices.ContainsFunc(gate, func(p flowrules.Pair) bool {
							return p == flowrules.Pair{A: a.Name, B: to} || p == flowrules.Pair{A: to, B: a.Name}
						})
					}
					for _, k := range []string{"tcp to 7000", "open 80", "udp to 53", "icmp", "arp reply", "arp request", "gratuitous", "multicast", "who is", "dns to all", "tagged multicast"} {
						plain := strings.TrimPrefix(k, "tagged ")
						passes := func(to model.NodeID) bool {
							l := model.Link{Src: a.Name, Dst: to}
							return !whole[l] && !lost(plain, some[l])
						}
						var want []string
						switch plain {
						case "gratuitous", "multicast", "who is", "dns to all", "arp request":
							for _, c := range names {
								if c == a.Name || !passes(c) {
									continue
								}
								if !gated(c) {
									want = append(want, string(c))
								} else if plain != "arp request" && !slices.Contains(want, "gate") {
									want = append(want, "gate") // once for all receivers
								}
							}
						default:
							want = []string{string(b.Name)}
						}
						if one := plain == "arp request" || len(want) == 1 && want[0] == string(b.Name) && !strings.Contains("gratuitous multicast who is dns to all", plain); one {
							switch {
							case !passes(b.Name):
								want = nil
							case gated(b.Name):
								want = []string{"gate"}
							}
						}
						slices.Sort(want)
						if is(plain, model.Traffic{Proto: "tcp"}) && len(parts) > 0 && parts[0].Partition.Effect == model.Reset && !passes(b.Name) {
							want = []string{"gate"} // the controller, which answers it
						}
						if got := n.send(a, frame(k, a, b)); !slices.Equal(got, want) {
							t.Fatalf("network %d, %v, gate %v: %s %s>%s reaches %v, want %v", i, parts, gate, k, a.Name, b.Name, got, want)
						}
					}
				}
			}
		}
	}
}

func TestLinksThatCannotBe(t *testing.T) {
	for _, c := range []struct {
		links []model.SwitchLink
		says  string
	}{
		{[]model.SwitchLink{link(1, 50, 1, 51)}, "of the same switch"},
		{[]model.SwitchLink{link(1, 50, 2, 51), link(3, 1, 1, 50)}, "is in two links"},
	} {
		if _, err := flowrules.Routes(c.links); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %v", c.links, err)
		}
	}
}
