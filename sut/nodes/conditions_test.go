package nodes

import (
	"context"
	"regexp"
	"testing"

	"netsplit/model"
)

// TestAgreement: hosts must say the same, but for those whose answer matches
// without saying it.
func TestAgreement(t *testing.T) {
	re := regexp.MustCompile(`^.*gone|leader=(?P<same>\w+)`)
	for _, c := range []struct {
		answers []string
		why     string
	}{
		{[]string{"leader=a", "leader=a", "leader=a"}, ""},
		{[]string{"leader=a", "leader=b"}, `: n1 says "a" and n2 says "b"`},
		{[]string{"leader=b gone", "leader=a", "leader=a"}, ""},
		{[]string{"gone", "leader=a", "leader=b"}, `: n2 says "a" and n3 says "b"`},
		// What is shown of an answer over HTTP is what should have matched, not its header.
		{[]string{"HTTP/1.1 200 OK\r\nCache-Control: no-cache\r\nContent-Security-Policy: script-src 'self' 'unsafe-eval' 'unsafe-inline'; object-src 'self'\r\n\r\n{\"who\":\"b\"}"},
			` on n1: the answer does not match ^.*gone|leader=(?P<same>\w+): "HTTP/1.1 200 OK … {\"who\":\"b\"}"`},
		{[]string{"leader=a", "who?"}, ` on n2: the answer does not match ^.*gone|leader=(?P<same>\w+): "who?"`},
	} {
		var one agreement
		why := ""
		for i, answer := range c.answers {
			if why == "" {
				why = one.add(re, []model.NodeID{"n1", "n2", "n3"}[i], answer)
			}
		}
		if why != c.why {
			t.Errorf("%q: %q, want %q", c.answers, why, c.why)
		}
	}
}

// TestConditionsOfQuiesceAreKnownByName, as those of stable are.
func TestConditionsOfQuiesceAreKnownByName(t *testing.T) {
	p := &Processes{plans: map[model.NodeID]*model.Target{"n1": {Stable: []model.Condition{{Name: "up"}},
		Quiesce: &model.Quiesce{Until: []model.Condition{{Name: "idle", Match: "0 jobs"}}}}, "n2": {}}}
	if c, ok := p.condition("n1", "idle"); !ok || c.Match != "0 jobs" {
		t.Errorf("%+v, %v", c, ok)
	}
	if _, ok := p.condition("n1", "up"); !ok {
		t.Error("that of stable is not found")
	}
	if _, ok := p.condition("n2", "idle"); ok {
		t.Error("found where it is not asked")
	}
	if err := p.AskQuiesce(context.Background(), "n2"); err != nil {
		t.Errorf("asked where nothing is to be asked: %v", err)
	}
}
