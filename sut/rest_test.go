package sut

import (
	"strings"
	"testing"
)

// TestQuiesceIsOfEachHost: a host asks what it is to ask, and looks at its own conditions.
func TestQuiesceIsOfEachHost(t *testing.T) {
	base, err := Parse("t.yaml", []byte(strings.Replace(small, "timing:", `quiesce:
  ask: {command: [report, "{{.Host}}"]}
  hosts: [n2]
  until: [{name: idle, hosts: [n1], probe: {tcp: "{{.IP}}:7"}, match: "idle {{.Host}}"}]
  limit: 3s
timing:`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	n1, err := Expand(base, input("n1"))
	if err != nil {
		t.Fatal(err)
	}
	if q := n1.Quiesce; q.Ask != nil || len(q.Until) != 1 || q.Until[0].Probe.TCP != "10.0.0.1:7" || q.Until[0].Match != "idle n1" {
		t.Errorf("n1: %+v", q)
	}
	n2, err := Expand(base, input("n2"))
	if err != nil {
		t.Fatal(err)
	}
	if q := n2.Quiesce; q.Ask == nil || q.Ask.Command[1] != "n2" || len(q.Until) != 0 {
		t.Errorf("n2: %+v", q)
	}
	if base.Quiesce.Ask.Command[1] != "{{.Host}}" || len(base.Quiesce.Until) != 1 {
		t.Errorf("Expand changed its input: %+v", base.Quiesce)
	}
}
