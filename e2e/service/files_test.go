package service

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netsplit/api/wire"
	"netsplit/e2e/harness"
)

// nobody is another user of the machine.
const nobody = 65534

// asNobody runs a command as another user, and returns what it printed.
func asNobody(t *testing.T, words ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	b, err := cmd.CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrPermission) {
		t.Fatal(err)
	}
	return string(b), err
}

// secret writes a file that only its owner may read.
func secret(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret.yaml")
	if err := os.WriteFile(path, []byte("sesame: open\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestADaemonOpensNoPathOfAClient: neither one of root's files, which would be
// quoted, nor a target file of another user, whose commands would run as root.
func TestADaemonOpensNoPathOfAClient(t *testing.T) {
	harness.LeavesNothing(t)
	d := serve(t, "--runs-dir", t.TempDir())
	secret := secret(t)
	for _, target := range []string{secret, "./x", "../x", filepath.Dir(gossip(t))} {
		status, b, err := d.Try("POST", "/v1/campaigns", wire.CampaignSpec{Target: target})
		if err != nil || status != 422 || !strings.Contains(string(b), "POST /v1/targets") || strings.Contains(string(b), "sesame") {
			t.Errorf("%s: %d %s %v", target, status, b, err)
		}
	}

	own := openDir(t)
	if err := os.Chmod(own, 0o777); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(gossip(t))
	if err != nil {
		t.Fatal(err)
	}
	proof := filepath.Join(own, "was-root")
	evil := filepath.Join(own, "target.yaml")
	if err := os.WriteFile(evil, []byte(strings.Replace(string(good), "version:", "version: touch "+proof+" #", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{evil, secret} {
		body, err := json.Marshal(wire.CampaignSpec{Target: target, Strategy: "clean", Clean: 1})
		if err != nil {
			t.Fatal(err)
		}
		out, _ := asNobody(t, "curl", "-s", "-m", "20", "-w", " status %{http_code}", "-H", "Content-Type: application/json", "-d", string(body), "http://"+d.API+"/v1/campaigns")
		if !strings.Contains(out, "status 4") || strings.Contains(out, "sesame") {
			t.Errorf("nobody asks for %s: %s", target, out)
		}
	}
	var list wire.Campaigns
	if d.Call("GET", "/v1/campaigns", nil, &list); len(list.Items) != 0 {
		t.Errorf("campaigns were made: %+v", list)
	}
	if _, err := os.Stat(proof); err == nil {
		t.Error("a command of nobody's ran")
	}
}

// TestAPathOnTheCommandLineIsUploaded and the record of its run is its owner's: no
// link of it is followed for a client, a FIFO answers at once.
func TestAPathOnTheCommandLineIsUploaded(t *testing.T) {
	harness.LeavesNothing(t)
	dir := filepath.Join(t.TempDir(), "runs")
	d := serve(t, "--runs-dir", dir)
	r := harness.Run(t, "campaign", gossip(t), "--strategy", "clean", "--clean", "1", "--api", d.API)
	if r.Code != 0 {
		t.Fatal(r)
	}
	var list wire.Campaigns
	d.Call("GET", "/v1/campaigns", nil, &list)
	if len(list.Items) != 1 || !strings.HasPrefix(list.Items[0].Spec.Target, "gossip:") {
		t.Fatalf("%+v", list)
	}
	var known wire.Targets
	d.Call("GET", "/v1/targets", nil, &known)
	if last := known.Items[len(known.Items)-1]; last != (wire.Target{Name: list.Items[0].Spec.Target, Uploaded: true, Newest: true}) {
		t.Errorf("listed is %+v", last)
	}
	run := d.runs(list.Items[0].ID)[0].ID
	record := filepath.Join(dir, list.Items[0].ID, run)
	replayed := harness.Run(t, "replay", run, "-n", "1", "--api", d.API)
	if replayed.Code != 0 || !strings.Contains(replayed.Stdout, ", on "+list.Items[0].Spec.Target) {
		t.Errorf("replay: %s", replayed)
	}
	d.Call("DELETE", "/v1/targets/"+list.Items[0].Spec.Target, nil, nil)
	if gone := harness.Run(t, "replay", run, "-n", "1", "--api", d.API); gone.Code != 2 || !strings.Contains(gone.Stderr, "upload it again") {
		t.Errorf("replay of a target that was deleted: %s", gone)
	}

	for name, make := range map[string]func(path string) error{
		"events.jsonl":  func(path string) error { return os.Symlink(secret(t), path) },
		"history.jsonl": func(path string) error { return unix.Mkfifo(path, 0o600) },
	} {
		path := filepath.Join(record, name)
		if err := errors.Join(os.RemoveAll(path), make(path)); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		status, b, err := d.Try("GET", "/v1/runs/"+run+"/files/"+name, nil)
		if err != nil || status != 409 || strings.Contains(string(b), "sesame") {
			t.Errorf("%s after %v: %d %s %v", name, time.Since(began), status, b, err)
		}
	}
	if r := harness.Run(t, "judge", record); r.Code == 0 || !strings.Contains(r.Stderr, "regular") {
		t.Errorf("judged with a FIFO and a link: %s", r)
	}
}

// TestRecordsAreShutToOthers, whatever the umask: every file that a campaign leaves,
// the store and the caches of templates included.
func TestRecordsAreShutToOthers(t *testing.T) {
	harness.LeavesNothing(t)
	dir := openDir(t) // t.TempDir is shut itself
	cmd := exec.Command("sh", "-c", `umask 0; exec "$@"`, "sh", harness.Bin("netsplit"), "campaign", "testdata/setup",
		"--strategy", "clean", "--clean", "1", "--runs-dir", filepath.Join(dir, "runs"), "--progress", "plain")
	cmd.Env = append(os.Environ(), "NETSPLIT_CACHE="+filepath.Join(dir, "cache"))
	harness.StartCommand(t, cmd).Wait(t, 2*time.Minute)
	var files []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	})
	all := strings.Join(files, "\n")
	for _, want := range []string{"/netsplit.db", "/packets.pcapng", "/testbed.json", "/logs/", "/netsplit.log", "/report.html", "/manifest.json", "/hosts/n1/"} {
		if !strings.Contains(all, want) {
			t.Errorf("the campaign left no %s, %v: %s", want, err, all)
		}
	}
	out, _ := asNobody(t, append([]string{"sh", "-c", `for f; do head -c 1 "$f" >/dev/null 2>&1 && echo "read $f"; : 2>/dev/null >>"$f" && echo "written $f"; done`, "sh"}, files...)...)
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "read ") || strings.HasPrefix(line, "written ") { // else it is what sh says
			t.Errorf("nobody has %s", strings.TrimSpace(line))
		}
	}
}

// TestATargetHasTheRightsThatItAsksFor: a command of a file that asks for none does
// nothing to what is root's; asked for, it does.
func TestATargetHasTheRightsThatItAsksFor(t *testing.T) {
	harness.LeavesNothing(t)
	good, err := os.ReadFile(gossip(t))
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.MkdirTemp("", "netsplit-files-rights-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(own) })
	if err := os.Chmod(own, 0o755); err != nil { // others may pass and read, and not write
		t.Fatal(err)
	}
	proof := filepath.Join(own, "proof")
	for _, c := range []struct{ user, is string }{{"", "netsplit-target"}, {"user: root\n", "root"}} {
		file := filepath.Join(t.TempDir(), "target.yaml")
		if err := os.WriteFile(file, []byte(c.user+strings.Replace(string(good), `version: "1"`, "version: touch "+proof, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		runs := t.TempDir()
		r := harness.Run(t, "campaign", file, "--strategy", "clean", "--clean", "1", "--runs-dir", runs)
		if r.Code != 0 {
			t.Fatal(r)
		}
		if _, err := os.Stat(proof); (err == nil) != (c.is == "root") {
			t.Errorf("as %s its command wrote where only root may: %v", c.is, err)
		}
		found, err := filepath.Glob(filepath.Join(runs, "*", "*", "processes.jsonl"))
		if err != nil || len(found) != 1 {
			t.Fatal(found, err)
		}
		b, err := os.ReadFile(found[0])
		if err != nil || strings.Count(string(b), "\n") < 5 || strings.Count(string(b), `"user":"`+c.is+`"`) != strings.Count(string(b), "\n") {
			t.Errorf("the record says %s, %v, want %s", b, err, c.is)
		}
	}
}
