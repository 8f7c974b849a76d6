package model

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// TestADiskFaultThatMakesNoSenseIsRefused.
func TestADiskFaultThatMakesNoSenseIsRefused(t *testing.T) {
	hosts := []NodeID{"n1", "n2"}
	write := &FileTrigger{Op: FileWrite, Path: "*.aof", Host: "n1", Process: "redis", Nth: 4}
	for _, c := range []struct {
		want string
		when Trigger
		do   Fault
	}{
		{"", Trigger{File: write}, Fault{Disk: &DiskFault{Kind: DiskEIO, Host: "n1", Process: "redis"}}},
		{"", Trigger{File: write}, Fault{Disk: &DiskFault{Kind: DiskShort, Host: "n1", Process: "redis", Bytes: 3}}},
		{"", Trigger{After: time.Second}, Fault{Disk: &DiskFault{Kind: DiskGone, Host: "n2"}}},
		{"", Trigger{}, Fault{Disk: &DiskFault{Kind: DiskCorrupt, Host: "n2", Path: "**/*.blk", Bytes: 2}}},
		{"", Trigger{File: &FileTrigger{}}, Fault{Node: &NodeFault{Verb: NodeKill, Host: "n2"}}},
		{"a step does one thing", Trigger{}, Fault{Cut: &Partition{}, Disk: &DiskFault{Kind: DiskGone, Host: "n2"}}},
		{`unknown disk fault "eoi"`, Trigger{File: write}, Fault{Disk: &DiskFault{Kind: "eoi", Host: "n1"}}},
		{"give when a file", Trigger{}, Fault{Disk: &DiskFault{Kind: DiskEIO, Host: "n1"}}},
		{"give the file of when a host", Trigger{File: &FileTrigger{Op: FileWrite}}, Fault{Disk: &DiskFault{Kind: DiskEIO, Host: "n1"}}},
		{"", Trigger{File: &FileTrigger{Op: FileWrite}}, Fault{Disk: &DiskFault{Kind: DiskShort, Host: RoleFileHost}, Roles: []string{RoleFileHost}}},
		{"", Trigger{File: write}, Fault{Disk: &DiskFault{Kind: DiskPowerCut, Host: RoleFileHost}, Roles: []string{RoleFileHost}}},
		{"add a file to when", Trigger{}, Fault{Disk: &DiskFault{Kind: DiskGone, Host: RoleFileHost}, Roles: []string{RoleFileHost}}},
		{"add a message to when", Trigger{File: write}, Fault{Disk: &DiskFault{Kind: DiskGone, Host: RoleSender}, Roles: []string{RoleSender}}},
		{"leave host and process out", Trigger{File: write}, Fault{Disk: &DiskFault{Kind: DiskENOSPC, Host: "n2", Process: "redis"}}},
		{"only a write can be short", Trigger{File: &FileTrigger{Op: FileSync, Host: "n1"}}, Fault{Disk: &DiskFault{Kind: DiskShort, Host: "n1"}}},
		{"at most 67108864 are written", Trigger{File: write}, Fault{Disk: &DiskFault{Kind: DiskShort, Host: "n1", Process: "redis", Bytes: 64<<20 + 1}}},
		{"bytes belongs to", Trigger{}, Fault{Disk: &DiskFault{Kind: DiskFull, Host: "n1", Bytes: 1}}},
		{"bytes must not", Trigger{}, Fault{Disk: &DiskFault{Kind: DiskCorrupt, Host: "n1", Bytes: -1}}},
		{"takes the whole host", Trigger{}, Fault{Disk: &DiskFault{Kind: DiskPowerCut, Host: "n1", Process: "redis"}}},
		{"path belongs to", Trigger{}, Fault{Disk: &DiskFault{Kind: DiskGone, Host: "n1", Path: "x"}}},
		{"", Trigger{}, Fault{Disk: &DiskFault{Kind: DiskTorn, Host: "n2", Path: "**/*.blk", Bytes: 2}}},
		{"torn needs the path", Trigger{}, Fault{Disk: &DiskFault{Kind: DiskTorn, Host: "n1"}}},
		{"corrupt needs the path", Trigger{}, Fault{Disk: &DiskFault{Kind: DiskCorrupt, Host: "n1", Path: "["}}},
		{`no host "n9" for the disk fault`, Trigger{}, Fault{Disk: &DiskFault{Kind: DiskGone, Host: "n9"}}},
		{"when: file: no file operation", Trigger{File: &FileTrigger{Op: "fsync"}}, Fault{Cut: &Partition{}}},
		{"at one moment", Trigger{File: write, Message: &MessageTrigger{Match: MessageMatch{Type: "A"}}}, Fault{Cut: &Partition{}}},
		{"at one moment", Trigger{File: write, Role: &RoleTrigger{Name: "leader", Changes: true}}, Fault{Cut: &Partition{}}},
		{"leave the file out", Trigger{File: write}, Fault{Message: &MessageFault{Kind: FaultLose, Match: MessageMatch{Type: "A"}}}},
	} {
		s := Step{When: c.when, Do: c.do}
		if err := s.Validate(hosts, 1); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", &s, err, c.want)
		}
	}
}

