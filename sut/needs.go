package sut

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"netsplit/model"
)

// CheckNeeds looks for the programs the target needs. The error names all
// that are missing and the command that installs their Debian packages.
func CheckNeeds(t *model.Target) error { return checkNeeds(t, exec.LookPath) }

func checkNeeds(t *model.Target, look func(string) (string, error)) error {
	var missing, packages []string
	for _, prog := range slices.Sorted(maps.Keys(t.Needs)) {
		if _, err := look(prog); err != nil {
			missing = append(missing, prog)
			if p := t.Needs[prog]; !slices.Contains(packages, p) {
				packages = append(packages, p)
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(packages)
	return fmt.Errorf("target %s needs programs that are not installed: %s; install them with: apt-get install %s",
		t.Name, strings.Join(missing, ", "), strings.Join(packages, " "))
}

var beside = regexp.MustCompile(`^\{\{\s*\.TargetDir\s*\}\}/([^{}]+)$`)

// CheckScripts looks for the files beside the target file, in dir, that commands
// of processes, workloads and operations name. The error names all that are
// missing, or cannot be run.
func CheckScripts(t *model.Target, dir string) error {
	if dir == "" {
		return nil
	}
	var wrong []string
	look := func(at string, command []string) {
		for i, word := range command {
			m := beside.FindStringSubmatch(word)
			if m == nil {
				continue
			}
			file := filepath.Join(dir, m[1])
			st, err := os.Stat(file)
			switch {
			case err != nil:
				wrong = append(wrong, fmt.Sprintf("%s: there is no file %s", at, file))
			case i == 0 && (st.IsDir() || st.Mode()&0o111 == 0):
				wrong = append(wrong, fmt.Sprintf("%s: %s cannot be run: chmod +x it, or name its interpreter before it", at, file))
			}
		}
	}
	for _, p := range t.Processes {
		look("process "+p.Name, p.Command)
	}
	for _, w := range slices.Concat(t.Workloads, t.Final) {
		look("workload "+w.Name, w.Command)
	}
	for _, o := range t.Operations {
		look("operation "+o.Name, o.Command)
	}
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("target %s: %s", t.Name, strings.Join(wrong, "; "))
}
