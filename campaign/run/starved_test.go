package run

import (
	"os"
	"testing"
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
}
