package model_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"netsplit/model"
)

// TestRing: whatever its size, each host reaches a majority, itself included,
// no two reach the same, and who reaches whom is mutual.
func TestRing(t *testing.T) {
	for n := 4; n <= 13; n++ {
		var ring []model.NodeID
		for i := range n {
			ring = append(ring, model.NodeID(fmt.Sprintf("n%02d", i)))
		}
		p := model.Partition{Shape: model.Ring, Effect: model.Drop, Groups: [][]model.NodeID{ring}}
		cut := p.Links()
		if len(cut) == 0 {
			t.Errorf("%d hosts: nothing is cut", n)
		}
		seen := map[string]model.NodeID{}
		for _, a := range ring {
			var reach []string
			for _, b := range ring {
				l := model.Link{Src: a, Dst: b}
				if slices.Contains(cut, l) != slices.Contains(cut, l.Reverse()) {
					t.Errorf("%d hosts: %s in one direction only", n, l)
				}
				if !slices.Contains(cut, l) {
					reach = append(reach, string(b))
				}
			}
			if len(reach) < n/2+1 {
				t.Errorf("%d hosts: %s reaches %v, no majority", n, a, reach)
			}
			k := strings.Join(reach, " ")
			if o, dup := seen[k]; dup {
				t.Errorf("%d hosts: %s and %s both reach %s", n, o, a, k)
			}
			seen[k] = a
		}
	}
}

// TestLinks: the directed links of each shape.
func TestLinks(t *testing.T) {
	for _, c := range []struct{ shape, groups, want string }{
		{"complete", "a b | c", "[a>c b>c c>a c>b]"},
		{"complete", "a | b | c", "[a>b a>c b>a b>c c>a c>b]"},
		{"partial", "a | b", "[a>b b>a]"},
		{"simplex", "a | b c", "[b>a c>a]"},
		{"isolate", "a | b c", "[a>b a>c b>a c>a]"},
		{"bridge", "a | b | c d", "[b>c b>d c>b d>b]"},
		{"ring", "a b c d", "[a>c b>d c>a d>b]"},
		{"split", "a | b | c", "[a>b a>c b>a b>c c>a c>b]"},
		{"leader-in", "a | b", "[a>b b>a]"},
	} {
		p := model.Partition{Shape: model.Shape(c.shape), Effect: model.Drop}
		for g := range strings.SplitSeq(c.groups, " | ") {
			p.Groups = append(p.Groups, nil)
			for _, host := range strings.Fields(g) {
				last := &p.Groups[len(p.Groups)-1]
				*last = append(*last, model.NodeID(host))
			}
		}
		if got := fmt.Sprint(p.Links()); got != c.want {
			t.Errorf("%s: %s, want %s", p, got, c.want)
		}
	}
}

// TestOnlyTheGateCutsByMessages: whoever else is asked says why not.
func TestOnlyTheGateCutsByMessages(t *testing.T) {
	p := model.Partition{Shape: model.Simplex, Effect: model.Drop, Groups: [][]model.NodeID{{"n1"}, {"n2"}}, Only: []model.Traffic{{Proto: "udp"}, {Proto: "tcp", Messages: true}}}
	if err := p.Fits([]model.NodeID{"n1", "n2"}); err != nil {
		t.Error(err)
	}
	if err := p.NeedsGate(); err == nil || !strings.Contains(err.Error(), "only the gate of a run can") {
		t.Errorf("by hand: %v", err)
	}
	if p.Only = p.Only[:1]; p.NeedsGate() != nil {
		t.Errorf("udp by hand: %v", p.NeedsGate())
	}
	p.Only, p.Effect = []model.Traffic{{Proto: "tcp", Messages: true}}, model.Reset
	if err := p.Fits([]model.NodeID{"n1", "n2"}); err == nil || !strings.Contains(err.Error(), "acknowledgements are to pass") {
		t.Errorf("with resets: %v", err)
	}
}

// TestParseTraffic: what String writes is read back, and nothing else.
func TestParseTraffic(t *testing.T) {
	for _, s := range []string{"tcp", "udp/53", "tcp/65535", "tcp/7000-opening", "tcp-opening", "tcp-messages", "tcp/7000-messages", "icmp", "arp"} {
		tr, err := model.ParseTraffic(s)
		if err != nil || tr.String() != s {
			t.Errorf("%s: %s, %v", s, tr, err)
		}
	}
	for _, s := range []string{"", "sctp", "tcp/", "tcp/0", "tcp/65536", "tcp/7000x", "tcp/-1", "icmp/7", "udp-opening", "udp-messages", "tcp-opening-messages", "tcp-messages-opening", "tcp/http"} {
		if tr, err := model.ParseTraffic(s); err == nil {
			t.Errorf("%s was read as %s", s, tr)
		}
	}
}

// TestCountLinks: it is the number of Links, for whatever a shape takes.
func TestCountLinks(t *testing.T) {
	group := func(from, n int) (out []model.NodeID) {
		for i := range n {
			out = append(out, model.NodeID(fmt.Sprintf("h%02d", from+i)))
		}
		return out
	}
	for _, shape := range model.Shapes() {
		for a := 1; a <= 9; a++ {
			for b := 0; b <= 3; b++ {
				for c := 0; c <= 2; c++ {
					p := model.Partition{Shape: shape, Groups: [][]model.NodeID{group(0, a)}}
					for i, n := range []int{b, c} {
						if n > 0 {
							p.Groups = append(p.Groups, group(20+20*i, n))
						}
					}
					fits := map[model.Shape]int{model.Ring: 1, model.Simplex: 2, model.Bridge: 3}[shape]
					if fits > 0 && len(p.Groups) != fits {
						continue
					}
					if n := p.CountLinks(); n != len(p.Links()) {
						t.Errorf("%v: %d links are counted, and there are %d", p, n, len(p.Links()))
					}
				}
			}
		}
	}
}

// TestHowManyGroupsAShapeTakes, of a person and resolved.
func TestHowManyGroupsAShapeTakes(t *testing.T) {
	want := map[model.Shape]string{model.Complete: "..234", model.Partial: "..2", model.Simplex: "..2", model.Isolated: ".12", model.Bridge: ".1.3", model.Ring: "01", model.LeaderIn: "012", model.LeaderOut: "012", model.Split: "01234"}
	for _, s := range model.Shapes() {
		for n := range 5 {
			if takes := strings.Contains(want[s], strconv.Itoa(n)); s.TakesGroups(n) != takes {
				t.Errorf("%s takes %d groups: %v", s, n, !takes)
			}
		}
	}
}
