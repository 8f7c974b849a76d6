package service

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsplit/api/wire"
	"netsplit/e2e/harness"
)

// TestTLSWithOpenVSwitch: a bridge by hand that is spoken with by TLS. Who may
// not is told why, and the right one works as by TCP.
func TestTLSWithOpenVSwitch(t *testing.T) {
	harness.LeavesNothing(t)
	site, strange := harness.NewPKI(t), harness.NewPKI(t)
	b := newBench(t, "a", "b", "c")
	d := serve(t, "--testbed", b.file, "--runs-dir", t.TempDir(), "--openflow", "127.0.0.1:0", "--allowed-datapath", "0x"+datapath,
		"--tls-cert", site.File("ctl-cert.pem"), "--tls-key", site.File("ctl-privkey.pem"), "--tls-ca", site.CA("switch"))
	if !strings.Contains(d.Stderr(), "switches on ssl:") {
		t.Errorf("it says %s", d.Stderr())
	}
	ssl := func(own *harness.PKI, ca string) {
		b.VSCtl("set-ssl", own.File("sc-privkey.pem"), own.File("sc-cert.pem"), ca)
	}
	// refused points the bridge at the daemon anew and waits for the event.
	refused := func(what, scheme, says string) {
		t.Helper()
		from := len(d.Stderr())
		b.VSCtl("del-controller", bridge)
		b.controller(scheme + ":" + d.OpenFlow)
		harness.Until(t, time.Minute, what+" is refused", func() error {
			if said := d.Stderr()[from:]; !strings.Contains(said, says) {
				return fmt.Errorf("it said %s", said)
			}
			return nil
		})
	}
	refused("plain TCP", "tcp", "it speaks plain TCP and this port TLS")
	ssl(strange, site.CA("controller"))
	refused("a certificate of another authority", "ssl", "is not trusted: it must be valid now and signed by --tls-ca")
	b.VSCtl("del-ssl")
	ssl(site, strange.CA("controller"))
	refused("a switch that does not trust us", "ssl", "does not trust netsplit's certificate")
	b.VSCtl("del-ssl")
	ssl(site, site.CA("controller"))
	b.VSCtl("set", "bridge", bridge, "other-config:datapath-id=00000000000000b8")
	refused("a datapath that is not on the list", "ssl", "00000000000000b8 is not among the allowed")
	var sw wire.Switches
	d.Call("GET", "/v1/switches", nil, &sw)
	if len(sw.Items) != 1 || sw.Items[0].Connected || !strings.Contains(sw.Items[0].Reason, "it has not connected since the daemon started") {
		t.Errorf("after four that were refused: %+v", sw.Items)
	}

	b.VSCtl("set", "bridge", bridge, "other-config:datapath-id="+datapath)
	d.Healthy()
	d.partition(wire.PartitionSpec{Name: "secret", Partition: wire.Partition{Shape: "complete", Groups: [][]string{{"a"}, {"b", "c"}}}})
	b.expect("cut by TLS", func(from, to string) bool { return from != "a" && to != "a" })
	d.Heal("secret")
	b.expect("healed by TLS", everything)
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestSwitchFlags: what cannot work is refused before anything is touched.
func TestSwitchFlags(t *testing.T) {
	harness.LeavesNothing(t)
	file := filepath.Join(t.TempDir(), "testbed.yaml")
	write(t, file, "name: x\nhosts:\n  - {name: a, datapath: \"a7\", port: 1, mac: \"02:00:00:00:00:01\", ip: 10.0.0.1, exec: [env]}\n"+
		"  - {name: b, datapath: \"a7\", port: 2, mac: \"02:00:00:00:00:02\", ip: 10.0.0.2, exec: [env]}\n")
	for _, c := range []struct{ args, says string }{
		{"--testbed " + file + " --tls-cert x", "--tls-cert, --tls-key and --tls-ca go together"},
		{"--testbed " + file + " --tls-cert /nowhere --tls-key /nowhere --tls-ca /nowhere", "/nowhere"},
		{"--tls-cert x --tls-key x --tls-ca x", "need --testbed"},
		{"--allowed-datapath a7", "need --testbed"},
		{"--testbed " + file + " --allowed-datapath xyz", `--allowed-datapath: datapath id "xyz"`},
		{"--testbed " + file + " --allowed-datapath b8,b9", "host a is on datapath 00000000000000a7, which --allowed-datapath leaves out"},
		{"--testbed " + file + " --role king", `--role "king": use master or equal`},
	} {
		r := harness.Run(t, append([]string{"serve", "--runs-dir", t.TempDir()}, strings.Fields(c.args)...)...)
		if r.Code == 0 || !strings.Contains(r.Stderr, c.says) {
			t.Errorf("%s: %s", c.args, r)
		}
	}
}
