package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsplit/model"
	"netsplit/record/rundir"
)

// TestARecordIsAskedAndChecked, in each form, with the exit codes of findings and of
// mistakes.
func TestARecordIsAskedAndChecked(t *testing.T) {
	runs := t.TempDir()
	dir := filepath.Join(runs, "c-1", "c-1-r0001")
	w, err := rundir.Create(dir, model.RunMeta{Run: "c-1-r0001"})
	if err != nil {
		t.Fatal(err)
	}
	w.Append(rundir.EventsFile, model.Event{Num: 1, At: 5, Kind: model.EventStart})
	w.Append(rundir.EventsFile, model.Event{Num: 2, At: 6, Kind: model.EventNote, Note: "a,b"})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	rules := filepath.Join(runs, "rules.yaml")
	if err := os.WriteFile(rules, []byte("checks:\n  - {name: no-note, class: broken, quote: q, select: select n from event where kind = 'note'}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(runs, "x.sqlite")
	const sql = "select n, text from event order by n"
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"query", "c-1-r0001", sql}, exitPass, "n  text\n1  NULL\n2  a,b\n"},
		{[]string{"query", "c-1-r0001", sql, "--csv"}, exitPass, "n,text\n1,\n2,\"a,b\"\n"},
		{[]string{"query", "c-1-r0001", sql, "-o", "json"}, exitPass, "[\n  {\n    \"n\": 1,\n    \"text\": null\n  },"},
		{[]string{"query", "c-1-r0001", "--db", file}, exitPass, ""},
		{[]string{"query", "c-1-r0001", "--db", file}, exitUsage, "exists already"},
		{[]string{"query", "c-1-r0001", "delete from event"}, exitUsage, "it may only read"},
		{[]string{"query", "c-1-r0001"}, exitUsage, "give a query or --db"},
		{[]string{"query", "c-1-r0001", sql, "--db", file}, exitUsage, "give a query or --db"},
		{[]string{"query", "c-9-r0001", sql}, exitFailed, "no record of run"},
		{[]string{"check", "c-1-r0001", "--relations", rules}, exitFindings, "no-note (broken, " + rules + ":2): violated\n  violation at 0s, e2: n=2 [e2]\n  promised: q\n1 checks: 1 violated, 0 warned, 0 held, 0 not checked, 0 unknown\n"},
		{[]string{"check", "c-1-r0001", "--relations", rules + "x"}, exitUsage, "no such file"},
		{[]string{"check", "c-1-r0001", "--relations", filepath.Join(dir, rundir.MetaFile)}, exitUsage, "unknown key"},
	} {
		code, out, errs := cli(t, append(c.args, "--runs-dir", runs)...)
		if code != c.code || !strings.Contains(out+errs, c.want) {
			t.Errorf("%v: status %d: %s%s; want %d: %s", c.args, code, out, errs, c.code, c.want)
		}
	}
	if st, err := os.Stat(file); err != nil || st.Size() == 0 {
		t.Errorf("%v, %v", st, err)
	}
}
