package nodes

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"netsplit/model"
	"netsplit/sut"
	"netsplit/testbed"
)

// TestATargetSaysItsVersionOnce in a campaign: what it prints first, or the text
// itself where that is no command.
func TestATargetSaysItsVersionOnce(t *testing.T) {
	dir := t.TempDir()
	script, count := filepath.Join(dir, "version"), filepath.Join(dir, "count")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho >> "+count+"\necho server $1\necho built today\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ version, release, want string }{
		{script + " 3.10.8", "", "server 3.10.8"},
		{"3.10.8 of this house", "", "3.10.8 of this house"},
		{"false", "", ""}, // it failed, and is no text
		{"true", "", ""},  // it says nothing
		{"", "", ""},
		{script + " 3.10.8", "3.3.0", ""}, // the release says it
	} {
		kit := &Kit{expand: sut.ExpandInput{Netsplit: self}, Target: &model.Target{Rights: asRoot, Version: c.version, Release: c.release, Nodes: []model.NodeID{"n1"}}}
		for range 2 {
			p := New(Config{Journal: deaf{}, Kit: kit, Testbed: &testbed.Testbed{Testbed: model.Testbed{Hosts: []model.TestbedHost{{Name: "n1"}}}}})
			if got := p.Version(context.Background()); got != c.want {
				t.Errorf("%q of release %q: %q, want %q", c.version, c.release, got, c.want)
			}
		}
	}
	if b, _ := os.ReadFile(count); len(b) != 1 {
		t.Errorf("asked %d times", len(b))
	}
}

// deaf is a journal that keeps nothing.
type deaf struct{ Journal }

func (deaf) Note(string, ...any) {}
