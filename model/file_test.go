package model

import (
	"strings"
	"testing"
)

// TestAFileTriggerMatches has names of files and threads as the systems have them.
func TestAFileTriggerMatches(t *testing.T) {
	e := FileOperation{Host: "n1", Process: "redis", Thread: "bio_aof", Op: FileSync, Kind: "appendonlydir/appendonly.aof.#.incr.aof"}
	moved := FileOperation{Host: "n1", Process: "redis", Thread: "redis-server", Op: FileRename, Kind: "temp-#.rdb", ToKind: "dump.rdb"}
	away := FileOperation{Op: FileRename, Kind: "a", Path: "/d/a", To: "/elsewhere"}
	for _, c := range []struct {
		t    FileTrigger
		e    FileOperation
		want bool
	}{
		{FileTrigger{}, e, true},
		{FileTrigger{Op: FileSync}, e, true},
		{FileTrigger{Op: FileWrite}, e, false},
		{FileTrigger{Path: "**/*.aof"}, e, true},
		{FileTrigger{Path: "*.aof"}, e, false},
		{FileTrigger{Path: "appendonlydir/appendonly.aof.#.*.aof"}, e, true},
		{FileTrigger{Host: "n2"}, e, false},
		{FileTrigger{Host: "n1", Process: "redis"}, e, true},
		{FileTrigger{Process: "sentinel"}, e, false},
		{FileTrigger{Thread: "bio_*"}, e, true},
		{FileTrigger{Thread: "*_aof"}, e, true},
		{FileTrigger{Thread: "*o_a*f"}, e, true},
		{FileTrigger{Thread: "bio_aof*bio_aof"}, e, false},
		{FileTrigger{Thread: "bio"}, e, false},
		{FileTrigger{Thread: "*x*"}, e, false},
		{FileTrigger{Op: FileRename, Path: "dump.rdb"}, moved, true},
		{FileTrigger{Op: FileRename, Path: "temp-#.rdb"}, moved, true},
		{FileTrigger{Op: FileRename, Path: "*.aof"}, moved, false},
		{FileTrigger{Path: "*"}, away, true},
		{FileTrigger{Path: "elsewhere"}, away, false},
	} {
		if got := c.t.Matches(&c.e); got != c.want {
			t.Errorf("%s matches %s: %t", &c.t, c.e, got)
		}
	}
	for want, tr := range map[string]FileTrigger{"": {Op: FileSync, Path: "a*", Host: "n1", Nth: 1}, "no file operation": {Op: "fsync"}, "is no pattern": {Path: "["},
		"must not be negative": {Nth: -1}, "15 bytes": {Thread: "PacketResponder: BP*"}, "no host": {Host: "n9"}} {
		if err := tr.Validate([]NodeID{"n1", "n2"}); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", tr, err, want)
		}
	}
}
