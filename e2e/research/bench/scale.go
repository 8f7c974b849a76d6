package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"netsplit/controller"
	"netsplit/model"
	"netsplit/testbed/fabric"
)

// half is how many hosts are on each side of the large partition.
const half = 64

// theirCookie marks the rules that ovs-ofctl adds.
const theirCookie = "0xbe4c"

// crowd adds hosts to a switch that are nothing but rules: nothing hangs on
// their ports.
func crowd(t model.Testbed, id model.DatapathID, n int) model.Testbed {
	t.Hosts, t.Gates, t.Mirrors = nil, nil, nil
	for i := range n {
		t.Hosts = append(t.Hosts, model.TestbedHost{Name: model.NodeID(fmt.Sprintf("x%d", i)), Datapath: id, Port: model.Port{Number: uint32(1000 + i)},
			MAC: fmt.Sprintf("02:ee:00:00:%02x:%02x", i>>8, i&255), IP: netip.AddrFrom4([4]byte{10, 99, byte(i >> 8), byte(i)})})
	}
	return t
}

// scaleCost measures how fast a partition of 64 x 64 hosts is installed,
// beside ovs-ofctl with the same rules, and what a thousand hosts take.
func scaleCost(ctx context.Context, rounds int, say func(string, ...any)) (rows []row, err error) {
	ctrl, err := controller.Listen(controller.Config{Addr: "127.0.0.1:0"})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ctrl.Close()) }()
	b, err := newTestbed(ctx, "scale", "tcp:"+ctrl.Addr().String())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	f, err := fabric.New(fabric.Config{Testbed: crowd(b.testbed, b.lab.Datapath(), 2*half), Controller: ctrl, Timeout: time.Minute})
	if err != nil {
		return nil, err
	}
	closed := false
	defer func() {
		if !closed {
			err = errors.Join(err, f.Close())
		}
	}()
	wctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if err := f.Ready(wctx); err != nil {
		return nil, err
	}
	p := halves(2 * half)
	var ours, theirs, heals []float64 // flows a second
	for round := range rounds {
		began := time.Now()
		if err := f.Cut(ctx, uint32(round+1), p); err != nil {
			return nil, err
		}
		cut := time.Since(began)
		flows, err := b.drops(ctx)
		if err != nil {
			return nil, err
		}
		if n := len(p.Links()); len(flows) < n {
			return nil, fmt.Errorf("%d drop rules on the switch for %d links", len(flows), n)
		}
		began = time.Now()
		if err := f.Heal(ctx, uint32(round+1)); err != nil {
			return nil, err
		}
		heal := time.Since(began)
		took, err := b.addFlows(ctx, flows)
		if err != nil {
			return nil, err
		}
		n := float64(len(flows))
		ours, heals, theirs = append(ours, n/cut.Seconds()), append(heals, n/heal.Seconds()), append(theirs, n/took.Seconds())
		say("scale round %d/%d: %d rules in %v, gone in %v, ovs-ofctl %v", round+1, rounds, len(flows), cut.Round(time.Millisecond), heal.Round(time.Millisecond), took.Round(time.Millisecond))
	}
	rows = append(rows,
		row{what: fmt.Sprintf("drop rules installed and confirmed per second, a partition of %d x %d hosts, beside ovs-ofctl add-flows", half, half),
			ours: spreadOf(ours).text("%.0f"), beside: spreadOf(theirs).text("%.0f"), ratio: ratioText(ours, theirs)},
		row{what: "… drop rules removed and confirmed per second by its heal", ours: spreadOf(heals).text("%.0f")})
	closed = true
	if err := f.Close(); err != nil {
		return nil, err
	}
	heap, err := heapRows(ctx, ctrl, b)
	if err != nil {
		return nil, err
	}
	agents, err := agentRows(ctx, b)
	return slices.Concat(rows, heap, agents), err
}

// halves cuts so many hosts of a crowd in two.
func halves(n int) model.Partition {
	p := model.Partition{Shape: model.Partial, Effect: model.Drop, Groups: make([][]model.NodeID, 2)}
	for i := range n {
		p.Groups[i%2] = append(p.Groups[i%2], model.NodeID(fmt.Sprintf("x%d", i)))
	}
	return p
}

// drops are the drop rules on the switch, as ovs-ofctl takes them.
func (b *rig) drops(ctx context.Context) ([]string, error) {
	out, err := b.ofctl(ctx, "--no-stats", "--no-names", "dump-flows", b.mgmt(), "table=1")
	if err != nil {
		return nil, err
	}
	var flows []string
	for _, l := range strings.Split(out, "\n") {
		if _, flow, ok := strings.Cut(l, "table=1, "); ok && strings.Contains(l, "actions=drop") && strings.Contains(l, "priority=400") {
			flows = append(flows, "table=1,cookie="+theirCookie+","+strings.ReplaceAll(flow, "send_flow_rem ", ""))
		}
	}
	return flows, nil
}

// addFlows adds rules with ovs-ofctl, which ends when the switch has confirmed
// them, and removes them again. It returns how long the adding took.
func (b *rig) addFlows(ctx context.Context, flows []string) (time.Duration, error) {
	dir, err := os.MkdirTemp("", "netsplit-bench-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "flows")
	if err := os.WriteFile(file, []byte(strings.Join(flows, "\n")+"\n"), 0o600); err != nil {
		return 0, err
	}
	began := time.Now()
	if _, err := b.ofctl(ctx, "add-flows", b.mgmt(), file); err != nil {
		return 0, err
	}
	took := time.Since(began)
	_, err = b.ofctl(ctx, "del-flows", b.mgmt(), "cookie="+theirCookie+"/-1")
	return took, err
}

func (b *rig) mgmt() string {
	return "unix:" + filepath.Join(b.lab.OVSRunDir(), b.lab.Bridge()+".mgmt")
}

func (b *rig) ofctl(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "ovs-ofctl", append([]string{"-O", "OpenFlow13"}, args...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("ovs-ofctl %s: %w\n%s", args[0], err, out)
	}
	return string(out), nil
}
