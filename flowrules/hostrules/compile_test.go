package hostrules

import (
	"net/netip"
	"strings"
	"testing"

	"netsplit/model"
)

var hosts = []Host{
	{Name: "n1", MAC: MAC{2, 0, 0, 0, 0, 1}, IP: netip.MustParseAddr("10.0.0.1")},
	{Name: "n2", MAC: MAC{2, 0, 0, 0, 0, 2}, IP: netip.MustParseAddr("10.0.0.2")},
	{Name: "n3", MAC: MAC{2, 0, 0, 0, 0, 3}, IP: netip.MustParseAddr("fd00::3")},
}

func text(rules []Rule) string {
	var b strings.Builder
	for _, r := range rules {
		b.WriteString(r.Link.String() + " " + r.Key() + "\n")
	}
	return b.String()
}

// TestBothEndsCutALink, and no other host does anything.
func TestBothEndsCutALink(t *testing.T) {
	p := model.Partition{Shape: model.Simplex, Groups: [][]model.NodeID{{"n1"}, {"n2", "n3"}}} // n2 and n3 reach n1 no more
	for _, c := range []struct {
		self model.NodeID
		want string
	}{
		{"n1", "n2>n1 ingress ether saddr 02:00:00:00:00:02\nn2>n1 ingress ip saddr 10.0.0.2\n" +
			"n3>n1 ingress ether saddr 02:00:00:00:00:03\nn3>n1 ingress ip6 saddr fd00::3\n"},
		{"n2", "n2>n1 egress ether daddr 02:00:00:00:00:01\nn2>n1 egress ip daddr 10.0.0.1\nn2>n1 egress arp daddr ip 10.0.0.1\n"},
	} {
		if got := text(Compile(c.self, hosts, []model.Partition{p})); got != c.want {
			t.Errorf("%s:\n%swant\n%s", c.self, got, c.want)
		}
	}
	if got := Compile("n3", hosts, []model.Partition{{Shape: model.Partial, Groups: [][]model.NodeID{{"n1"}, {"n2"}}}}); len(got) > 0 {
		t.Errorf("a host that nothing is cut of: %s", text(got))
	}
}

// TestTheMostSpecialRuleCounts: what a rule covers stands after it, and whoever cuts
// everything leaves nothing to others.
func TestTheMostSpecialRuleCounts(t *testing.T) {
	some := func(only ...model.Traffic) model.Partition {
		return model.Partition{Shape: model.Partial, Groups: [][]model.NodeID{{"n1"}, {"n2"}}, Only: only}
	}
	tcp, web, opening := model.Traffic{Proto: "tcp"}, model.Traffic{Proto: "tcp", Port: 80}, model.Traffic{Proto: "tcp", Port: 80, Opening: true}
	for _, ps := range [][]model.Partition{{some(tcp), some(web, opening)}, {some(opening, web), some(tcp, web)}} {
		rules := Compile("n1", hosts, ps)
		want := "n1>n2 egress ether daddr 02:00:00:00:00:02 meta l4proto tcp tcp dport 80 tcp flags syn / syn,ack\n" +
			"n1>n2 egress ip daddr 10.0.0.2 meta l4proto tcp tcp dport 80 tcp flags syn / syn,ack\n" +
			"n1>n2 egress ether daddr 02:00:00:00:00:02 meta l4proto tcp tcp dport 80\n" +
			"n1>n2 egress ip daddr 10.0.0.2 meta l4proto tcp tcp dport 80\n" +
			"n1>n2 egress ether daddr 02:00:00:00:00:02 meta l4proto tcp tcp sport 80\n" +
			"n1>n2 egress ip daddr 10.0.0.2 meta l4proto tcp tcp sport 80\n" +
			"n1>n2 egress ether daddr 02:00:00:00:00:02 meta l4proto tcp\n" +
			"n1>n2 egress ip daddr 10.0.0.2 meta l4proto tcp\n"
		if got := text(rules[:8]); got != want {
			t.Errorf("%s", got)
		}
		for _, r := range rules {
			if !r.Counts(some(tcp)) || !r.Counts(some()) || r.Counts(some(opening)) != r.Only.Opening {
				t.Errorf("%s counts for the wrong partitions", r.Key())
			}
		}
	}
	// Beside a cut of all, those of some traffic come first and count for both.
	rules := Compile("n1", hosts, []model.Partition{some(), some(tcp)})
	want := "n1>n2 egress ether daddr 02:00:00:00:00:02 meta l4proto tcp\n" +
		"n1>n2 egress ip daddr 10.0.0.2 meta l4proto tcp\n" +
		"n1>n2 egress ether daddr 02:00:00:00:00:02\n" +
		"n1>n2 egress ip daddr 10.0.0.2\n" +
		"n1>n2 egress arp daddr ip 10.0.0.2\n"
	if got := text(rules[:5]); got != want {
		t.Errorf("%s", got)
	}
	for _, r := range rules {
		if !r.Counts(some()) || r.Counts(some(tcp)) != (r.Only == tcp) || r.Counts(some(web)) {
			t.Errorf("%s counts for the wrong partitions", r.Key())
		}
	}
}

// TestEveryProbePacketMeetsARule, and every rule of the sender or the receiver is met by
// one, but for those that know the far end by its address: they are met behind a
// router.
func TestEveryProbePacketMeetsARule(t *testing.T) {
	for _, only := range [][]string{nil, {"tcp"}, {"tcp/80"}, {"tcp-opening"}, {"tcp/80-opening", "udp/53"}, {"udp"}, {"icmp"}, {"arp"}, {"icmp", "arp", "udp"}} {
		p := model.Partition{Shape: model.Partial, Effect: model.Drop, Groups: [][]model.NodeID{{"n1"}, {"n2"}}}
		for _, w := range only {
			tr, err := model.ParseTraffic(w)
			if err != nil {
				t.Fatal(err)
			}
			p.Only = append(p.Only, tr)
		}
		l := model.Link{Src: "n1", Dst: "n2"}
		met := map[string]bool{}
		for _, s := range p.ProbePackets() {
			for _, at := range []model.NodeID{"n1", "n2"} {
				if s.Past = at == "n2"; s.Past && s.Asks {
					continue
				}
				took := Take(Compile(at, hosts, []model.Partition{p}), l, s)
				if len(took) == 0 {
					t.Errorf("%s: %+v meets no rule of %s", p, s, at)
				}
				for _, r := range took {
					if r.Link != l || (r.Hook == Ingress) != s.Past {
						t.Errorf("%s: %+v meets %s of %s", p, s, r.Key(), r.Link)
					}
					met[r.Key()] = true
				}
			}
		}
		for _, at := range []model.NodeID{"n1", "n2"} {
			for _, r := range Compile(at, hosts, []model.Partition{p}) {
				if r.Link == l && !r.Match.IP.IsValid() && !met[r.Key()] {
					t.Errorf("%s: no probe packet meets %s", p, r.Key())
				}
			}
		}
	}
}
