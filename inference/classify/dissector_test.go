package classify

import (
	"slices"
	"strings"
	"testing"

	"netsplit/model"
)

func TestNamesAreSortedAndAllOpen(t *testing.T) {
	names := Names()
	if !slices.IsSorted(names) || !slices.Contains(names, NameFallback) {
		t.Fatalf("names %v", names)
	}
	for _, n := range append(names, "") {
		p := model.Protocol{Dissector: n}
		if n == NameFrames {
			p.Frames = &model.Framing{Length: &model.Place{Size: 4}}
		}
		if d, err := New(p); err != nil || d == nil {
			t.Errorf("%q: %v", n, err)
		}
	}
	_, err := New(model.Protocol{Port: 7, Dissector: "nope"})
	if err == nil || !strings.Contains(err.Error(), strings.Join(names, ", ")) {
		t.Errorf("unknown dissector: %v", err)
	}
}