// TestWhatADiskAnswers.
func TestWhatADiskAnswers(t *testing.T) {
	write := FileOperation{Op: FileWrite, Bytes: 9}
	sync := FileOperation{Op: FileSync}
	for _, c := range []struct {
		f    DiskFault
		o    FileOperation
		want string
	}{
		{DiskFault{Kind: DiskEIO}, sync, "fails with EIO"},
		{DiskFault{Kind: DiskENOSPC}, write, "fails with ENOSPC"},
		{DiskFault{Kind: DiskShort}, write, "writes 4 bytes only"},
		{DiskFault{Kind: DiskShort, Bytes: 7}, write, "writes 7 bytes only"},
		{DiskFault{Kind: DiskShort}, FileOperation{Op: FileWrite, Bytes: 0x7ffff000}, "writes 67108864 bytes only"},
		{DiskFault{Kind: DiskFull}, write, "fails with ENOSPC"},
		{DiskFault{Kind: DiskFull}, sync, "passes"},
		{DiskFault{Kind: DiskGone}, sync, "fails with EIO"},
	} {
		if got := c.f.Answer(&c.o).String(); got != c.want {
			t.Errorf("%s: %s, want %s", c.f.Kind, got, c.want)
		}
	}
	short := DiskFault{Kind: DiskShort, Bytes: 9}
	if short.Takes(&write) || short.Takes(&sync) || !(&DiskFault{Kind: DiskShort}).Takes(&write) {
		t.Error("a write is cut short only if it offers more than is written of it")
	}
}

// TestAStepAboutFilesIsWrittenAndRead, and says in words what it does.
func TestAStepAboutFilesIsWrittenAndRead(t *testing.T) {
	s := Step{When: Trigger{File: &FileTrigger{Op: FileWrite, Path: "*.aof", Host: "n1", Process: "redis", Thread: "bio*", Nth: 4}},
		Do: Fault{Disk: &DiskFault{Kind: DiskEIO, Host: "n1", Process: "redis"}}, Until: Trigger{File: &FileTrigger{Op: FileSync}}}
	const want = "fail it with EIO of redis on n1; when write of *.aof by thread bio* by redis on n1, number 4; until sync, number 1"
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var again Step
	if err := json.Unmarshal(b, &again); err != nil || again.String() != want || s.String() != want || s.When.Timed() {
		t.Errorf("%v: %s, want %s", err, &again, want)
	}
	for _, c := range []struct {
		host    NodeID
		process string
		want    bool
	}{{"n1", "redis", true}, {"n2", "any", true}} { // until is about any
		if got := s.HoldsFiles(c.host, c.process); got != c.want {
			t.Errorf("holds %s of %s: %t", c.process, c.host, got)
		}
	}
	s.Until = Trigger{}
	if s.HoldsFiles("n1", "sentinel") || s.HoldsFiles("n2", "redis") || !s.HoldsFiles("n1", "redis") {
		t.Error("other servers than the step's are held")
	}
}
