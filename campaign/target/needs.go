package target

import (
	"fmt"
	"maps"
	"os/exec"
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
