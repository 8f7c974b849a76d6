package api

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	certFile = "api-cert.pem"
	keyFile  = "api-key.pem"
	// certLife is how long a certificate that was made here is valid. Clients
	// pin it, so a new one is a nuisance, and a short life protects nobody.
	certLife = 10 * 365 * 24 * time.Hour
)

func loadTLS(r *renewal) (*tls.Config, string, error) {
	r.stamp = r.files()
	var err error
	if r.pair, err = r.load(); err != nil {
		return nil, "", fmt.Errorf("api: certificate of the API: %w", err)
	}
	r.warn()
	// Not HTTP/2: net/http would need more of the listener than that it speaks TLS.
	return &tls.Config{GetCertificate: r.current, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}, Fingerprint(r.pair.Certificate[0]), nil
}

// endsSoon is how long before its end the log says that a certificate expires: 14 days, or the
// last third of its life if that is shorter, as for one that is renewed each week.
func endsSoon(c *x509.Certificate) time.Duration {
	return min(14*24*time.Hour, c.NotAfter.Sub(c.NotBefore)/3)
}

// renewEvery is how often the files of a certificate are looked at, while clients connect.
const renewEvery = time.Second

// renewal is a certificate that is read again once its files have changed.
type renewal struct {
	cert, key string
	made      bool // by netsplit: clients know it by its fingerprint, whatever its times
	now       func() time.Time
	log       *slog.Logger

	mu     sync.Mutex // guards what follows
	pair   *tls.Certificate
	stamp  string // of the files when pair was read
	looked time.Time
	failed string // what was logged last
	warned string // the same, of the end of pair
}

// renewal is that of a certificate of the API.
func (c ListenConfig) renewal(cert, key string, made bool) *renewal {
	r := &renewal{cert: cert, key: key, made: made, now: c.clock(), log: c.Log}
	if r.log == nil {
		r.log = slog.Default()
	}
	return r
}

func (c ListenConfig) clock() func() time.Time {
	if c.now == nil {
		return time.Now
	}
	return c.now
}

// load reads the files. A certificate that clients would refuse now is an error.
func (r *renewal) load() (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(r.cert, r.key)
	if err != nil {
		return nil, err
	}
	now := r.now()
	switch from, until := pair.Leaf.NotBefore, pair.Leaf.NotAfter; {
	case r.made:
	case now.After(until):
		return nil, fmt.Errorf("%s expired at %s: clients that do not know its fingerprint refuse it: renew it", r.cert, until.Format(time.RFC3339))
	case now.Before(from):
		return nil, fmt.Errorf("%s is valid from %s on, and this machine's clock says %s: clients that do not know its fingerprint refuse it: set the clock, or use another", r.cert, from.Format(time.RFC3339), now.Format(time.RFC3339))
	}
	return &pair, nil
}

// warn says once that the certificate expires soon, and once that it has. The caller holds mu, or
// nobody else has r yet.
func (r *renewal) warn() {
	until := r.pair.Leaf.NotAfter
	what := ""
	switch left := until.Sub(r.now()); {
	case r.made: // the next start makes another one
		return
	case left < 0:
		what = "the certificate of the API has expired: clients that do not know its fingerprint refuse it: renew it; a restart is not needed"
	case left < endsSoon(r.pair.Leaf):
		what = "the certificate of the API expires soon: renew it; a restart is not needed"
	}
	if what != "" && what != r.warned {
		r.log.Warn(what, "file", r.cert, "until", until.Format(time.RFC3339))
	}
	r.warned = what
}

// files changes when one of the files does.
func (r *renewal) files() (out string) {
	for _, name := range []string{r.cert, r.key} {
		if st, err := os.Stat(name); err == nil {
			out += fmt.Sprintf("%d %d;", st.ModTime().UnixNano(), st.Size())
		}
	}
	return out
}

// current is the certificate for a client that connects. While the files are not a pair that
// clients accept, as in the middle of a renewal, it is the last one that was.
func (r *renewal) current(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.looked) < renewEvery {
		return r.pair, nil
	}
	r.looked = time.Now()
	defer r.warn()
	stamp := r.files()
	if stamp == r.stamp {
		return r.pair, nil
	}
	pair, err := r.load()
	if err != nil {
		if r.failed != err.Error() {
			r.log.Warn("the API keeps its certificate: the new one cannot be used", "file", r.cert, "err", err)
		}
		r.failed = err.Error()
		return r.pair, nil
	}
	r.pair, r.stamp, r.failed = pair, stamp, ""
	r.log.Info("the API has another certificate", "file", r.cert, "fingerprint", Fingerprint(pair.Certificate[0]))
	return r.pair, nil
}

// Fingerprint is the SHA-256 of a certificate (DER) in hex, as --api-fingerprint takes it.
func Fingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// ownTLS is loadTLS for the certificate in Dir, made if there is none or it has expired.
func (c ListenConfig) ownTLS(ip net.IP) (*tls.Config, string, error) {
	cert, key := filepath.Join(c.Dir, certFile), filepath.Join(c.Dir, keyFile)
	own, now := c.renewal(cert, key, true), c.clock()()
	pair, err := own.load()
	switch {
	case err == nil && now.Before(pair.Leaf.NotAfter):
		return loadTLS(own)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, "", fmt.Errorf("api: certificate of the API: %w: fix %s and %s, or remove both, and new ones are made", err, cert, key)
	}
	if err := makeCertificate(cert, key, ip, now); err != nil {
		return nil, "", fmt.Errorf("api: make a certificate: %w", err)
	}
	return loadTLS(own)
}

func makeCertificate(cert, key string, ip net.IP, now time.Time) error {
	priv, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return err
	}
	c := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "netsplit"},
		NotBefore:    now.Add(-time.Hour), // clocks differ
		NotAfter:     now.Add(certLife),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:     []string{"localhost"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	if name, err := os.Hostname(); err == nil {
		c.DNSNames = append(c.DNSNames, name)
	}
	if ip != nil && !ip.IsUnspecified() {
		c.IPAddresses = append(c.IPAddresses, ip)
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, priv.Public(), priv)
	if err != nil {
		return err
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(priv)
	if err != nil {
		return err
	}
	// The certificate last: without it, both are made again.
	if err := os.Remove(cert); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := writePEM(key, "PRIVATE KEY", pkcs8); err != nil {
		return err
	}
	return writePEM(cert, "CERTIFICATE", der)
}

func writePEM(file, kind string, der []byte) error {
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // a file with another mode keeps it when it is written
	}
	return os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
