package run

import (
	"fmt"
	"os"
	"time"
)

// pressureFile says for how long something has waited for a CPU since boot
// (Linux, Documentation/accounting/psi.rst).
const pressureFile = "/proc/pressure/cpu"

// waited reads that time from the text of the file.
func waited(text string) (time.Duration, error) {
	var avg10, avg60, avg300 float64
	var total int64 // microseconds
	if _, err := fmt.Sscanf(text, "some avg10=%f avg60=%f avg300=%f total=%d", &avg10, &avg60, &avg300, &total); err != nil {
		return 0, fmt.Errorf("%s: %w", pressureFile, err)
	}
	return time.Duration(total) * time.Microsecond, nil
}

// starvation measures from now on. What it returns says the share of the time
// since in which something on this machine waited for a CPU, from 0 to 1; 0 on a
// kernel that does not tell.
func starvation() func() float64 {
	read := func() (time.Duration, bool) {
		text, err := os.ReadFile(pressureFile)
		if err != nil {
			return 0, false
		}
		t, err := waited(string(text))
		return t, err == nil
	}
	began := time.Now()
	before, ok := read()
	return func() float64 {
		now, still := read()
		if !ok || !still {
			return 0
		}
		return min(1, float64(now-before)/float64(time.Since(began)))
	}
}
