package nodes

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"netsplit/model"
	"netsplit/sut"
)

// named are the files and folders beside the target file that it names.
var named = regexp.MustCompile(`\{\{\s*\.TargetDir\s*\}\}/([^\s"'\\:;,{}]+)`)

// Scripts are those of a target whose file is in dir: see Kit.Scripts.
func Scripts(t *model.Target, dir string) (map[string]string, error) {
	k := &Kit{Target: t, templates: newTemplates(nil), expand: sut.ExpandInput{TargetDir: dir}}
	return k.Scripts()
}

// Scripts are the files beside the target file that it names, with those in
// folders that it names: the hash of each by its name. They are what they are now,
// since they are run from there.
func (k *Kit) Scripts() (map[string]string, error) {
	dir := k.expand.TargetDir
	if dir == "" {
		return nil, nil
	}
	text, err := json.Marshal(k.Target)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, m := range named.FindAllSubmatch(text, -1) {
		paths = append(paths, filepath.Join(dir, string(m[1])))
	}
	files, err := beside(paths)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, f := range files {
		name, err := filepath.Rel(dir, f)
		if err != nil {
			return nil, err
		}
		if out[name], err = k.templates.digest(f); err != nil {
			return nil, fmt.Errorf("read the files beside the target file: %w", err)
		}
	}
	return out, nil
}

// beside are the regular files among paths, and in the folders among them, sorted;
// a link stands for what it leads to. A path where nothing is may be one that the
// run makes, or have more to its name, and is left out.
func beside(paths []string) (files []string, err error) {
	for _, path := range paths {
		real, err := filepath.EvalSymlinks(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = filepath.WalkDir(real, func(f string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				if st, err := os.Stat(f); err == nil && st.Mode().IsRegular() {
					files = append(files, path+f[len(real):])
				}
				return nil
			})
		}
		if err != nil {
			return nil, fmt.Errorf("read the files beside the target file: %w", err)
		}
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}
