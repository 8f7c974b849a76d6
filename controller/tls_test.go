package controller_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsplit/controller"
	"netsplit/internal/switchtest"
)

// authority signs certificates, and is one of them in a file.
type authority struct {
	t    *testing.T
	file string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{t: t, file: filepath.Join(t.TempDir(), name+".pem")}
	pair, key := a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotAfter: time.Now().Add(time.Hour)})
	var err error
	if a.cert, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
		t.Fatal(err)
	}
	a.key = key
	a.write(a.file, "CERTIFICATE", pair.Certificate[0])
	return a
}

// sign makes a certificate with a key of its own; the first signs itself.
func (a *authority) sign(c *x509.Certificate) (tls.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	c.SerialNumber, c.NotBefore = big.NewInt(time.Now().UnixNano()), time.Now().Add(-time.Hour)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, key
}

// leaf is a certificate for one side.
func (a *authority) leaf(name string, until time.Time) tls.Certificate {
	a.t.Helper()
	c, _ := a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: name}, NotAfter: until})
	return c
}

func (a *authority) write(file, kind string, der []byte) {
	a.t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

func (a *authority) files(c tls.Certificate) (cert, key string) {
	a.t.Helper()
	dir := a.t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	a.write(cert, "CERTIFICATE", c.Certificate[0])
	der, err := x509.MarshalECPrivateKey(c.PrivateKey.(*ecdsa.PrivateKey))
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(key, "EC PRIVATE KEY", der)
	return cert, key
}

func TestTLS(t *testing.T) {
	ours, switches, stranger := newAuthority(t, "controllers"), newAuthority(t, "switches"), newAuthority(t, "somebody else")
	hour := time.Now().Add(time.Hour)
	cert, key := ours.files(ours.leaf("netsplit", hour))
	conf, err := controller.LoadTLS(cert, key, switches.file)
	if err != nil {
		t.Fatal(err)
	}
	rec := newRecorder()
	refused := make(chan error, 10)
	c, err := controller.Listen(controller.Config{Addr: "127.0.0.1:0", TLS: conf, Handler: rec, HandshakeTimeout: 2 * time.Second,
		Refused: func(_ string, err error) { refused <- err }})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// dial connects a model switch with a certificate, or by plain TCP.
	dial := func(c *controller.Controller, conf *tls.Config) net.Conn {
		t.Helper()
		conn, err := net.Dial("tcp", c.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if conf != nil {
			conn = tls.Client(conn, conf)
		}
		go func() { _ = switchtest.New(switchtest.Config{Datapath: 1}).Serve(conn) }()
		return conn
	}
	trusting := x509.NewCertPool()
	trusting.AddCert(ours.cert)
	// As Open vSwitch does: the name in the certificate is not looked at, and
	// its own is shown to whoever asks.
	as := func(trust *x509.CertPool, certs ...tls.Certificate) *tls.Config {
		show := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return &append(certs, tls.Certificate{})[0], nil
		}
		return &tls.Config{GetClientCertificate: show, InsecureSkipVerify: true, VerifyConnection: func(s tls.ConnectionState) error {
			_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: trust})
			return err
		}}
	}
	distrusting := x509.NewCertPool()
	distrusting.AddCert(stranger.cert)
	for _, tc := range []struct {
		name string
		conf *tls.Config
		says string
	}{
		{"plain TCP", nil, "speaks plain TCP and this port TLS"},
		{"no certificate", as(trusting), "showed no certificate"},
		{"somebody else's certificate", as(trusting, stranger.leaf("intruder", hour)), `the certificate of "CN=intruder" is not trusted`},
		{"one that expired", as(trusting, switches.leaf("old", time.Now().Add(-time.Minute))), "expired"},
		{"a switch that does not trust us", as(distrusting, switches.leaf("sw", hour)), "does not trust netsplit's certificate"},
	} {
		dial(c, tc.conf)
		err := get(t, tc.name, refused)
		if !errors.Is(err, controller.ErrTLS) || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	if n := len(c.Switches()); n != 0 || len(rec.up) > 0 {
		t.Errorf("%d switches", n)
	}
	for _, old := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		good := as(trusting, switches.leaf("sw", hour))
		good.MaxVersion = old
		conn := dial(c, good)
		sw := get(t, "a trusted switch", rec.up)
		if err := sw.Apply(soon(t), rule(1)); err != nil {
			t.Error(err)
		}
		conn.Close()
		get(t, "end of the session", rec.down)
	}

	plain, err := controller.Listen(controller.Config{Addr: "127.0.0.1:0", Refused: func(_ string, err error) { refused <- err }})
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	dial(plain, as(trusting, switches.leaf("sw", hour)))
	if err := get(t, "TLS on a plain port", refused); !errors.Is(err, controller.ErrTLS) || !strings.Contains(err.Error(), "--tls-cert") {
		t.Errorf("TLS on a plain port: %v", err)
	}
}

func TestLoadTLSNamesTheFile(t *testing.T) {
	a, b := newAuthority(t, "a"), newAuthority(t, "b")
	cert, key := a.files(a.leaf("x", time.Now().Add(time.Hour)))
	_, other := b.files(b.leaf("y", time.Now().Add(time.Hour)))
	for _, tc := range []struct{ cert, key, ca, says string }{
		{cert, other, a.file, other},
		{"/nowhere", key, a.file, "/nowhere"},
		{cert, key, "/nowhere", "/nowhere"},
		{cert, key, key, "holds no certificate"},
	} {
		if _, err := controller.LoadTLS(tc.cert, tc.key, tc.ca); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%+v: %v", tc, err)
		}
	}
}
