package state

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netsplit/model"
)

// What comes and goes is absent, for those who list all there is, before it is
// there and after it has gone.
func TestWhatWasNamedIsAbsentWhereItIsNotListed(t *testing.T) {
	list := model.VarSource{Probe: &model.Probe{}, Regexp: `(?P<about>j\d) at (?P<value>\w+)`, AbsentFor: "named"}
	e, err := NewExtractor(hosts, nodes, []model.Variable{{Name: "job", Kind: "place", MaxAge: 2 * time.Second, Sources: []model.VarSource{
		list, {Type: "start", Field: "job", Regexp: `(?P<about>j\d)`, Value: "$receiver"}}}})
	if err != nil {
		t.Fatal(err)
	}
	requested := func(s float64, node model.NodeID, answer string) []model.Observation {
		return e.Probe("job", 0, node, time.Duration(s*float64(time.Second)), answer)
	}
	started := func(s float64, from, to model.NodeID, job string) []model.Observation {
		return e.Message(&model.Message{Num: 7, At: time.Duration(s * float64(time.Second)), Type: "start", From: from, To: to,
			Fields: []model.Field{{Name: "job", Value: job}}})
	}
	for i, c := range []struct {
		got  []model.Observation
		want []string
	}{
		{requested(1, "n1", "none"), nil}, // nobody has named anything yet
		{requested(1.5, "n2", "none"), nil},
		{started(2, "n1", "n2", "j1"), []string{"job[j1]@n2 = ∅ at 1.5s, message 0", "job[j1]@n1 = n2 at 2s, message 7"}},
		{started(2.1, "n1", "n2", "j1"), []string{"job[j1]@n1 = n2 at 2.1s, message 7"}}, // known already
		{requested(2.5, "n2", "j1 at n2"), []string{"job[j1]@n2 = n2 at 2.5s, message 0"}},
		{requested(3, "n1", "j1 at n2, j2 at n2"), []string{"job[j2]@n2 = ∅ at 2.5s, message 0", "job[j1]@n1 = n2 at 3s, message 0", "job[j2]@n1 = n2 at 3s, message 0"}},
		{requested(3.5, "n2", "none"), []string{"job[j1]@n2 = ∅ at 3.5s, message 0", "job[j2]@n2 = ∅ at 3.5s, message 0"}},
		{requested(4, "n1", "j2 at n2 and…"), []string{"job[j2]@n1 = n2 at 4s, message 0"}}, // cut: nothing is missing in it
		{started(5, "n3", "n2", "j3"), []string{"job[j3]@n1 = ∅ at 3s, message 0", "job[j3]@n2 = ∅ at 3.5s, message 0", "job[j3]@n3 = n2 at 5s, message 7"}},
		{started(5.2, "n3", "n2", "j4"), []string{"job[j4]@n2 = ∅ at 3.5s, message 0", "job[j4]@n3 = n2 at 5.2s, message 7"}}, // n1's list is too old
	} {
		var got []string
		for _, o := range c.got {
			got = append(got, fmt.Sprintf("%s = %s at %v, message %d", o.Var, o.Value, o.At, o.Message))
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("step %d: -want +got\n%s", i+1, d)
		}
	}
}

// What both ends of a message learn of a new thing stands behind that it was absent
// there: it is not lost, and what differs comes with the message.
func TestBothEndsLearnWhatIsNamed(t *testing.T) {
	e, err := NewExtractor(hosts, nodes, []model.Variable{{Name: "job", Kind: "place", Sources: []model.VarSource{
		{Probe: &model.Probe{}, Regexp: `(?P<about>j\d)`, AbsentFor: "named"},
		{Type: "start", Field: "job", Regexp: `(?P<about>j\d)`, Value: "told"},
		{Type: "start", Field: "job", Of: "receiver", Regexp: `(?P<about>j\d)`, Value: "heard"},
		{Type: "mend", Value: "mends", About: "j2"}}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		e.Probe("job", 0, n, time.Second, "none")
	}
	send := func(typ string) (out string) {
		m := model.Message{Num: 7, At: 2 * time.Second, Type: typ, From: "n1", To: "n2", Fields: []model.Field{{Name: "job", Value: "j1"}}}
		for _, o := range e.Message(&m) {
			out += fmt.Sprintf("%s = %s at %v, message %d\n", o.Var, o.Value, o.At, o.Message)
		}
		return out
	}
	for typ, want := range map[string]string{
		"start": "job[j1]@n2 = ∅ at 1s, message 0\njob[j1]@n3 = ∅ at 1s, message 0\njob[j1]@n1 = told at 2s, message 7\njob[j1]@n2 = heard at 2s, message 7\n",
		"mend":  "job[j2]@n2 = ∅ at 1s, message 0\njob[j2]@n3 = ∅ at 1s, message 0\njob[j2]@n1 = mends at 2s, message 7\n", // the source says whom it names
	} {
		if d := cmp.Diff(want, send(typ)); d != "" {
			t.Errorf("%s: -want +got\n%s", typ, d)
		}
	}
}

// A system that names ever new things does not fill the memory.
func TestWhatWasNamedIsBounded(t *testing.T) {
	e, err := NewExtractor(hosts, nodes, []model.Variable{{Name: "job", Kind: "place", Sources: []model.VarSource{
		{Probe: &model.Probe{}, Regexp: `(?P<about>j\d+)`, AbsentFor: "named"}}}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 * namedLimit {
		e.Probe("job", 0, "n1", 0, fmt.Sprintf("j%d", i))
	}
	if n := len(e.Probe("job", 0, "n2", 0, "none")); n != namedLimit {
		t.Errorf("%d things are remembered, want %d", n, namedLimit)
	}
}

// What has gone is forgotten: it costs every later list, and could come again.
func TestWhatHasGoneIsForgotten(t *testing.T) {
	e, err := NewExtractor(hosts, nodes, []model.Variable{{Name: "job", Kind: "place", MaxAge: time.Second, Sources: []model.VarSource{
		{Probe: &model.Probe{}, Regexp: `(?P<about>j\d+)`, AbsentFor: "named"}}}})
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		at     time.Duration
		node   model.NodeID
		answer string
		want   int // observations
	}{
		{0, "n2", "none", 0}, {0, "n1", "j1", 2}, {time.Second, "n2", "none", 1}, {5 * time.Second, "n1", "none", 1},
		{6 * time.Second, "n2", "none", 0}, {6 * time.Second, "n1", "j1", 2},
	} {
		if got := e.Probe("job", 0, c.node, c.at, c.answer); len(got) != c.want {
			t.Errorf("step %d: %v, want %d", i+1, got, c.want)
		}
	}
}
