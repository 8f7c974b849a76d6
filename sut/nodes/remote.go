package nodes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"netsplit/model"
	"netsplit/testbed/proc"
)

// placeLimit is how long a file may take to a remote host.
const placeLimit = 30 * time.Second

// spec is a process of the target on a host: in its directory and under its name.
// A remote host has neither our directories nor our environment: proc makes the
// one there, under the same path, and takes the other along.
func (p *Processes) spec(host model.TestbedHost, name string, env map[string]string, r model.Rights, argv []string) (proc.Spec, error) {
	argv, err := p.confined(host, r, argv)
	if err != nil {
		return proc.Spec{}, err
	}
	p.keepRights(host, name, r)
	s := proc.Spec{Host: host, Dir: p.dirOf(host.Name), Env: p.env(env), Argv: p.named(host.Name, argv)}
	if !host.Remote() {
		s.Env = append(p.home(host, r), s.Env...) // the target file's are stronger
		return s, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.placed = append(p.placed, host)
	p.sessions++
	s.Session = filepath.Join(p.work(), ".sessions", fmt.Sprintf("%s-%s-%d", host.Name, name, p.sessions))
	return s, nil
}

// place copies a file that was written here to the same path on a remote host.
func (p *Processes) place(host model.TestbedHost, path string) error {
	if !host.Remote() {
		return nil
	}
	p.mu.Lock()
	p.placed = append(p.placed, host)
	p.mu.Unlock()
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	put := host.Argv("sh", "-c", `mkdir -p "$1" && cat >"$0.$$" && chmod 755 "$0.$$" && mv -f "$0.$$" "$0"`, path, filepath.Dir(path))
	if _, err := proc.OutputFrom(context.Background(), f, put, placeLimit); err != nil {
		return fmt.Errorf("copy %s to host %s: %w", filepath.Base(path), host.Name, err)
	}
	return nil
}

func (p *Processes) clearRemote() {
	p.mu.Lock()
	placed := p.placed
	p.placed = nil
	p.mu.Unlock()
	done := map[model.NodeID]bool{}
	for _, host := range placed {
		if done[host.Name] {
			continue
		}
		done[host.Name] = true
		if _, err := proc.Output(context.Background(), host.Argv("rm", "-rf", p.work()), placeLimit); err != nil {
			p.c.Journal.Note("files of the run stay in %s on host %s: %v", p.work(), host.Name, err)
		}
	}
}
