package state

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netsplit/model"
)

func TestWhatIsToldWithEachChangeIsKnownUntilTheNext(t *testing.T) {
	for _, c := range []struct {
		name, script string
		settle       time.Duration
		want         []string
	}{
		{"what is told with each change is known until the next", `
			1s change leader n1 a
			1s change leader n2 a
			10s msg n1 n2 one
			20s change leader n1 b
			20100ms change leader n2 b
			20200ms msg n1 n2 two
			21s msg n1 n2 three
			30s msg n1 n2 four
			31500ms change leader n1 c
			31500ms change leader n2 c
			31900ms msg n1 n2 five
			40s pause n2
			41s msg n1 n2 six
			50s kill n2
			51s msg n1 n2 seven
			60s tick`, 500 * time.Millisecond,
			[]string{"1 n1>n2 one: leader@n1=a leader@n2=a", "3 n1>n2 three: leader@n1=b leader@n2=b", "4 n1>n2 four: leader@n1=b leader@n2=b", "6 n1>n2 six: leader@n1=c leader@n2=c"}},
		{"a probe that shows another value was not told of the change", `
			1s change leader n1 a
			1s change leader n2 a
			5s msg n1 n2 one
			6s obs leader n2 b
			6200ms obs leader n1 b
			9300ms tick`, 500 * time.Millisecond, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := NewSampler("r", nodes, vars)
			s.Settle = c.settle
			if diff := cmp.Diff(c.want, script(s, c.script)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatIsToldWithEachChangeIsNotOutOfDate(t *testing.T) {
	tells := []model.Variable{{Name: "leader", Kind: "leader", MaxAge: time.Second, Sources: []model.VarSource{{Type: "elected", Field: "who", Tells: model.TellsChanges}}}}
	e, err := NewExtractor(hosts, nodes, tells)
	if err != nil {
		t.Fatal(err)
	}
	tab, ref := NewTable(tells), model.VarRef{Name: "leader", Node: "n1"}
	for _, o := range e.Message(&model.Message{Num: 1, From: "n1", To: "n2", Type: "elected", Fields: []model.Field{{Name: "who", Value: "n2"}}}) {
		tab.Set(o)
	}
	if v, fresh := tab.Value(ref, time.Hour); v != "n2" || !fresh {
		t.Errorf("%q, fresh %v", v, fresh)
	}
	tab.Restarted("n2")
	if _, fresh := tab.Value(ref, time.Hour); !fresh {
		t.Error("another node's server was stopped")
	}
	tab.Restarted("n1")
	if v, fresh := tab.Value(ref, time.Hour); v != "n2" || fresh {
		t.Errorf("stopped: %q, fresh %v", v, fresh)
	}
}
