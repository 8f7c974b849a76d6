package service

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"testing"
	"time"

	"netsplit/api/clienttest"
	"netsplit/api/wire"
	"netsplit/e2e/harness"
	"netsplit/model"
)

// TestGoClient: the example module cuts and heals the testbed of a daemon, and a partition ends
// with its test.
func TestGoClient(t *testing.T) {
	harness.LeavesNothing(t)
	b := newBench(t, "a", "b", "c")
	d := serve(t, "--testbed", b.file, "--runs-dir", t.TempDir())
	b.connect(d.OpenFlow)
	d.Healthy()
	t.Setenv("NETSPLIT_API", "unix:"+d.Socket)
	c := exec.Command(cmp.Or(os.Getenv("GO"), "go"), "test", "-count=1", "-v", ".")
	c.Dir = "../../deploy/examples/go"
	c.Env = append(os.Environ(), "CLIENT=ip netns exec hand-a ping -n -q -c 1 -W 0.5 10.77.0.2")
	c.WaitDelay = time.Second
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}

	var names []string
	t.Run("that ends without a heal", func(t *testing.T) {
		ns := clienttest.Connect(t)
		names = append(names, ns.Partition([]string{"a"}).Name, ns.Cut(wire.PartitionSpec{Name: "mine", Partition: wire.Partition{Shape: "partial", Groups: [][]string{{"b"}, {"c"}}}}).Name)
	})
	for _, name := range names {
		var p wire.PartitionStatus
		status, body, err := d.Try("GET", "/v1/partitions/"+name, nil)
		if err == nil {
			err = json.Unmarshal(body, &p)
		}
		if err != nil || status != 200 || p.State != string(model.PartitionHealed) || p.For != wire.Span(clienttest.Most) {
			t.Errorf("%s: %d, %v, %s", name, status, err, body)
		}
	}
	if len(names) != 2 {
		t.Errorf("%v", names)
	}
}
