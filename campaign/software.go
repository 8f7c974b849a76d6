package campaign

import (
	"context"
	"os"
	"path/filepath"

	"netsplit/campaign/target"
)

// software sets what every run of the campaign is given: where the target's
// files and programs are, and where its templates are kept.
func (r *labRunner) software(ctx context.Context, dir string) error {
	r.expand = target.ExpandInput{TargetDir: dir, Bin: r.s.cfg.BinDir, Netsplit: r.s.cfg.Binary, Version: r.target.Release}
	root, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	name := r.target.Name
	if r.target.Release != "" {
		name += "-" + r.target.Release
	}
	r.cache = filepath.Join(root, "netsplit", "templates", name)
	r.expand.Cache = filepath.Join(r.cache, "cache")
	return os.MkdirAll(r.expand.Cache, 0o755)
}
