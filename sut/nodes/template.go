package nodes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"netsplit/model"
	"netsplit/record"
	"netsplit/record/rundir"
	"netsplit/sut"
)

// A template is what a cluster that settled once and was stopped in order left
// on its hosts. Runs start from copies of it:
//
//	<cache>/template-<key>/
//	    hosts/<host>/…   the files of model.TemplateSetting.Keep
//	    cache/           .Cache of the target file
//	    manifest.json    SHA-256 of each host's files, and of each file of cache
//
// The key is a digest of the target as every host sees it and of the scripts it
// names, so a template never serves another release, setting or address than it
// was made with. It is made
// from a cluster that met neither fault nor workload, and every copy is
// checked against the manifest: what a run starts from is clean. One that names
// the folder it was made in is none (templatepaths.go).
type template struct {
	dir string
	manifest
}

// manifest is the content of manifest.json.
type manifest struct {
	Hosts map[model.NodeID]string `json:"hosts"` // digest of names and contents
	Cache map[string]string       `json:"cache"` // by name, as of digests
}

func (t *template) cache() string { return filepath.Join(t.dir, "cache") }

const (
	manifestFile = "manifest.json"
	// quitLimit is how long servers may take to stop in order.
	quitLimit = 2 * time.Minute
	// unmade ends the name of a template's folder while it is made.
	unmade = ".new"
	// templatesKept per target and release; older ones are removed.
	templatesKept = 12
	// templateLayout is part of the key: another layout, another folder.
	templateLayout = 5
)

// wanted says whether the target asks for a template. One cannot be made of
// servers that hooks run, whose files are elsewhere.
func (p *Processes) wanted() bool {
	return !p.hooked() && (p.c.Kit.Target.Template.Warm || len(p.c.Kit.Target.Template.Keep) > 0)
}

// MakeTemplate makes the template of this target on these hosts, unless there is one that
// has not changed since it was made. To make it, it starts the cluster, waits until it is
// stable, stops it in order, and copies it. If two processes need the same template, the
// second waits. If it cannot be made, this run and the later ones of the campaign start from
// nothing.
func (p *Processes) MakeTemplate(ctx context.Context) error {
	if !p.wanted() {
		return nil
	}
	key, err := p.templateKey(p.Version(ctx))
	if err != nil {
		return err
	}
	t := &template{dir: filepath.Join(p.c.Kit.cache, "template-"+key)}
	lock, err := p.waitFor(ctx, t)
	if lock != nil {
		defer lock.Close() // and with it the lock
		err = p.thisOr(ctx, t)
	}
	if err != nil && ctx.Err() != nil {
		return err
	}
	if err != nil {
		p.c.Kit.templates.giveUp(err)
		p.c.Journal.Note(record.NoTemplate+"%v", err)
	}
	return nil
}

// waitFor takes a template for itself as soon as nobody else has it.
func (p *Processes) waitFor(ctx context.Context, t *template) (*os.File, error) {
	if err := os.MkdirAll(p.c.Kit.cache, 0o755); err != nil {
		return nil, fmt.Errorf("folder of the templates: %w", err)
	}
	for {
		lock, err := t.lock()
		if err != nil {
			return nil, fmt.Errorf("lock of the template: %w", err)
		}
		if lock != nil {
			return lock, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for another process that makes template %s: %w", t.dir, context.Cause(ctx))
		case <-time.After(settleEvery):
		}
	}
}

// thisOr takes the template t, or makes it where there is none that is whole.
func (p *Processes) thisOr(ctx context.Context, t *template) error {
	var changed []string
	if t.load() == nil {
		if changed = t.changed(p.c.Kit.templates); len(changed) == 0 {
			p.template = t
			now := time.Now()
			_ = os.Chtimes(t.dir, now, now) // used: the last to be removed
			return nil
		}
	}
	if err := p.c.Kit.templates.givenUp(); err != nil {
		return err
	}
	if len(changed) > 0 {
		what := fmt.Sprintf("in %s, which all runs share, since it was made: %s", t.cache(), joined(changed))
		if !p.c.Kit.templates.again(t.dir) {
			return fmt.Errorf("it was already made again in this campaign; something writes there although .Building is false: %s", what)
		}
		p.c.Journal.Note("the template is made again: %s", what)
		p.c.Kit.templates.say("the template was damaged and is made again: " + what)
	}
	if err := p.build(ctx, t); err != nil {
		return fmt.Errorf("make a template of the settled cluster: %w", err)
	}
	p.template = t
	p.forgetOld()
	return nil
}

