package testbed

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"netsplit/api/wire"
	"netsplit/e2e/harness"
)

// TestPortsByName: in a file that gives all ports by name, those of a link too, a
// port that is not there yet is waited for, by whom it concerns; one that is put
// back under another number is found, with its cut.
func TestPortsByName(t *testing.T) {
	harness.LeavesNothing(t)
	r := twoBridges(t, []string{"a", "b"}, []string{"c"})
	r.named = true
	r.write(fmt.Sprintf("links:\n  - {a: {datapath: %q, port: rkt1}, b: {datapath: %q, port: rkt2}}\n", dpid("rk1"), dpid("rk2")))
	a, b, c := r.hosts[0], r.hosts[1], r.hosts[2]
	again := func(h, bridge string, port int) {
		t.Helper()
		r.VSCtl("add-port", bridge, h, "--", "set", "interface", h, fmt.Sprintf("ofport_request=%d", port))
	}

	r.VSCtl("del-port", "rk1", b.link)
	d := serve(t, "--testbed", r.file, "--runs-dir", t.TempDir(), "--openflow", "127.0.0.1:0")
	r.connect(d.OpenFlow)
	missing := fmt.Sprintf("host b: the switch has no port called \\\"%s\\\": it has \\\"%s\\\" (11), \\\"rkt1\\\" (50)", b.link, a.link)
	harness.Until(t, time.Minute, "the daemon says which port is missing, and which there are", func() error {
		if status, body := d.try("GET", "/healthz", nil); status == http.StatusOK || !strings.Contains(string(body), missing) {
			return fmt.Errorf("%d %s", status, body)
		}
		return nil
	})
	harness.Until(t, time.Minute, "the others do not wait for it", func() error {
		if !r.ping(a, c) {
			return fmt.Errorf("a does not reach c")
		}
		return nil
	})
	cutB := wire.PartitionSpec{Name: "b", Partition: wire.Partition{Shape: "partial", Groups: [][]string{{"a"}, {"b"}}}}
	if status, body := d.try("POST", "/v1/partitions", cutB); status < 400 || !strings.Contains(string(body), "no port called") {
		t.Errorf("a host on no port is cut: %d %s", status, body)
	}
	again(b.link, "rk1", 30)
	d.Healthy()
	r.passing(time.Minute)
	d.Call("POST", "/v1/partitions", cutB, nil)
	d.State("b", "in_force")
	d.Heal("b")

	d.Call("POST", "/v1/partitions", wire.PartitionSpec{Name: "one", Partition: wire.Partition{Shape: "partial", Groups: [][]string{{"a"}, {"c"}}}}, nil)
	d.State("one", "in_force")
	cut := func(x, y string) bool { return x+y != "ac" }
	r.expect("cut", cut)
	r.VSCtl("del-port", "rk1", a.link)
	harness.Until(t, time.Minute, "the daemon says that a's port is gone", func() error {
		if _, body := d.try("GET", "/healthz", nil); !strings.Contains(string(body), "host a: the switch has no port called") {
			return fmt.Errorf("%s", body)
		}
		return nil
	})
	again(a.link, "rk1", 77)
	d.Healthy()
	d.State("one", "in_force")
	r.expect("cut, with another number", cut)
	var hosts wire.Hosts
	if d.Call("GET", "/v1/hosts", nil, &hosts); len(hosts.Items) != 3 || hosts.Items[0].Port != 77 || hosts.Items[0].PortName != a.link {
		t.Errorf("hosts: %+v", hosts)
	}

	// The link's end.
	r.VSCtl("del-port", "rk1", "rkt1")
	harness.Until(t, time.Minute, "the daemon says that the link's port is gone", func() error {
		if _, body := d.try("GET", "/healthz", nil); !strings.Contains(string(body), `link: the switch has no port called \"rkt1\"`) {
			return fmt.Errorf("%s", body)
		}
		return nil
	})
	again("rkt1", "rk1", 60)
	d.Healthy()
	d.State("one", "in_force")
	r.expect("cut, with another link port", cut)
	if res := harness.Run(t, "doctor", "--api", d.API); !strings.Contains(res.Stdout, "all 3 ports of the testbed file are there and up") {
		t.Errorf("doctor: %s", res)
	}
	var p wire.PartitionStatus
	if d.Call("GET", "/v1/partitions/one", nil, &p); p.Leaked != 0 {
		t.Errorf("leaked: %+v", p)
	}
	d.Heal("one")
	r.passing(time.Minute)
	r.expect("healed", func(string, string) bool { return true })
}
