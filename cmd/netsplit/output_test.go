package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"netsplit/api/client"
	"netsplit/api/wire"
	"netsplit/model"
)

// TestOutputIsForPrograms: json is one document, also of an empty list and on failure;
// jsonl is a line for each element.
func TestOutputIsForPrograms(t *testing.T) {
	table := func(out io.Writer, list []model.LogFile) error {
		_, err := fmt.Fprintf(out, "%d files\n", len(list))
		return err
	}
	list := []model.LogFile{{Name: "a<b", Bytes: 1}, {Name: "c", Bytes: 2}}
	for _, c := range []struct {
		format output
		list   []model.LogFile
		want   string
	}{
		{outTable, list, "2 files\n"},
		{outJSON, nil, "[]\n"},
		{outJSON, list[:1], "[\n  {\n    \"name\": \"a<b\",\n    \"bytes\": 1\n  }\n]\n"},
		{outLines, nil, ""},
		{outLines, list, "{\"name\":\"a<b\",\"bytes\":1}\n{\"name\":\"c\",\"bytes\":2}\n"},
	} {
		var out strings.Builder
		if err := printAll(c.format, &out, c.list, table); err != nil || out.String() != c.want {
			t.Errorf("%s: %q, %v, want %q", c.format, out.String(), err, c.want)
		}
	}
	var o output
	if err := o.Set("yaml"); err == nil || !strings.Contains(err.Error(), "json") {
		t.Errorf("yaml: %v", err)
	}
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"runs", "--runs-dir", t.TempDir(), "-o", "json"}, nil, &stdout, &stderr); code != exitUsage {
		t.Errorf("status %d: %s", code, &stderr)
	}
	var p client.Problem
	if err := json.Unmarshal(stdout.Bytes(), &p); err != nil || !strings.Contains(p.Detail, "no store") || !strings.Contains(stderr.String(), "no store") {
		t.Errorf("%v: %s", err, &stdout)
	}
	stdout.Reset()
	if code := run(t.Context(), []string{"runs", "--runs-dir", t.TempDir(), "-o", "jsonl"}, nil, &stdout, &stderr); code != exitUsage || stdout.Len() > 0 {
		t.Errorf("status %d: %s", code, &stdout)
	}
}

// TestFurtherCommandsNameWhatTheyNeed: the folder of the records, or the daemon.
func TestFurtherCommandsNameWhatTheyNeed(t *testing.T) {
	rack := daemonFlags{addr: "https://rack:7070", tokenFile: "my token", fingerprint: "ab12"}
	for _, c := range []struct {
		at             place
		replay, report string
	}{
		{rack.place("my runs"), "replay r1 -n 10 --runs-dir 'my runs'", "my runs/c1/r1/report.html"},
		{rack.place(""), "replay r1 -n 10 --api https://rack:7070 --api-token-file 'my token' --api-fingerprint ab12",
			"open r1 --api https://rack:7070 --api-token-file 'my token' --api-fingerprint ab12"},
		{(&daemonFlags{}).place(""), "replay r1 -n 10", "open r1"},
	} {
		if got := c.at.replay("r1"); !strings.HasSuffix(got, " "+c.replay) {
			t.Errorf("%s, want %s", got, c.replay)
		}
		if got := c.at.report("c1", "r1"); got != c.report && !strings.HasSuffix(got, " "+c.report) {
			t.Errorf("%s, want %s", got, c.report)
		}
	}
}

// TestAListNamesTheScript of a campaign: those on one target are told apart.
func TestAListNamesTheScript(t *testing.T) {
	for want, spec := range map[string]wire.CampaignSpec{
		"cofi":               {Strategy: "cofi"},
		"scripted mine.yaml": {Strategy: "scripted", Script: &wire.ScriptFile{Name: "mine.yaml"}},
		"replays c-1-r0001":  {Strategy: "scripted", Script: &wire.ScriptFile{Name: "mine.yaml"}, Replay: "c-1-r0001"},
		"scripted":           {Strategy: "scripted"},
	} {
		if got := whatItDoes(spec); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
