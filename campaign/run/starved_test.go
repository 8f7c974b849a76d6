package run

import (
	"os"
	"testing"
	"time"
)

// What the kernel tells is read, on a kernel that does; a share is one of the time.
func TestStarvationIsAShare(t *testing.T) {
	text, err := os.ReadFile("/proc/pressure/cpu")
	since, ok := waited()
	if ok != (err == nil) || ok && since <= 0 {
		t.Errorf("%v, %v; the kernel says %q, %v", since, ok, text, err)
	}
	if share := starvation()(); share < 0 || share > 1 {
		t.Errorf("a share of %v", share)
	}
	for _, c := range []struct{ pressure, steal, want float64 }{{0, 0, 0}, {.5, .2, .5}, {.1, .6, .6}, {1.2, 0, 1}} {
		if got := share(time.Duration(c.pressure*1e9), time.Duration(c.steal*1e9), time.Second); got != c.want {
			t.Errorf("waited %v, stolen %v: %v, want %v", c.pressure, c.steal, got, c.want)
		}
	}
}
