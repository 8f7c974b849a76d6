package cluster

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"netsplit/model"
)

// Needs of a campaign that are no tags: at least so many cores, or so much memory.
const (
	needCores  = "cores="
	needMemory = "memory="
)

// CheckNeeds says what is wrong with the needs of a campaign.
func CheckNeeds(needs []string) error {
	for _, need := range needs {
		if _, err := lacks(model.Runner{}, need); err != nil {
			return err
		}
	}
	return nil
}

// lacks says whether a runner lacks what a campaign needs: a tag, cores=N or memory=SIZE.
func lacks(r model.Runner, need string) (bool, error) {
	if n, ok := strings.CutPrefix(need, needCores); ok {
		cores, err := strconv.Atoi(n)
		if err != nil || cores < 1 {
			return false, fmt.Errorf("%s: write a number of cores, such as cores=8", need)
		}
		return r.Cores < cores, nil
	}
	if size, ok := strings.CutPrefix(need, needMemory); ok {
		memory, err := humanize.ParseBytes(size)
		if err != nil || memory == 0 {
			return false, fmt.Errorf("%s: write a size, such as memory=16GB", need)
		}
		return uint64(max(r.Memory, 0))<<20 < memory, nil
	}
	if !token.MatchString(need) {
		return false, fmt.Errorf("%s: write a tag of a runner, cores=N, or memory=SIZE", need)
	}
	return !slices.Contains(r.Has, need), nil
}

// fits says what a runner lacks of a campaign's needs; nil: nothing.
func fits(r model.Runner, needs []string) error {
	var missing []string
	hint := ""
	for _, need := range needs {
		if lack, err := lacks(r, need); lack || err != nil {
			missing = append(missing, need)
			if token.MatchString(need) {
				hint = " (netsplit runner --has)"
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("the campaign needs a runner with %s, and this one has %s, cores=%d, memory=%dMB%s", strings.Join(missing, ", "), strings.Join(r.Has, ", "), r.Cores, r.Memory, hint)
}
