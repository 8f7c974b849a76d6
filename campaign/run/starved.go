package run

import (
	"time"

	"github.com/prometheus/procfs"
)

// waited is for how long something has waited for a CPU since boot (Linux,
// Documentation/accounting/psi.rst); false on a kernel that does not tell.
func waited() (time.Duration, bool) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, false
	}
	psi, err := fs.PSIStatsForResource("cpu")
	if err != nil || psi.Some == nil {
		return 0, false
	}
	return time.Duration(psi.Some.Total) * time.Microsecond, true
}

// starvation measures from now on. What it returns says the share of the time
// since in which something on this machine waited for a CPU, from 0 to 1; 0 on a
// kernel that does not tell.
func starvation() func() float64 {
	began := time.Now()
	before, ok := waited()
	return func() float64 {
		now, still := waited()
		if !ok || !still {
			return 0
		}
		return min(1, float64(now-before)/float64(time.Since(began)))
	}
}
