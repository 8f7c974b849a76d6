package nodes

import "testing"

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
