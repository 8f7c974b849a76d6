package campaign

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"

	"netsplit/campaign/target"
	"netsplit/deploy/artifacts"
	"netsplit/model"
)

// software sets what every run of the campaign is given: the target's files
// and programs, fetched if they are not in the cache, and the place of its
// templates. told hears what is fetched, line by line.
func (r *labRunner) software(ctx context.Context, dir string, told func(string)) error {
	root, err := artifacts.CacheDir()
	if err != nil {
		return err
	}
	r.expand = target.ExpandInput{TargetDir: dir, Bin: r.s.cfg.BinDir, Netsplit: r.s.cfg.Binary, Version: r.target.Release}
	name := r.target.Name
	if r.target.Release != "" {
		name += "-" + r.target.Release
	}
	r.cache = filepath.Join(root, "work", name)
	r.expand.Cache = filepath.Join(r.cache, "cache")
	release, needed, err := artifacts.ForTarget(r.target, dir)
	if err != nil {
		return err
	}
	if needed {
		set, err := artifacts.Find(release)
		if errors.Is(err, artifacts.ErrAbsent) {
			set, err = artifacts.Get(ctx, release, lineWriter(told))
		}
		if err != nil {
			return err
		}
		r.expand.Lib, r.expand.Files, r.expand.Java, r.expand.JavaHome = set.Lib, set.Files, set.Java, set.JavaHome
	}
	return os.MkdirAll(r.expand.Cache, 0o755)
}

// fetching tells what is fetched as the reason why no run is under way yet.
func (s *Service) fetching(j *job) func(string) {
	return func(line string) {
		s.log.Info("fetching", "campaign", j.c.ID, "what", line)
		s.update(j, func(c *model.Campaign) { c.Reason = line })
	}
}

// lineWriter calls a function for every line written; lines come whole.
type lineWriter func(string)

// Write implements io.Writer.
func (w lineWriter) Write(b []byte) (int, error) {
	for line := range bytes.Lines(b) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			w(string(line))
		}
	}
	return len(b), nil
}
