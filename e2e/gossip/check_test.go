package gossip

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsplit/e2e/harness"
)

// TestCheckFindsWhatIsSpoilt: the target file is in order, and each mistake in it
// is named as what it is: a variable whose source reads a field that is not
// there, a port that nobody uses, a probe of a port that nobody listens on.
func TestCheckFindsWhatIsSpoilt(t *testing.T) {
	harness.LeavesNothing(t)
	res := harness.Run(t, "target", "check", "--run", target)
	if res.Code != 0 || strings.Contains(res.Stdout, "PROBLEM") || !strings.Contains(res.Stdout, "runs as its file says") {
		t.Errorf("the file is in order: %s", res)
	}

	b, err := os.ReadFile(target)
	if err != nil {
		t.Fatal(err)
	}
	spoilt := string(b)
	for _, c := range [][2]string{
		{"protocols:\n", "protocols:\n  - {port: 7009, transport: udp, dissector: text}\n"},
		{"variables:\n", `variables:
  - name: version
    kind: version
    max_age: 1s
    sources:
      - {type: "text *", field: no-such-field}
  - name: met
    kind: met
    max_age: 1s
    sources:
      - {probe: {tcp: "127.0.0.1:7001", send: "STATUS\n", until: '(?m)^\.$'}, regexp: '(?m)^met (?P<value>\d+)$', every: 200ms}
      - {probe: {tcp: "127.0.0.1:7009", send: "STATUS\n", until: '(?m)^\.$'}, regexp: '(?m)^met (?P<value>\d+)$', every: 200ms}
`},
	} {
		if strings.Count(spoilt, c[0]) != 1 {
			t.Fatalf("%q stands %d times in %s", c[0], strings.Count(spoilt, c[0]), target)
		}
		spoilt = strings.Replace(spoilt, c[0], c[1], 1)
	}
	file := filepath.Join(t.TempDir(), "target.yaml")
	if err := os.WriteFile(file, []byte(spoilt), 0o600); err != nil {
		t.Fatal(err)
	}
	res = harness.Run(t, "target", "check", "--run", file)
	if res.Code != 3 {
		t.Errorf("exit status %d, want 3: %s", res.Code, res)
	}
	for _, want := range []string{
		"PROBLEM: protocol text on udp port 7009: no message was seen",
		"PROBLEM: variable version was never observed",
		"PROBLEM: variable met, source 2, on n1: the probe never answered",
		"PROBLEM: variable met, source 2, on n2: the probe never answered",
		"PROBLEM: variable met, source 2, on n3: the probe never answered",
	} {
		if !strings.Contains(res.Stdout, want) {
			t.Errorf("not said: %s\n%s", want, res)
		}
	}
	if strings.Contains(res.Stdout, "PROBLEM: variable status") || strings.Contains(res.Stdout, "PROBLEM: variable met, source 1") {
		t.Errorf("what is in order is called wrong: %s", res)
	}
	if i := strings.Index(res.Stderr, "the record of the run is "); i >= 0 { // it is kept for the reader
		run := strings.Fields(res.Stderr[i+len("the record of the run is "):])[0]
		if err := os.RemoveAll(filepath.Dir(filepath.Dir(run))); err != nil {
			t.Error(err)
		}
	}
}
