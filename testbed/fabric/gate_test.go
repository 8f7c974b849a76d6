package fabric_test

import (
	"slices"
	"testing"

	"netsplit/model"
	"netsplit/testbed/fabric"
)

// TestReceiversAreWhomTheTapIsFor: the hosts on the other end of its pairs that the
// sender can reach, also of the last frames after it was closed.
func TestReceiversAreWhomTheTapIsFor(t *testing.T) {
	r := newRig(t, fabric.Config{}, 1, 2) // two switches without a link
	mirrored := false
	is := func(from model.NodeID, want ...model.NodeID) {
		t.Helper()
		if got := r.f.Receivers(from, !mirrored); !slices.Equal(got, want) {
			t.Errorf("of %s, mirrored %v: %v, want %v", from, mirrored, got, want)
		}
	}
	is("s1h1")
	pairs := []fabric.Pair{{A: "s1h3", B: "s1h1"}, {A: "s1h1", B: "s1h2"}, {A: "s1h2", B: "s1h1"}, {A: "s1h1", B: "s2h1"}}
	for _, mirrored = range []bool{false, true} {
		gate, mirror := pairs, []fabric.Pair(nil)
		if mirrored {
			gate, mirror = nil, pairs[:1]
		}
		if err := r.f.SetTaps(soon(t), gate, mirror); err != nil {
			t.Fatal(err)
		}
		if mirrored {
			is("s1h1", "s1h3")
			is("s1h2")
		} else {
			is("s1h1", "s1h2", "s1h3")
			is("s2h1")
		}
	}
	if err := r.f.SetTaps(soon(t), nil, nil); err != nil {
		t.Fatal(err)
	}
	is("s1h1", "s1h3")
	// With both taps each has its own.
	if err := r.f.SetTaps(soon(t), pairs[1:2], pairs[:2]); err != nil {
		t.Fatal(err)
	}
	is("s1h1", "s1h3")
	mirrored = false
	is("s1h1", "s1h2")
}
