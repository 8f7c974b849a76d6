package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsplit/model"
)

// setups writes clean runs of two releases, and of two values of a setting: those of c-4 are the
// newest.
func setups(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	day := func(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }
	one, two := map[string]string{"acks": "one"}, map[string]string{"acks": "all"}
	recordPair(t, root, pairRun{campaign: "c-1", n: 1, release: "1.0", args: one, started: day(1), late: true})
	recordPair(t, root, pairRun{campaign: "c-2", n: 1, release: "2.0", args: two, started: day(2), late: true})
	recordPair(t, root, pairRun{campaign: "c-3", n: 1, release: "2.0", args: one, started: day(3)})
	recordPair(t, root, pairRun{campaign: "c-4", n: 1, release: "2.0", args: one, started: day(5)})
	recordPair(t, root, pairRun{campaign: "c-5", n: 1, release: "1.0", args: one, started: day(4)})
	return root
}

// TestPointsOfOneSetup: runs of another release, or with other settings, have other points. They
// are not read, and the list says so.
func TestPointsOfOneSetup(t *testing.T) {
	root := setups(t)
	for args, c := range map[string]struct {
		want  []string
		lacks string
	}{
		"pair": {[]string{"pair 2.0: read from 2 clean runs",
			"left out, made otherwise: c-1: 1 clean run of release 1.0, not of release 2.0\n",
			"c-2: 1 clean run with acks=all, not with acks=one", "c-5: 1 clean run of release 1.0, not"}, `"late"`},
		"pair@1.0":            {[]string{"pair 1.0: read from 2 clean runs", `1/2   crash before send n2>c1 "late"`, "c-3: 1 clean run of release 2.0, not 1.0"}, "c-5:"},
		"pair --set acks=all": {[]string{"pair 2.0: read from 1 clean runs", `"late"`, `c-4: 1 clean run with acks=one, not "all"`}, "c-2:"},
		"c-2":                 {[]string{"pair 2.0: read from 1 clean runs", `"late"`}, "left out"},
		"pair@3.0":            {[]string{"no clean run with release 3.0", "c-1: 1 clean run of release 1.0, not 3.0"}, "FAULT"},
		"pair --set acks=two": {[]string{"no clean run with acks=two", `c-2: 1 clean run with acks=all, not "two"`}, "FAULT"},
		"pair --set mode=x":   {[]string{`c-1: 1 clean run with no setting mode, not "x"`}, "FAULT"},
	} {
		code, out, errs := cli(t, append([]string{"points", "--runs-dir", root, "--fault", "crash"}, strings.Fields(args)...)...)
		if failed := c.lacks == "FAULT"; failed != (code != 0) {
			t.Errorf("points %s: status %d", args, code)
		}
		for _, want := range c.want {
			if !strings.Contains(out+errs, want) {
				t.Errorf("points %s lacks %q:\n%s%s", args, want, out, errs)
			}
		}
		if strings.Contains(out, c.lacks) {
			t.Errorf("points %s has %q:\n%s", args, c.lacks, out)
		}
	}
}

// TestPointsOfAnUnknownRelease: such runs may be of any release.
func TestPointsOfAnUnknownRelease(t *testing.T) {
	root := setups(t)
	args := map[string]string{"acks": "one"}
	recordPair(t, root, pairRun{campaign: "c-6", n: 1, args: args, started: time.Date(2026, 1, 9, 0, 0, 0, 0, time.UTC)})
	for asked, want := range map[string]string{"pair": "pair 2.0: read from 3 clean runs", "pair@2.0": "pair 2.0: read from 2 clean runs", "c-6": "read from 1 clean runs"} {
		code, out, errs := cli(t, "points", "--runs-dir", root, asked)
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("%s: status %d, want %q:\n%s%s", asked, code, want, out, errs)
		}
	}
}

