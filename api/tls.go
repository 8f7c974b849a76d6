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

func loadTLS(cert, key string, log *slog.Logger) (*tls.Config, string, error) {
	r := &renewal{cert: cert, key: key, log: log}
	r.stamp = r.files()
	var err error
	if r.pair, err = r.load(); err != nil {
		return nil, "", fmt.Errorf("api: certificate of the API: %w", err)
	}
	// Not HTTP/2: net/http would need more of the listener than that it speaks TLS.
	return &tls.Config{GetCertificate: r.current, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}, Fingerprint(r.pair.Certificate[0]), nil
}

// renewEvery is how often the files of a certificate are looked at, while clients connect.
const renewEvery = time.Second

// renewal is a certificate that is read again once its files have changed.
type renewal struct {
	cert, key string
	log       *slog.Logger

	mu     sync.Mutex // guards what follows
	pair   *tls.Certificate
	stamp  string // of the files when pair was read
	looked time.Time
	failed string // what was logged last
}

func (r *renewal) load() (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(r.cert, r.key)
	return &pair, err
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

// current is the certificate for a client that connects. While the files are not a pair, as
// in the middle of a renewal, it is the last one that was.
func (r *renewal) current(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.looked) < renewEvery {
		return r.pair, nil
	}
	r.looked = time.Now()
	stamp := r.files()
	if stamp == r.stamp {
		return r.pair, nil
	}
	pair, err := r.load()
	if err != nil {
		if r.failed != err.Error() {
			r.log.Warn("the API keeps its certificate: the new one cannot be read", "file", r.cert, "err", err)
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

// ownTLS is loadTLS for the certificate in a folder, made if there is none or it has expired.
func ownTLS(dir string, ip net.IP, now time.Time, log *slog.Logger) (*tls.Config, string, error) {
	cert, key := filepath.Join(dir, certFile), filepath.Join(dir, keyFile)
	pair, err := tls.LoadX509KeyPair(cert, key)
	switch {
	case err == nil:
		leaf, err := x509.ParseCertificate(pair.Certificate[0])
		if err != nil {
			return nil, "", fmt.Errorf("api: certificate %s: %w", cert, err)
		}
		if now.Before(leaf.NotAfter) {
			return loadTLS(cert, key, log)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, "", fmt.Errorf("api: certificate of the API: %w: fix %s and %s, or remove both, and new ones are made", err, cert, key)
	}
	if err := makeCertificate(cert, key, ip, now); err != nil {
		return nil, "", fmt.Errorf("api: make a certificate: %w", err)
	}
	return loadTLS(cert, key, log)
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
