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

// stolen is for how long since boot, as a mean over its CPUs, this machine was
// without them, since its host gave them to others (proc_stat(5): steal).
func stolen() time.Duration {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return 0
	}
	st, err := fs.Stat()
	if err != nil {
		return 0
	}
	return time.Duration(st.CPUTotal.Steal / float64(max(1, len(st.CPU))) * float64(time.Second))
}

// starvation measures from now on. What it returns says the share of the time
// since in which something on this machine waited for a CPU, or in which its CPUs
// were taken away, whichever is more, from 0 to 1.
func starvation() func() float64 {
	began := time.Now()
	before, ok := waited()
	taken := stolen()
	return func() float64 {
		pressure := time.Duration(0)
		if now, still := waited(); ok && still {
			pressure = now - before
		}
		return share(pressure, stolen()-taken, time.Since(began))
	}
}

// share is the greater of the two as a part of the time.
func share(pressure, steal, of time.Duration) float64 {
	return min(1, float64(max(pressure, steal))/float64(of))
}
