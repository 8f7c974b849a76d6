package campaign

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"netsplit/campaign/target"
	"netsplit/model"
)

// A template is what a cluster that settled once and was stopped in order left
// on its hosts. Runs start from copies of it:
//
//	<cache>/template-<key>/
//	    hosts/<host>/…   the files of model.TemplateSetting.Keep
//	    cache/           .Cache of the target file
//	    manifest.json    SHA-256 of each host's files
//
// The key is a digest of the target as every host sees it, so a template never
// serves another release, setting or address than it was made with. It is made
// from a cluster that met neither fault nor workload, and every copy is
// checked against the manifest: what a run starts from is clean.
type template struct {
	dir      string
	Manifest map[model.NodeID]string
}

const (
	manifestFile = "manifest.json"
	// quitLimit is how long servers may take to stop in order.
	quitLimit = 60 * time.Second
	// templatesKept per target; older ones are removed.
	templatesKept = 12
)

// wanted says whether the target asks for a template.
func (p *processes) wanted() bool {
	return p.r.target.Template.Warm || len(p.r.target.Template.Keep) > 0
}

// makeTemplate sees to it that the template of this target on these hosts
// exists. Where it does not, the cluster is started, waited for, stopped in
// order, and copied. Of two who need the same one, the second waits.
func (p *processes) makeTemplate(ctx context.Context) error {
	if !p.wanted() {
		return nil
	}
	key, err := p.templateKey()
	if err != nil {
		return err
	}
	t := &template{dir: filepath.Join(p.r.cache, "template-"+key)}
	if err := os.MkdirAll(p.r.cache, 0o755); err != nil {
		return fmt.Errorf("folder of the templates: %w", err)
	}
	lock, err := os.OpenFile(t.dir+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return fmt.Errorf("lock of the template: %w", err)
	}
	defer lock.Close()
	for syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for somebody who makes template %s: %w", t.dir, context.Cause(ctx))
		case <-time.After(settleEvery):
		}
	}
	if t.load() == nil {
		p.template = t
		now := time.Now()
		_ = os.Chtimes(t.dir, now, now) // used: the last to be removed
		return nil
	}
	if err := p.build(ctx, t); err != nil {
		return fmt.Errorf("make a template of the settled cluster: %w", err)
	}
	p.template = t
	p.forgetOld()
	return nil
}

// templateKey is a digest of everything that the template depends on.
func (p *processes) templateKey() (string, error) {
	ips := map[model.NodeID]netip.Addr{}
	for _, h := range p.r.bed.Testbed.Hosts {
		ips[h.Name] = h.IP
	}
	h := sha256.New()
	for _, host := range p.hosts() {
		in := p.r.expand
		in.Host, in.Dir, in.Work, in.Cache, in.Hosts, in.Args = host, "/dir", "/work", "/cache", ips, p.r.work.Spec.Args
		in.RunStart = time.Unix(0, 0)
		t, err := target.Expand(p.r.target, in)
		if err != nil {
			return "", err
		}
		b, err := json.Marshal(struct {
			Processes []model.Process
			Template  model.TemplateSetting
			Release   string
		}{t.Processes, t.Template, t.Release})
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n", host, len(b))
		h.Write(b)
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

// build starts the cluster from nothing and keeps what it leaves.
func (p *processes) build(ctx context.Context, t *template) (err error) {
	tmp := t.dir + ".new"
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	cache := filepath.Join(tmp, "cache")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return err
	}
	one := newProcesses(p.r)
	one.building = true
	defer func() {
		one.stopAll()
		err = errors.Join(err, p.r.bed.sweep())
		if err != nil {
			os.RemoveAll(tmp)
		}
	}()
	saved := p.r.expand.Cache
	p.r.expand.Cache = cache
	defer func() { p.r.expand.Cache = saved }()
	p.r.procs = one // conditions are asked as it sees them
	defer func() { p.r.procs = p }()
	// Twice the time: programs that write archives while they start are slow.
	sctx, cancel := context.WithTimeout(ctx, 2*p.r.target.Timing.Settle)
	defer cancel()
	if pending := one.begin(sctx); len(pending) > 0 {
		return fmt.Errorf("the cluster did not become stable within %v: %s", 2*p.r.target.Timing.Settle, joined(pending))
	}
	one.stopServers(quitLimit)
	t.Manifest = map[model.NodeID]string{}
	for _, h := range p.hosts() {
		sum, err := copyKept(one.dirOf(h), filepath.Join(tmp, "hosts", string(h)), p.r.target.Template.Keep)
		if err != nil {
			return err
		}
		t.Manifest[h] = sum
	}
	b, err := json.Marshal(t.Manifest)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(tmp, manifestFile), b, 0o644); err != nil {
		return err
	}
	if err := os.RemoveAll(t.dir); err != nil {
		return err
	}
	return os.Rename(tmp, t.dir)
}

