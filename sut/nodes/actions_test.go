package nodes

import (
	"testing"

	"netsplit/model"
)

// A server that a hook started has no process here: it runs until a hook ended it.
func TestAServerOfAHookRunsUntilAHookEndsIt(t *testing.T) {
	p := New(Config{})
	s := &server{host: "n1", name: "db"}
	p.servers = append(p.servers, s)
	if !p.Runs("n1", "db") || p.Runs("n2", "db") {
		t.Errorf("started on n1: runs there %v, on n2 %v", p.Runs("n1", "db"), p.Runs("n2", "db"))
	}
	if s.down = true; p.Runs("n1", "db") {
		t.Error("it runs though a hook ended it")
	}
}

// A server that is stopping may be killed: a fault hits it while a workload stops it. What else
// is being done to it comes first.
func TestAServerThatIsStoppingMayBeKilled(t *testing.T) {
	a := model.NodeAction{Verb: model.NodeKill, Process: "db", Host: "n1"}
	p := New(Config{Kit: &Kit{Target: &model.Target{Name: "t", Processes: []model.Process{{Name: "db", Hosts: []model.NodeID{"n1"}}}}}})
	one := p.action(a)
	one.Lock()
	for stops, want := range map[bool]string{false: "something else is being done to it", true: "it does not run"} {
		one.stops.Store(stops)
		if _, err := p.ActNow(a); err == nil || err.Error() != want {
			t.Errorf("stopping %v: %v, want %q", stops, err, want)
		}
	}
	one.stops.Store(true)
	a.Verb = model.NodePause
	if _, err := p.ActNow(a); err == nil || err.Error() != "something else is being done to it" {
		t.Errorf("a pause while it stops: %v", err)
	}
}
