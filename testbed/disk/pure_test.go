package disk

import "testing"

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
		"_js_/S-R3F-9MnL68rO/msgs/1.blk":                                                                           "_js_/S-R#F-#/msgs/#.blk", // names to base 62
		"_js_/S-R3F-hdSPCdbl/msgs/1.blk":                                                                           "_js_/S-R#F-#/msgs/#.blk",
		"_js_/C-R3F-qWeRtYuI/snap.1.2.tmp":                                                                         "_js_/C-R#F-#/snap.#.#.tmp",
		"CommitLog-7-1764.log":                                                                                     "CommitLog-#-#.log", // names that mean something
		"RocksDBLog/HDFSBlockIndex1/fileID":                                                                        "RocksDBLog/HDFSBlockIndex#/fileID",
		"tmp-abcd1234":                                                                                             "tmp-#",
		"nodes-7001.conf":                                                                                          "nodes-#.conf",
		"n1/feedface":                                                                                              "n#/feedface", // a word, as far as one can see
		"sub/":                                                                                                     "sub/",
		"":                                                                                                         "",
	} {
		if got := Kind(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
		if got := Kind(want); got != want {
			t.Errorf("%s: made again it is %s", want, got)
		}
	}
}