// load reads the manifest of a template that was made.
func (t *template) load() error {
	b, err := os.ReadFile(filepath.Join(t.dir, manifestFile))
	if err != nil {
		return err
	}
	return json.Unmarshal(b, &t.Manifest)
}

// fromTemplate fills the hosts' directories; it is false without a template.
func (p *processes) fromTemplate() (bool, error) {
	if p.template == nil {
		return false, nil
	}
	for _, h := range p.hosts() {
		sum, err := copyKept(filepath.Join(p.template.dir, "hosts", string(h)), p.dirOf(h), []string{"**"})
		if err != nil {
			return false, fmt.Errorf("copy the template: %w", err)
		}
		if sum != p.template.Manifest[h] {
			return false, fmt.Errorf("the template %s was changed since it was made: remove that folder, the next run makes it anew", p.template.dir)
		}
	}
	return len(p.r.target.Template.Keep) > 0, nil
}

// copyKept copies the files and folders below src that match a pattern or lie
// in a folder that does, and returns a digest of names and contents.
func copyKept(src, dst string, patterns []string) (string, error) {
	if err := os.MkdirAll(dst, 0o755); err != nil {
		return "", err
	}
	all := sha256.New()
	err := filepath.WalkDir(src, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path == src {
			return fs.SkipAll // nothing was kept of this host
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(src, path)
		if err != nil || rel == "." {
			return err
		}
		kept := slices.ContainsFunc(patterns, func(p string) bool {
			ok, _ := doublestar.PathMatch(p, rel)
			under, _ := doublestar.PathMatch(p+"/**", rel)
			return ok || under
		})
		if !kept {
			return nil
		}
		to := filepath.Join(dst, rel)
		if d.IsDir() {
			fmt.Fprintf(all, "d %q\n", rel)
			return os.MkdirAll(to, 0o755)
		}
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() {
			return err // sockets and pipes are made anew
		}
		fmt.Fprintf(all, "f %q %d\n", rel, info.Size())
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		return copyFile(path, to, info.Mode().Perm(), all)
	})
	return hex.EncodeToString(all.Sum(nil)), err
}

func copyFile(from, to string, perm fs.FileMode, sum hash.Hash) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, perm)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.MultiWriter(out, sum), in)
	return errors.Join(err, out.Close())
}

// forgetOld removes the templates of this target that were not used for
// longest. One that another run copies from meanwhile fails that run's check
// of the manifest at worst, and is made anew.
func (p *processes) forgetOld() {
	dirs, _ := filepath.Glob(filepath.Join(p.r.cache, "template-*", manifestFile))
	slices.SortFunc(dirs, func(a, b string) int { return modified(filepath.Dir(b)).Compare(modified(filepath.Dir(a))) })
	for _, d := range dirs[min(len(dirs), templatesKept):] {
		os.RemoveAll(filepath.Dir(d))
		os.Remove(filepath.Dir(d) + ".lock")
	}
}

func modified(path string) time.Time {
	fi, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return fi.ModTime()
}
