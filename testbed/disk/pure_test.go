package disk

import (
	"strings"
	"testing"
)

// TestKind has names of files as the systems write them.
func TestKind(t *testing.T) {
	for path, want := range map[string]string{
		"dump.rdb":      "dump.rdb",
		"temp-4711.rdb": "temp-#.rdb",
		"appendonlydir/appendonly.aof.1.incr.aof": "appendonlydir/appendonly.aof.#.incr.aof",
		"version-2/log.100000001":                 "version-#/log.#",
		"version-2/log.10000000a":                 "version-#/log.#",
		"version-2/snapshot.0":                    "version-#/snapshot.#",
		"version-2/currentEpoch.tmp":              "version-#/currentEpoch.tmp",
		"current/BP-526805057-127.0.0.1-1411980876842/current/finalized/subdir0/subdir12/blk_1073741825_1001.meta": "current/BP-#-#.#.#.#-#/current/finalized/subdir#/subdir#/blk_#_#.meta",
		"current/edits_inprogress_0000000000000000001":                                                             "current/edits_inprogress_#",
		"member/wal/0000000000000001-00000000004c4b41.wal":                                                         "member/wal/#-#.wal",
		"member/wal/0000000000000001-0000000000111111.wal":                                                         "member/wal/#-#.wal",
		"jetstream/$G/streams/S/msgs/17.blk":                                                                       "jetstream/$G/streams/S/msgs/#.blk",
		"system/local-7ad54392bcdd35a684174e047860b377/nb-1-big-Data.db":                                           "system/local-#/nb-#-big-Data.db",
		"nb-3g1m_0qzu_2pbm82qwnpbj2gwe4i-big-Index.db":                                                             "nb-#_#_#-big-Index.db",
		"550e8400-e29b-41d4-a716-446655440000.tmp":                                                                 "#.tmp",
		"msg_stores/vhosts/628WB79CIFDYO9LJI6DKMI09L/msg_store_persistent/0.rdq":                                   "msg_stores/vhosts/#/msg_store_persistent/#.rdq",
		"tmp-abcd1234":    "tmp-#",
		"nodes-7001.conf": "nodes-#.conf",
		"n1/feedface":     "n#/feedface", // a word, as far as one can see
		"sub/":            "sub/",
		"":                "",
	} {
		if got := Kind(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
		if got := Kind(want); got != want {
			t.Errorf("%s: made again it is %s", want, got)
		}
	}
}

func TestTrigger(t *testing.T) {
	e := Event{Host: "n1", Process: "redis", Thread: "bio_aof", Op: OpSync, Kind: "appendonlydir/appendonly.aof.#.incr.aof"}
	moved := Event{Host: "n1", Process: "redis", Thread: "redis-server", Op: OpRename, Kind: "temp-#.rdb", ToKind: "dump.rdb"}
	away := Event{Op: OpRename, Kind: "a", Path: "/d/a", To: "/elsewhere"}
	for _, c := range []struct {
		t    Trigger
		e    Event
		want bool
	}{
		{Trigger{}, e, true},
		{Trigger{Op: OpSync}, e, true},
		{Trigger{Op: OpWrite}, e, false},
		{Trigger{Path: "**/*.aof"}, e, true},
		{Trigger{Path: "*.aof"}, e, false},
		{Trigger{Path: "appendonlydir/appendonly.aof.#.*.aof"}, e, true},
		{Trigger{Host: "n2"}, e, false},
		{Trigger{Host: "n1", Process: "redis"}, e, true},
		{Trigger{Process: "sentinel"}, e, false},
		{Trigger{Thread: "bio_*"}, e, true},
		{Trigger{Thread: "*_aof"}, e, true},
		{Trigger{Thread: "*o_a*f"}, e, true},
		{Trigger{Thread: "bio_aof*bio_aof"}, e, false},
		{Trigger{Thread: "bio"}, e, false},
		{Trigger{Thread: "*x*"}, e, false},
		{Trigger{Op: OpRename, Path: "dump.rdb"}, moved, true},
		{Trigger{Op: OpRename, Path: "temp-#.rdb"}, moved, true},
		{Trigger{Op: OpRename, Path: "*.aof"}, moved, false},
		{Trigger{Path: "*"}, away, true},
		{Trigger{Path: "elsewhere"}, away, false},
	} {
		if got := c.t.Matches(c.e); got != c.want {
			t.Errorf("%+v matches %s: %t", c.t, c.e, got)
		}
	}
	c := Counter{Trigger: Trigger{Op: OpSync, Nth: 2}}
	fired := ""
	for _, e := range []Event{e, moved, e, e, moved, e} {
		if c.Fires(e) {
			fired += "!"
		} else {
			fired += "."
		}
	}
	if fired != "..!..." {
		t.Errorf("it fired %s", fired)
	}
	for want, tr := range map[string]Trigger{"": {Op: OpSync, Path: "a*", Nth: 1}, "no file operation": {Op: "fsync", Nth: 1}, "is no pattern": {Path: "[", Nth: 1},
		"counts from 1": {}, "at most 15": {Thread: "PacketResponder: BP*", Nth: 1}} {
		if err := tr.Check(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", tr, err, want)
		}
	}
}