// lock takes the template for itself: the file to close, or nil if somebody
// else has it.
func (t *template) lock() (*os.File, error) {
	path := t.dir + ".lock"
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		// forgetOld may have removed it since it was opened: somebody else may
		// have a new one then.
		mine, merr := f.Stat()
		there, terr := os.Stat(path)
		if merr == nil && terr == nil && os.SameFile(mine, there) {
			return f, nil
		}
	}
	f.Close()
	if err != nil && !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
		return nil, err
	}
	return nil, nil
}

// templateKey is a digest of everything that the template depends on; version is
// what the target says of its own.
func (p *Processes) templateKey(version string) (string, error) {
	ips := map[model.NodeID]netip.Addr{}
	for _, h := range p.c.Testbed.Testbed.Hosts {
		ips[h.Name] = h.IP
	}
	h := sha256.New()
	fmt.Fprintf(h, "layout %d version %q\n", templateLayout, version)
	for _, host := range p.Hosts() {
		for _, building := range []bool{true, false} { // it is made with the one and served with the other
			in := p.c.Kit.expand
			in.Host, in.Dir, in.Work, in.Cache, in.Hosts, in.Args = host, "/dir", "/work", "/cache", ips, p.c.Args
			in.RunStart, in.Building = time.Unix(0, 0), building
			t, err := sut.Expand(p.c.Kit.Target, in)
			if err != nil {
				return "", err
			}
			b, err := json.Marshal(struct {
				Processes []model.Process
				Stable    []model.Condition
				Template  model.TemplateSetting
				Release   string
				Hostnames bool
				Rights    model.Rights
			}{t.Processes, t.Stable, t.Template, t.Release, t.Hostnames, t.Rights})
			if err != nil {
				return "", err
			}
			fmt.Fprintf(h, "%s %d\n", host, len(b))
			h.Write(b)
			if err := hashMentioned(h, p.c.Kit.expand.TargetDir, b); err != nil {
				return "", err
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

// hashMentioned adds the files beside the target file that text names: if such a script
// changes, so does the template.
func hashMentioned(h hash.Hash, dir string, text []byte) error {
	if dir == "" {
		return nil
	}
	var paths []string
	for _, m := range regexp.MustCompile(regexp.QuoteMeta(dir)+`/[^\s"'\\:;,]+`).FindAllString(string(text), -1) {
		paths = append(paths, filepath.Clean(m))
	}
	files, err := beside(paths)
	if err != nil {
		return err
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return fmt.Errorf("read the files beside the target file: %w", err)
		}
		fmt.Fprintf(h, "%s %d\n", f, len(b))
		h.Write(b)
	}
	return nil
}

// build starts the cluster from nothing and keeps what it leaves.
func (p *Processes) build(ctx context.Context, t *template) (err error) {
	tmp := t.dir + unmade
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	cache := filepath.Join(tmp, "cache")
	if err := errors.Join(os.MkdirAll(cache, 0o755), os.Mkdir(filepath.Join(tmp, "hosts"), 0o700), os.Chmod(tmp, 0o711)); err != nil {
		return err // what is kept of a system is its owner's; servers reach the cache
	}
	one := New(p.c)
	one.building, one.cache = true, cache
	defer func() {
		err = errors.Join(err, one.StopAll())
		if left := p.c.Testbed.Sweep(); left != nil { // it would disturb the run
			p.c.Journal.Fail("end what the template's cluster left: %v", left)
			err = errors.Join(err, left)
		}
		if err != nil {
			os.RemoveAll(tmp)
		}
	}()
	// Twice the time: programs that write archives while they start are slow.
	if err := one.settled(ctx, 2*p.c.Kit.Target.Timing.Settle); err != nil {
		return err
	}
	if err := one.quit(quitLimit); err != nil {
		return err
	}
	if err := p.c.Testbed.Sweep(); err != nil { // what would write on
		return err
	}
	t.Hosts = map[model.NodeID]string{}
	for _, h := range p.Hosts() {
		sum, err := copyKept(one.dirOf(h), filepath.Join(tmp, "hosts", string(h)), p.c.Kit.Target.Template.Keep)
		if err != nil {
			return err
		}
		t.Hosts[h] = sum
	}
	if err := one.untied(filepath.Join(tmp, "hosts")); err != nil {
		return err
	}
	if t.Cache, err = digests(cache, nil); err != nil {
		return err
	}
	b, err := json.Marshal(t.manifest)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(tmp, manifestFile), b, 0o600); err != nil {
		return err
	}
	if err := os.RemoveAll(t.dir); err != nil {
		return err
	}
	return os.Rename(tmp, t.dir)
}

// quit stops the servers in order. What one leaves that died before, or had to
// be killed, is not clean: that is an error.
func (p *Processes) quit(limit time.Duration) error {
	died, _ := p.Exits()
	var errs []error
	for _, x := range died {
		if !x.Expected {
			errs = append(errs, fmt.Errorf("%s on %s ended with status %d by itself; its output is in %s", x.Process, x.Host, x.Status, rundir.LogsDir))
		}
	}
	p.stopServers(limit)
	all, _ := p.Exits()
	for _, x := range all {
		if x.Status == 128+int(syscall.SIGKILL) && !slices.Contains(died, x) {
			errs = append(errs, fmt.Errorf("%s on %s did not stop within %v and was killed", x.Process, x.Host, limit))
		}
	}
	return errors.Join(errs...)
}

func (t *template) load() error {
	b, err := os.ReadFile(filepath.Join(t.dir, manifestFile))
	if err != nil {
		return err
	}
	return json.Unmarshal(b, &t.manifest)
}

// fromTemplate fills the hosts' directories; it is false without a template.
func (p *Processes) fromTemplate() (bool, error) {
	if p.template == nil {
		return false, nil
	}
	for _, h := range p.Hosts() {
		sum, err := copyKept(filepath.Join(p.template.dir, "hosts", string(h)), p.dirOf(h), p.c.Kit.Target.Template.Keep)
		if err != nil {
			return false, fmt.Errorf("copy the template: %w", err)
		}
		if sum != p.template.Hosts[h] {
			_, err := p.template.discard()
			return false, errors.Join(fmt.Errorf("the template %s was changed since it was made, in hosts/%s: the next run makes it again", p.template.dir, h), err)
		}
	}
	return len(p.c.Kit.Target.Template.Keep) > 0, nil
}

// discard lets the next run make the template anew. It does nothing while another process
// has it locked: that one checks it, or makes it.
func (t *template) discard() (done bool, err error) {
	lock, err := t.lock()
	if lock == nil || err != nil {
		return false, err
	}
	defer lock.Close()
	err = os.Remove(filepath.Join(t.dir, manifestFile))
	return err == nil, err
}

// distrust has the template made again, once in a campaign, as a process of the target ended by
// itself when it was started from it: what was left there may be unchanged and of no use.
func (p *Processes) distrust() error {
	if p.template == nil || !p.failed.Load() || p.c.Kit.templates.distrusted(p.template.dir) {
		return nil
	}
	done, err := p.template.discard()
	if done && p.c.Kit.templates.again("start of "+p.template.dir) {
		p.c.Kit.templates.say("the target did not start from its template, which is made again")
	}
	return err
}

// forgetOld removes the least recently used templates of this target, and parts that killed
// processes left. If another run is copying from one meanwhile, at worst that run's check of
// the manifest fails, and the template is made anew.
func (p *Processes) forgetOld() {
	made, _ := filepath.Glob(filepath.Join(p.c.Kit.cache, "template-*", manifestFile))
	made = slices.DeleteFunc(made, func(m string) bool { return strings.HasSuffix(filepath.Dir(m), unmade) })
	slices.SortFunc(made, func(a, b string) int { return modified(filepath.Dir(b)).Compare(modified(filepath.Dir(a))) })
	for _, m := range made[min(len(made), templatesKept):] {
		os.RemoveAll(filepath.Dir(m))
		os.Remove(filepath.Dir(m) + ".lock")
	}
	left, _ := filepath.Glob(filepath.Join(p.c.Kit.cache, "template-*"+unmade))
	for _, dir := range left {
		t := &template{dir: strings.TrimSuffix(dir, unmade)}
		if lock, _ := t.lock(); lock != nil { // nobody is making it
			os.RemoveAll(dir)
			lock.Close()
		}
	}
}

func modified(path string) time.Time {
	fi, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return fi.ModTime()
}
