package harness

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// PKI is what ovs-pki makes: an authority for controllers, one for switches,
// and a certificate signed by each: ctl-cert.pem and ctl-privkey.pem, sc-cert.pem
// and sc-privkey.pem.
type PKI struct {
	tb       testing.TB
	dir, tmp string
}

// NewPKI makes one.
func NewPKI(tb testing.TB) *PKI {
	tb.Helper()
	p := &PKI{tb: tb, tmp: tb.TempDir()}
	p.dir = filepath.Join(p.tmp, "pki")
	p.run("init")
	p.run("req+sign", "ctl", "controller")
	p.run("req+sign", "sc", "switch")
	return p
}

func (p *PKI) run(args ...string) {
	p.tb.Helper()
	cmd := exec.Command("ovs-pki", append([]string{"--dir=" + p.dir, "--log=" + filepath.Join(p.tmp, "log"), "--force"}, args...)...)
	cmd.Dir = p.tmp
	if out, err := cmd.CombinedOutput(); err != nil {
		p.tb.Fatalf("ovs-pki %v (apt-get install openvswitch-switch openssl): %v: %s", args, err, out)
	}
}

// File is the path of a certificate or key.
func (p *PKI) File(name string) string { return filepath.Join(p.tmp, name) }

// CA is the certificate of the authority for "controller" or "switch".
func (p *PKI) CA(kind string) string { return filepath.Join(p.dir, kind+"ca", "cacert.pem") }
