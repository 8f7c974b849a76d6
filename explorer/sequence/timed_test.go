package sequence

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"netsplit/model"
)

// TestFaultsAtTimesBeginAndEndThere: every kind that needs no message, and no other.
func TestFaultsAtTimesBeginAndEndThere(t *testing.T) {
	nodes := []model.NodeID{"n1", "n2", "n3"}
	a := Around{Nodes: nodes, Clients: []model.NodeID{"c1"}, Role: "leader", Periods: map[string]time.Duration{"beat": 4 * time.Second}}
	hosts := append(slices.Clone(nodes), "c1")
	p := Play{MaxCut: 3 * time.Second, Isolating: func(n ...model.NodeID) model.Partition { return model.IsolateAll(n, nodes, model.Drop) }, Around: a}
	until := "; when 2s into the workload; until 5s into the workload"
	want := map[model.PointFaultKind]string{
		model.PointCrash:              "crash n2" + until,
		model.PointIsolate:            "cut complete n2 | n1,n3" + until,
		model.PointSilence:            "crash the machine n2" + until,
		model.PointPartial:            "cut partial n2 | n3" + until,
		model.PointWithClient:         "cut complete c1,n2 | n1,n3" + until,
		model.PointLeader:             "cut complete leader | n1,n2,n3" + until,
		model.PointPeriod.For("beat"): "cut complete n2 | n1,n3; when 2s into the workload; at most 5s",
		model.PointBoth:               "cut complete n2,n3 | n1" + until,
		model.PointPause:              "pause n2" + until,
		model.PointDiskFailure:        "disk gone on n2" + until,
		model.PointPowerCut:           "power cut on n2" + until,
		model.PointCrashAll:           "crash n1" + until,
		model.PointPowerCutAll:        "power cut on n1" + until,
		model.PointShiftCrash:         "cut partial n1 | n2,n3; when 2s into the workload; at most 1.5s",
		model.PointShiftPowerCut:      "cut partial n1 | n2,n3; when 2s into the workload; at most 1.5s",
	}
	var named []model.PointFaultKind
	for _, k := range model.SearchedFaults() {
		if !slices.Contains(untimed, k) {
			named = append(named, k)
		}
	}
	kinds, err := AtTimes(named, a)
	if err != nil || len(kinds) != len(want) {
		t.Errorf("%v, %v", kinds, err)
	}
	for _, k := range kinds {
		steps := p.Timed(k, "n2", "n3", 2*time.Second, 5*time.Second)
		if got := steps[0].String(); got != want[k] {
			t.Errorf("%s: %s, want %s", k, got, want[k])
		}
		if n := len(steps); (ofAll(k) || isShift(k)) != (n == 3) || n != 1 && n != 3 {
			t.Errorf("%s: %d steps", k, n)
		}
		for i := range steps {
			st := &steps[i]
			if err := st.Validate(hosts, i+1); err != nil {
				t.Errorf("%s: %v", k, err)
			}
			kills := st.Do.Node != nil || st.Do.Disk != nil && st.Do.Disk.Kills()
			if st.Do.IfRunning != kills || st.When.At != 0 && i > 0 {
				t.Errorf("%s: ifRunning %v", k, st.Do.IfRunning)
			}
			if isShift(k) && (st.Until.At != 0 || st.Max == 0 && st.Until.After == 0) {
				t.Errorf("%s: step %d ends at %s, or never", k, i+1, st.Until.At)
			}
			if (FaultAt{Kind: k}).Disk() != slices.Contains([]model.PointFaultKind{model.PointPowerCut, model.PointPowerCutAll, model.PointShiftPowerCut}, k) {
				t.Errorf("%s: disk gate %v", k, FaultAt{Kind: k}.Disk())
			}
			if ofAll(k) && st.Until.At != 5*time.Second {
				t.Errorf("%s: step %d ends at %s", k, i+1, st.Until.At)
			}
		}
	}
	for _, k := range untimed {
		if got, err := AtTimes([]model.PointFaultKind{k}, a); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("a fault %s is of a message", k)) {
			t.Errorf("%s: %v, %v", k, got, err)
		}
	}
	if got, err := AtTimes([]model.PointFaultKind{model.PointDisk}, a); err != nil || fmt.Sprint(got) != "[crash disk-failure power-cut]" {
		t.Errorf("disk: %v, %v", got, err)
	}
	two := Around{Nodes: nodes[:2]}
	if _, err := AtTimes([]model.PointFaultKind{model.PointBoth}, two); err == nil || !strings.Contains(err.Error(), "no third node") {
		t.Errorf("two nodes: %v", err)
	}
}