// TestAPointOfAnotherRelease that a user asks for, by its type or by a fault's id, is in the
// campaign that the list names.
func TestAPointOfAnotherRelease(t *testing.T) {
	root := setups(t)
	late := model.PointFault{Kind: model.PointCrash, Place: model.PlaceBefore, Point: model.Point{Side: model.SideSend, Node: "n2", Peer: "c1", Type: "late", Port: 7000, After: "copy", Nth: 1}}
	id := string(late.ID(model.PointKeys()))
	for only, want := range map[string]string{
		"type=late": "--only asks for no fault of these runs, but of a campaign that was left out: c-1, 2 faults",
		"id=" + id:  "left out: c-2, 1 fault\n",
		"id=f-none": "no point of a node was seen",
		"type=copy": "pair 2.0: read from",
	} {
		code, out, errs := cli(t, "points", "pair", "--runs-dir", root, "--fault", "crash", "--only", only)
		if code != 0 || !strings.Contains(out, want) || (only == "type=copy" || only == "id=f-none") == strings.Contains(out, "--only asks for") {
			t.Errorf("%s: status %d, want %q:\n%s%s", only, code, want, out, errs)
		}
	}
	if code, out, _ := cli(t, "points", "c-1", "--runs-dir", root, "--only", "id="+id); code != 0 || !strings.Contains(out, id) || strings.Count(out, "f-") != 1 {
		t.Errorf("status %d, want %s alone:\n%s", code, id, out)
	}
}

// TestPolicyTryShowsSequencesOfTwo that follow from recorded runs of single faults, and says
// if there is none.
func TestPolicyTryShowsSequencesOfTwo(t *testing.T) {
	root := cleanRuns(t)
	file := filepath.Join(root, "p.yaml")
	try := func(policy string, args ...string) string {
		t.Helper()
		if err := os.WriteFile(file, []byte("policy: "+policy+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		code, out, errs := cli(t, append([]string{"policy", "try", file, "--on", "c-1", "--runs-dir", root, "--fault", "lose"}, args...)...)
		if code != 0 {
			t.Errorf("status %d: %s", code, errs)
		}
		return out
	}
	has := func(out string, want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("lacks %q:\n%s", w, out)
			}
		}
	}
	const all = "[during-recovery]"
	has(try(all, "--depth", "2"), "2 of 2 single faults would be run", "no sequence of two is known: of the 2 single faults that would be run, no recorded run had one occur")
	recordPair(t, root, pairRun{campaign: "c-1", n: 3, missed: true})
	has(try(all, "--depth", "2"), "no sequence of two is known")
	// Another release lost it, too.
	recordPair(t, root, pairRun{campaign: "c-2", n: 1, release: "2.0", lost: true})
	has(try(all, "--depth", "2"), "no sequence of two is known")

	recordPair(t, root, pairRun{campaign: "c-1", n: 4, lost: true})
	first := string(lostCopy().ID(model.PointKeys()))
	out := try(all, "--depth", "2")
	has(out, "run  "+first+" f-", `lose before send n1>n2 "copy" :7000 after "write", number 1, then lose before send n2>n1 "copied"`,
		"2 of 2 sequences of two would be run; they follow from recorded runs of 1 of the 2 single faults")
	if out := try(all); strings.Contains(out, "then lose") || strings.Contains(out, "sequence of two") {
		t.Errorf("not asked for:\n%s", out)
	}
	// Policies are asked about both levels.
	out = try("[{same-last: [side]}]", "--depth", "2")
	has(out, "1 of 2 single faults would be run")
	out = try(`[{only: {type: [copy, late]}}]`, "--depth", "2")
	has(out, "only: type \"copied\" is not asked for", "1 of 2 sequences of two would be run")
	// The fault whose run is recorded is not run.
	has(try("[{only: {type: [late]}}]", "--depth", "2"), "1 of 2 single faults would be run", "of the 1 single faults that would be run, no recorded run")
	if code, _, errs := cli(t, "policy", "try", file, "--on", "c-1", "--runs-dir", root, "--depth", "3"); code != exitUsage || !strings.Contains(errs, "--depth 3: single faults (1) and sequences of two (2) are shown") {
		t.Errorf("status %d: %s", code, errs)
	}
}
