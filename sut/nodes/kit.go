package nodes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"netsplit/model"
	"netsplit/sut"
	"netsplit/sut/software"
)

// Kit is what every run of a campaign starts its target from: the target file,
// its software, and its templates with what the runs so far know of them.
type Kit struct {
	// Target has its settings filled in; templates are expanded per host.
	Target *model.Target

	expand    sut.ExpandInput // what is the same for every run
	cache     string          // where the target's templates are kept
	templates *templates
	version   version
}

// KitConfig is what a Kit is made from.
type KitConfig struct {
	Target *model.Target // with its settings filled in
	Dir    string        // of the target file
	// Netsplit is the netsplit program as the hosts find it, Bin the folder of
	// the helper programs of targets.
	Netsplit, Bin string
	// Supply brings a set of software that is not in the cache; nil: nobody does. Where it
	// fails the set is fetched.
	Supply func(context.Context, software.Release) error
	// Fetching hears what is fetched, line by line.
	Fetching func(string)
	// Notify receives, once each, what a user must know of the templates.
	Notify func(string)
}

// NewKit gets the target's files and programs, which takes a while where they
// are not in the cache.
func NewKit(ctx context.Context, c KitConfig) (*Kit, error) {
	root, err := software.CacheDir()
	if err != nil {
		return nil, err
	}
	k := &Kit{Target: c.Target, templates: newTemplates(c.Notify),
		expand: sut.ExpandInput{TargetDir: c.Dir, Bin: c.Bin, Netsplit: c.Netsplit, Version: c.Target.Release}}
	name := c.Target.Name
	if c.Target.Release != "" {
		name += "-" + c.Target.Release
	}
	k.cache = filepath.Join(root, "work", name)
	k.expand.Cache = filepath.Join(k.cache, "cache")
	release, needed, err := software.ForTarget(c.Target, c.Dir)
	if err != nil {
		return nil, err
	}
	if needed {
		set, err := software.Find(release)
		if c.Supply != nil && errors.Is(err, software.ErrAbsent) {
			for _, r := range software.Missing(release) {
				if err := c.Supply(ctx, r); err != nil {
					c.Fetching(fmt.Sprintf("%s was not supplied (%v): fetching it", r, err))
				}
			}
			set, err = software.Find(release)
		}
		if errors.Is(err, software.ErrAbsent) {
			set, err = software.Get(ctx, release, lineWriter(c.Fetching))
		}
		if err != nil {
			return nil, err
		}
		k.expand.Lib, k.expand.Files, k.expand.Java, k.expand.JavaHome = set.Lib, set.Files, set.Java, set.JavaHome
	}
	if err := os.MkdirAll(k.expand.Cache, 0o755); err != nil {
		return nil, err
	}
	return k, os.Chmod(k.cache, 0o700) // processes have a view in which they reach it
}

// News is all that was told of the templates, as one sentence.
func (k *Kit) News() string { return k.templates.news() }

// lineWriter calls a function for every line written; lines come whole.
type lineWriter func(string)

func (w lineWriter) Write(b []byte) (int, error) {
	for line := range bytes.Lines(b) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			w(string(line))
		}
	}
	return len(b), nil
}
