package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"netsplit/model"
)

// fenced is a line of the log of fencing.
type fenced struct {
	Host  model.NodeID `json:"host"`
	State string       `json:"state"` // what the NameNode said of itself, or why it did not
	How   string       `json:"how"`
	Time  time.Time    `json:"time"`
}

const fenceLog = "fence.jsonl"

// pidFile holds the process id of a server, see java.sh.
func (c *cluster) pidFile(process string, host model.NodeID) string {
	return filepath.Join(c.work, fmt.Sprintf("%s-%s.pid", process, host))
}

// fence kills the NameNode of a host with SIGKILL, by a way that no partition
// cuts, as a power switch would. Fencing is for a NameNode that could not be
// made standby (haadmin -failover: "an attempt will be made to gracefully
// transition it to the Standby state. If this fails, the fencing methods ..."):
// then its end is expected, and entered as one that the administrator caused.
// One that was made standby, and says so, has given up what fencing is to take
// from it; killing it is not expected, and shows as a server that died.
func (c *cluster) fence(ctx context.Context, host model.NodeID) error {
	f := fenced{Host: host, How: "expected", Time: time.Now()}
	s, err := c.state(ctx, host, time.Second)
	if err != nil {
		f.State = "no answer: " + err.Error()
	} else {
		f.State = s
	}
	said, err := os.ReadFile(filepath.Join(c.work, toolLog))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("fence %s: %w", host, err)
	}
	if failed := notMadeStandby(said, host); failed != "" {
		f.State += "; " + failed
		s = ""
	}
	if s != "standby" {
		b, err := exec.CommandContext(ctx, c.netsplit, "node", "kill", "namenode", string(host)).CombinedOutput()
		if err != nil && !bytes.Contains(b, []byte("does not run")) {
			return fmt.Errorf("fence %s: %s", host, bytes.TrimSpace(b))
		}
	} else {
		f.How = "killed though standby"
		b, err := os.ReadFile(c.pidFile("namenode", host))
		if err != nil {
			return fmt.Errorf("fence %s: %w", host, err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
		if err != nil || pid < 2 {
			return fmt.Errorf("fence %s: %q is no process id", host, b)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("fence %s: %w", host, err)
		}
	}
	b, err := json.Marshal(f)
	if err != nil {
		return err
	}
	w, err := os.OpenFile(filepath.Join(c.work, fenceLog), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return errors.Join(err, w.Close())
}

// abandoned is what the tool says (FailoverController) before it fences: of the
// NameNode that did not become standby, or that did not become active and must
// be standby again.
var abandoned = regexp.MustCompile(`Unable to (?:gracefully )?make NameNode at ([^/\s]+)/\S+ (?:standby|active)\b`)

// due is the host whose NameNode the running failover has to fence, by what
// its tool said last; "" if there is none. What the tool passes to a fencing
// command does not tell from HDFS-15404 on.
func (c *cluster) due() (model.NodeID, error) {
	said, err := os.ReadFile(filepath.Join(c.work, toolLog))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("who is to be fenced: %w", err)
	}
	all := abandoned.FindAllSubmatch(said, -1)
	if len(all) == 0 {
		return "", nil
	}
	return model.NodeID(all[len(all)-1][1]), nil
}

// notMadeStandby is the line in which the running tool (FailoverController,
// tryGracefulFence) says that it could not make a host's NameNode standby; ""
// if it did not say so.
func notMadeStandby(said []byte, host model.NodeID) string {
	for line := range bytes.Lines(said) {
		if _, what, ok := bytes.Cut(line, []byte("Unable to gracefully make NameNode at "+string(host)+"/")); ok {
			return "unable to gracefully make it standby: " + string(bytes.TrimSpace(what))
		}
	}
	return ""
}

// fencedHosts are those whose NameNode was fenced since it was last asked;
// each is entered in the history.
func (a *admin) fencedHosts() []model.NodeID {
	path := filepath.Join(a.work, fenceLog)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "read what was fenced:", err)
		return nil
	}
	_ = os.Remove(path)
	var out []model.NodeID
	for line := range bytes.Lines(b) {
		var f fenced
		if json.Unmarshal(line, &f) != nil {
			continue
		}
		out = append(out, f.Host)
		a.out.Add(model.Operation{Process: adminID, Type: model.OpInfo, F: "fenced", Node: f.Host, Value: f.How + ", state: " + f.State})
	}
	return out
}
