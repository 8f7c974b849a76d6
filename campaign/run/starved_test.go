package run

import (
	"testing"
	"time"
)

func TestWaitedReadsPressure(t *testing.T) {
	const text = "some avg10=94.01 avg60=94.80 avg300=92.00 total=36193380906\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
	if got, err := waited(text); err != nil || got != 36193380906*time.Microsecond {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "some", "full avg10=1 avg60=1 avg300=1 total=1", "some avg10=x"} {
		if got, err := waited(bad); err == nil {
			t.Errorf("%q: %v and no error", bad, got)
		}
	}
	if share := starvation()(); share < 0 || share > 1 {
		t.Errorf("a share of %v", share)
	}
}
