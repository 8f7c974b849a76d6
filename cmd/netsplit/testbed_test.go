package main

import (
	"bytes"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"netsplit/model"
	"netsplit/testbed/config"
	"netsplit/testbed/learn"
	"netsplit/testbed/learn/sketch"
)

// TestLearnRefusesAtOnce what cannot end well: nobody is to listen for it.
func TestLearnRefusesAtOnce(t *testing.T) {
	dir := t.TempDir()
	there := filepath.Join(dir, "there.yaml")
	if err := os.WriteFile(there, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"-o", filepath.Join(dir, "none", "rack.yaml")}, "no such file or directory: make its folder first"},
		{[]string{"-o", filepath.Join(there, "rack.yaml")}, "not a directory"},
		{[]string{"-o", filepath.Join(dir, strings.Repeat("x", 300))}, "file name too long"},
		{[]string{"-o", there}, "exists: move it away"},
		{[]string{"-o", dir}, "exists: move it away"},
		{[]string{"--exec", `ssh "root`}, "Unterminated double-quoted string"},
		{[]string{"--exec", "ssh {{.Adress}}"}, "known are .Name, .IP"},
		{[]string{"--name", ""}, "--name is empty"},
		{[]string{"--for", "0s"}, "--for 0s: write a time greater than 0"},
	} {
		code, _, errs := cli(t, append([]string{"testbed", "learn", "--openflow", "127.0.0.1:0", "--for", "100ms"}, c.args...)...)
		if code != exitUsage || !strings.Contains(errs, c.says) || strings.Contains(errs, "listening") {
			t.Errorf("%q: status %d, %s; want %s", c.args, code, errs, c.says)
		}
	}
	// What can be made is not, before there is something to write.
	file := filepath.Join(dir, "rack.yaml")
	if code, _, errs := cli(t, "testbed", "learn", "--openflow", "127.0.0.1:0", "--for", "100ms", "-o", file); code != exitFailed || !strings.Contains(errs, "no switch connected") {
		t.Errorf("status %d: %s", code, errs)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("nobody reads") }

// TestWhatWasLearnedIsNotLost where it cannot be written: it is printed, and the status
// says so.
func TestWhatWasLearnedIsNotLost(t *testing.T) {
	s := sketch.New("mark")
	s.Ports(1, []sketch.Port{{Number: 1, Name: "n1", Up: true}})
	frame := make([]byte, 42) // an announcement (RFC 5227 §3) of 10.0.0.1
	copy(frame, []byte{255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1})
	copy(frame[38:], []byte{10, 0, 0, 1})
	s.Observe(sketch.At{Datapath: 1, Port: 1}, frame)
	r := learn.Result{Sketch: s, Switches: []model.DatapathID{1}}
	write := func(out string, change func(*cobra.Command)) (string, string, error) {
		var stdout, stderr bytes.Buffer
		c := &cobra.Command{}
		c.SetOut(&stdout)
		c.SetErr(&stderr)
		change(c)
		err := writeLearned(c, r, sketch.Options{Name: "rack"}, out, "tcp:127.0.0.1:6653", nil)
		return stdout.String(), stderr.String(), err
	}
	same := func(*cobra.Command) {}
	usable := func(text string) {
		t.Helper()
		if tb, err := config.Parse([]byte(text)); err != nil || len(tb.Hosts) != 1 {
			t.Errorf("%v: %s", err, text)
		}
	}
	file := filepath.Join(t.TempDir(), "rack.yaml")
	if stdout, stderr, err := write(file, same); err != nil || stdout != "" || !strings.Contains(stderr, "are in "+file) {
		t.Errorf("%v: %s%s", err, stdout, stderr)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	usable(string(text))
	var exit *exitError
	for _, gone := range []string{file, filepath.Join(t.TempDir(), "none", "rack.yaml")} {
		stdout, stderr, err := write(gone, same)
		if !errors.As(err, &exit) || exit.code != exitFailed || !strings.Contains(err.Error(), "is printed instead") || !strings.Contains(stderr, "are above") {
			t.Errorf("%s: %v: %s", gone, err, stderr)
		}
		usable(stdout)
	}
	if again, err := os.ReadFile(file); err != nil || !bytes.Equal(again, text) {
		t.Errorf("somebody's file was replaced: %v", err)
	}
	if _, _, err := write("", func(c *cobra.Command) { c.SetOut(broken{}) }); !errors.As(err, &exit) || !strings.Contains(err.Error(), "nobody reads; what was learned is\n"+string(text)) {
		t.Errorf("%v", err)
	}
}

// TestAnAddressThatIsNoneIsWrongUse, whoever is to listen there; one that is in use is
// not.
func TestAnAddressThatIsNoneIsWrongUse(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "rack.yaml")
	const rack = "name: rack\nhosts:\n  - {name: n1, datapath: 1, port: 1, mac: 02:00:00:00:00:01, ip: 10.0.0.1, exec: [env]}\n"
	if err := os.WriteFile(file, []byte(rack), 0o644); err != nil {
		t.Fatal(err)
	}
	used, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer used.Close()
	serve := []string{"serve", "--runs-dir", dir}
	for _, args := range [][]string{{"testbed", "learn", "--for", "100ms", "--openflow"}, {"doctor", "--testbed", file, "--wait", "1s", "--openflow"},
		append(serve, "--listen", "127.0.0.1:0", "--openflow"), append(serve, "--listen")} {
		for addr, want := range map[string]int{"nonsense": exitUsage, "127.0.0.1:port": exitUsage, "127.0.0.1:70000": exitUsage, "[::1:1": exitUsage, used.Addr().String(): exitFailed} {
			code, _, errs := cli(t, append(args, addr)...)
			if code != want {
				t.Errorf("%s %s: status %d, want %d: %s", args, addr, code, want, errs)
			}
			if strings.Contains(errs, "netsplit serve") != (want == exitFailed && args[0] != "serve") {
				t.Errorf("%s %s: who is in the way? %s", args, addr, errs)
			}
			if hint := "choose an address of this machine and a port"; want == exitUsage && !strings.Contains(errs, hint) {
				t.Errorf("%s %s: %s", args, addr, errs)
			}
		}
	}
	if code, _, errs := cli(t, "testbed", "learn", "--for", "100ms", "--openflow", "192.0.2.1:6653"); code != exitUsage || !strings.Contains(errs, "cannot assign") {
		t.Errorf("an address of another machine: status %d: %s", code, errs)
	}
}
