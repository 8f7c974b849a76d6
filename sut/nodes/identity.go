package nodes

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"netsplit/model"
	"netsplit/record"
	"netsplit/record/rundir"
	"netsplit/testbed/proc"
)

// What a process runs as that asks for no user: a user that nothing else on the
// machine has. The number is in no range that Debian or systemd give away
// (Debian Policy 9.2.2).
const (
	targetUser = "netsplit-target"
	targetID   = 76653
)

// rightsOf is what r asks for or, where that is nothing, what its target does.
func rightsOf(t *model.Target, r model.Rights) model.Rights {
	if r.User == "" && len(r.Capabilities) == 0 {
		return t.Rights
	}
	return r
}

func (p *Processes) rights(name string) model.Rights {
	t := p.c.Kit.Target
	if i := slices.IndexFunc(t.Processes, func(q model.Process) bool { return q.Name == name }); i >= 0 {
		return rightsOf(t, t.Processes[i].Rights)
	}
	return t.Rights
}

// home is the environment that tells a process who it is.
func (p *Processes) home(host model.TestbedHost, r model.Rights) []string {
	if os.Geteuid() != 0 || r.User == "root" {
		return nil
	}
	name := cmp.Or(r.User, targetUser)
	return []string{"HOME=" + p.dirOf(host.Name), "USER=" + name, "LOGNAME=" + name}
}

// ids are the numbers of a user. Who is not root keeps his own.
func ids(name string) (uid, gid int, err error) {
	switch {
	case name == "root":
		return 0, 0, nil
	case os.Geteuid() != 0:
		return os.Geteuid(), os.Getegid(), nil
	case name == "":
		return targetID, targetID, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return 0, 0, fmt.Errorf("user %s of the target file: %w: name a user of this machine, or leave user out", name, err)
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	return uid, gid, errors.Join(err1, err2)
}

// confined makes a command of the target run with no more rights than it asks for.
// On a remote host it has those of the user that is logged in there.
func (p *Processes) confined(host model.TestbedHost, r model.Rights, argv []string) ([]string, error) {
	if host.Remote() {
		return argv, nil
	}
	id, err := p.identity(r)
	if err != nil {
		return nil, err
	}
	return id.Argv(p.c.Kit.expand.Netsplit, argv...), nil
}

func (p *Processes) identity(r model.Rights) (proc.Identity, error) {
	uid, gid, err := ids(r.User)
	if err != nil {
		return proc.Identity{}, err
	}
	k := p.c.Kit.expand
	id := proc.Identity{UID: uid, GID: gid, Capabilities: r.Capabilities, All: r.User == "root" && len(r.Capabilities) == 0}
	if _, err := os.Stat(p.passwdPath()); err == nil { // a version is asked for before anything is prepared
		id.Passwd = p.passwdPath()
	}
	for _, dir := range append(p.folders(), filepath.Dir(k.Netsplit)) {
		if dir != "" && dir != "." && !slices.Contains(id.Show, dir) {
			id.Show = append(id.Show, dir)
		}
	}
	return id, nil
}

// folders are those that netsplit made or was given, as far as they are known; some may be "".
func (p *Processes) folders() []string {
	k := p.c.Kit.expand
	return []string{p.work(), p.cacheDir, k.TargetDir, k.Bin, k.Lib, k.Files, k.JavaHome, p.controlDir()}
}

func (p *Processes) passwdPath() string { return filepath.Join(p.work(), ".passwd") }

func (p *Processes) controlDir() string {
	if p.control == nil {
		return ""
	}
	return p.control.dir
}

// writePasswd gives the user that processes run as a name: some ask for it.
func (p *Processes) writePasswd() error {
	b, err := os.ReadFile("/etc/passwd")
	if err != nil {
		return err
	}
	line := fmt.Sprintf("%s:x:%d:%d::%s:/bin/sh\n", targetUser, targetID, targetID, p.work())
	if len(b) > 0 && b[len(b)-1] != '\n' {
		line = "\n" + line
	}
	return rundir.WriteFileMode(p.passwdPath(), 0o644, func(w io.Writer) error {
		_, err := w.Write(append(b, line...))
		return err
	})
}

// give makes folders and files those of the user that r asks for.
func (p *Processes) give(r model.Rights, paths ...string) error {
	uid, gid, err := ids(r.User)
	if err != nil || os.Geteuid() != 0 {
		return err
	}
	for _, path := range paths {
		if err := os.Lchown(path, uid, gid); err != nil {
			return err
		}
	}
	return nil
}

func (p *Processes) keepRights(host model.TestbedHost, name string, r model.Rights) {
	if p.building {
		return
	}
	x := record.Started{Host: host.Name, Process: name, At: p.now(), User: cmp.Or(r.User, targetUser), Capabilities: append([]string{}, r.Capabilities...)}
	switch {
	case host.Remote():
		x.User, x.Capabilities = "", nil // nobody asked there
	case os.Geteuid() != 0:
		x.User, x.Capabilities = strconv.Itoa(os.Geteuid()), nil
	case r.User == "root" && len(r.Capabilities) == 0:
		x.Capabilities = []string{"all"}
	}
	p.c.Record.Append(rundir.ProcessesFile, x)
}

// denied is what programs say that lack a right.
var denied = regexp.MustCompile(`(?i)permission denied|operation not permitted|access denied|must be (run as |started as )?root|EACCES|EPERM`)

// mayLack is what to add to what a process said last, if it may have lacked a right.
func mayLack(r model.Rights, said string) string {
	if !denied.MatchString(said) || r.User == "root" && len(r.Capabilities) == 0 {
		return ""
	}
	has := "no capabilities"
	if len(r.Capabilities) > 0 {
		has = "the capabilities " + strings.Join(r.Capabilities, ", ")
	}
	return fmt.Sprintf("; it runs as user %s with %s: if it needs more, say so in the target file (user: root, or capabilities: [...])", cmp.Or(r.User, targetUser), has)
}
