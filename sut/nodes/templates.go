package nodes

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
)

// templates is what the runs of one campaign know of their templates: making
// one costs as much as a run, so that what failed is not tried again.
type templates struct {
	reported func(string) // hears, once each, what a user must know
	// quiet is how long a file must have been left alone before its stamp is
	// trusted: within one tick of the clock a second change does not show.
	quiet time.Duration

	mu     sync.Mutex // guards what follows
	failed error      // why none can be made; nil: try
	anew   map[string]bool
	said   []string
	hashed map[string]hashedFile // by path
}

// hashedFile is a file as it was when its digest was taken.
type hashedFile struct {
	sum string
	at  stamp
}

// stamp changes whenever a file does.
type stamp struct {
	dev, ino     uint64
	size         int64
	ctime, mtime syscall.Timespec
}

func newTemplates(reported func(string)) *templates {
	return &templates{reported: reported, quiet: time.Second, anew: map[string]bool{}, hashed: map[string]hashedFile{}}
}

// say tells a thing that was not told before.
func (a *templates) say(text string) {
	a.mu.Lock()
	known := slices.Contains(a.said, text)
	if !known {
		a.said = append(a.said, text)
	}
	a.mu.Unlock()
	if !known {
		a.reported(text)
	}
}

// news is all that was told, as one sentence.
func (a *templates) news() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return joined(a.said)
}

// giveUp is called with why no template could be made; from then on nobody
// tries.
func (a *templates) giveUp(why error) {
	a.mu.Lock()
	first := a.failed == nil
	if first {
		a.failed = why
	}
	a.mu.Unlock()
	if first {
		a.say(fmt.Sprintf("there is no template and none is tried again in this campaign, so every run starts from nothing: %v", why))
	}
}

// givenUp says why no template can be made; nil: it was not tried.
func (a *templates) givenUp() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failed
}

// again is false if this template was made anew in this campaign before: what
// changed it then will change it again.
func (a *templates) again(dir string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.anew[dir] {
		return false
	}
	a.anew[dir] = true
	return true
}

// distrusted says whether a template was made anew as the target did not start from it.
func (a *templates) distrusted(dir string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.anew["start of "+dir]
}

func (t *template) changed(known *templates) []string {
	now, err := digests(t.cache(), known)
	if err != nil {
		return []string{fmt.Sprintf("cannot be read: %v", err)}
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(now)) {
		switch was, ok := t.Cache[name]; {
		case !ok:
			out = append(out, name+" was added")
		case was != now[name]:
			out = append(out, name+" was changed")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Cache)) {
		if _, ok := now[name]; !ok {
			out = append(out, name+" is missing")
		}
	}
	return out
}

// cacheAfter looks, after a run, whether it left the template's cache alone. If
// not, the next run makes it anew; this run began with the right one.
func (p *Processes) cacheAfter() {
	if p.template == nil {
		return
	}
	lock, err := p.template.lock()
	if lock == nil || err != nil {
		return // it is being made anew, so somebody saw it
	}
	defer lock.Close()
	t := &template{dir: p.template.dir} // somebody may have made it anew meanwhile
	if t.load() != nil {
		return
	}
	if changed := t.changed(p.c.Kit.templates); len(changed) > 0 {
		text := fmt.Sprintf("during run %s, files that all runs share were changed in %s: %s; a target writes there only while .Building is true",
			p.c.Run, t.cache(), joined(changed))
		p.c.Journal.Note("%s", text)
		p.c.Kit.templates.say(text)
	}
}

// digests returns the SHA-256 of every file below dir by its name there, and
// where links lead. Files that are as they were when known has their digest are
// not read again; known may be nil.
func digests(dir string, known *templates) (map[string]string, error) {
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			out[name] = "folder"
		case d.Type() == fs.ModeSymlink:
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			out[name] = "link to " + to
		case d.Type().IsRegular():
			out[name], err = known.digest(path)
		}
		return err
	})
	return out, err
}

// digest is the SHA-256 of a file.
func (a *templates) digest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	at, err := stampOf(f)
	if err != nil {
		return "", err
	}
	if a != nil {
		a.mu.Lock()
		had, ok := a.hashed[path]
		a.mu.Unlock()
		if ok && had.at == at {
			return had.sum, nil
		}
	}
	began := time.Now()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	sum := hex.EncodeToString(h.Sum(nil))
	if a != nil && began.Sub(time.Unix(at.ctime.Unix())) > a.quiet {
		a.mu.Lock()
		a.hashed[path] = hashedFile{sum, at}
		a.mu.Unlock()
	}
	return sum, nil
}

func stampOf(f *os.File) (stamp, error) {
	fi, err := f.Stat()
	if err != nil {
		return stamp{}, err
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return stamp{}, errors.ErrUnsupported
	}
	return stamp{dev: uint64(st.Dev), ino: st.Ino, size: st.Size, ctime: st.Ctim, mtime: st.Mtim}, nil
}
