package nodes

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

// besides are the files and folders beside the target file that it names.
var besides = regexp.MustCompile(`\{\{\s*\.TargetDir\s*\}\}/([^\s"'\\:;,{}]+)`)

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
	out := map[string]string{}
	for _, m := range besides.FindAllSubmatch(text, -1) {
		root := filepath.Join(dir, string(m[1]))
		err := filepath.WalkDir(root, func(f string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // it is made as the run goes on, or there is more to its name
			}
			if err != nil || d.IsDir() {
				return err
			}
			name, err := filepath.Rel(dir, f)
			if err != nil || out[name] != "" {
				return err
			}
			out[name], err = hashOf(f)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read the files beside the target file: %w", err)
		}
	}
	return out, nil
}

func hashOf(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil))[:16], err
}
