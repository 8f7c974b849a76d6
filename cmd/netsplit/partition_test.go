package main

import (
	"bytes"
	"strings"
	"testing"

	"netsplit/api/wire"
)

// TestAPartitionIsARow, whatever its reason says; all of that is shown of one.
func TestAPartitionIsARow(t *testing.T) {
	spec := wire.PartitionSpec{Name: "p1", Partition: wire.Partition{Shape: "partial", Groups: [][]string{{"a"}, {"b"}}}}
	p := wire.PartitionStatus{PartitionSpec: spec, State: "requested", Reason: "not proved:\nhost a: no link\thost b:\n  network is down\n"}
	var list, one bytes.Buffer
	if err := printPartitions(&list, []wire.PartitionStatus{p, p}); err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(strings.TrimSpace(list.String()), "\n")
	if len(rows) != 3 || !strings.HasSuffix(rows[1], "not proved:; host a: no link host b:; network is down") || rows[1] != rows[2] {
		t.Errorf("%d rows:\n%s", len(rows), list.String())
	}
	if describePartition(&one, p); !strings.Contains(one.String(), "  not proved:\n  host a: no link\thost b:\n") {
		t.Errorf("shown:\n%s", one.String())
	}
}
