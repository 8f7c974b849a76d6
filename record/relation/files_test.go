package relation_test

import (
	"testing"

	"netsplit/model"
)

// TestFileOperationsHaveTheirFate: what was decided about each, who was killed before it, and
// what a power cut took.
func TestFileOperationsHaveTheirFate(t *testing.T) {
	op := func(host model.NodeID, op model.FileOp, path string) model.Event {
		return model.Event{Kind: model.EventFile, File: &model.FileOperation{Host: host, Process: "db", Thread: "bio", Op: op, Path: path, Kind: path, Bytes: 9}}
	}
	moved := op("n1", model.FileRename, "a.tmp")
	moved.File.To, moved.File.Thread = "a", ""
	r := run{
		meta: model.RunMeta{Scenario: model.Scenario{Steps: []model.Step{{Do: model.Fault{Disk: &model.DiskFault{Kind: model.DiskEIO, Host: "n1"}}},
			{Do: model.Fault{Node: &model.NodeFault{Verb: model.NodeKill, Host: "n2"}}}, {Do: model.Fault{Disk: &model.DiskFault{Kind: model.DiskPowerCut, Host: "n2"}}}}}},
		events: []model.Event{
			{Kind: model.EventWorkload}, op("n1", model.FileWrite, "a"), op("n1", model.FileWrite, "a"), op("n1", model.FileSync, "a"), moved, // 1 to 5
			op("n2", model.FileWrite, "a"), op("n1", model.FileUnlink, "a"), op("n2", model.FileCreate, "b"), // 6 to 8
			{Kind: model.EventDisk, Disk: &model.DiskDamage{Kind: model.DiskPowerCut, Host: "n2", Step: 3, Files: []model.FileDamage{{Path: "a", Size: 9, Kept: 4, Restored: 2}}}}, // 9
		},
		decisions: []model.Decision{
			{Event: 3, Step: 1, Disk: model.DiskShort, File: &model.FileAnswer{Written: 4}}, {Event: 4, Step: 1, File: &model.FileAnswer{Errno: "EIO"}},
			{Event: 6, Step: 2, Verb: model.NodeKill}, {Event: 7, Step: 2, Verb: model.NodeKill}, {Event: 8, Step: 3, Disk: model.DiskPowerCut, Verb: model.NodeKill},
		},
	}
	const want = `2 n1 db bio write a - 9 pass -
3 n1 db bio write a - 9 short 4
4 n1 db bio sync a - 9 fail EIO
5 n1 db - rename a.tmp a 9 pass -
6 n2 db bio write a - 9 kill -
7 n1 db bio unlink a - 9 pass -
8 n2 db bio create b - 9 kill -
9 n2 - - power-cut a - 7 pass -
`
	if got := ask(t, r.write(t), "select n, host, process, thread, op, path, new_path, bytes, fate, error from file order by n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
