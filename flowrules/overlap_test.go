package flowrules_test

import (
	"fmt"
	"testing"

	"netsplit/flowrules"
	"netsplit/model"
)

func only(t *testing.T, words ...string) model.Partition {
	t.Helper()
	p := model.Partition{Shape: model.Partial, Effect: model.Drop, Groups: groups("n1 | n2")}
	for _, w := range words {
		tr, err := model.ParseTraffic(w)
		if err != nil {
			t.Fatal(err)
		}
		p.Only = append(p.Only, tr)
	}
	return p
}

// TestPartitionsOfOneLink: what each cuts of the other's traffic, and which of its
// probe packets it takes.
func TestPartitionsOfOneLink(t *testing.T) {
	for _, c := range []struct {
		one, other []string
		all        bool   // one cuts all that other does
		of         string // of what one names, other cuts some
		takes      int    // probe packets of the other
	}{
		{nil, nil, true, "[]", 3},
		{nil, []string{"arp"}, true, "[]", 3},
		{[]string{"arp"}, nil, false, "[arp]", 1},
		{[]string{"tcp/7000"}, []string{"udp"}, false, "[]", 0},
		{[]string{"tcp"}, []string{"tcp/7000"}, true, "[tcp]", 4},
		{[]string{"tcp/7000"}, []string{"tcp"}, false, "[tcp/7000]", 0}, // of no particular port
		{[]string{"tcp-opening"}, []string{"tcp/7000"}, false, "[tcp-opening]", 0},
		{[]string{"tcp-opening", "udp"}, []string{"tcp/7000-opening"}, true, "[tcp-opening]", 2},
		{[]string{"tcp/7000"}, []string{"tcp/7001"}, false, "[]", 0},
		{[]string{"tcp/7000", "tcp/9"}, []string{"tcp/7000", "udp"}, false, "[tcp/7000]", 4},
		{[]string{"icmp"}, []string{"arp", "icmp"}, false, "[icmp]", 2}, // not neighbour discovery
	} {
		one, other := only(t, c.one...), only(t, c.other...)
		n := 0
		for _, s := range other.ProbePackets() {
			if flowrules.Takes(one, s) {
				n++
			}
		}
		if got := fmt.Sprint(flowrules.CutsOf(one, other)); flowrules.CutsAll(one, other) != c.all || got != c.of || n != c.takes {
			t.Errorf("%v beside %v: all %v, of what it names %s, %d probe packets; want %v, %s, %d", c.one, c.other, flowrules.CutsAll(one, other), got, n, c.all, c.of, c.takes)
		}
	}
}
