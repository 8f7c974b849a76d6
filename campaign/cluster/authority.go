package cluster

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"netsplit/internal/regular"
)

// serverName is what the broker's certificate is made for: runners know it by its authority,
// whatever address they reach it at.
const serverName = "netsplit-cluster"

// Certificates are valid this long; the authority that signs them, as long as a daemon's
// folder may live.
const (
	validFor      = 2 * 365 * 24 * time.Hour
	authorityLife = 20 * 365 * 24 * time.Hour
	backdated     = time.Hour // clocks of machines differ
)

// Authority makes the certificates of a daemon's cluster. It lives in a folder: its own key
// and certificate, and below runners/ the certificate of each runner that was invited.
type Authority struct{ Dir string }

// Invitation is all that a runner needs to join a daemon: what netsplit cluster invite writes.
type Invitation struct {
	URL  string `json:"url"`  // of the broker, tls://HOST:PORT
	Name string `json:"name"` // what the daemon's streams and subjects begin with
	// Authority signed the broker's certificate, Certificate and Key are the runner's (PEM).
	Authority   string `json:"authority"`
	Certificate string `json:"certificate"`
	Key         string `json:"key"`
}

func (a Authority) caFile() string             { return filepath.Join(a.Dir, "authority.pem") }
func (a Authority) runnerFile(n string) string { return filepath.Join(a.Dir, "runners", n+".pem") }
func (a Authority) addressFile() string        { return filepath.Join(a.Dir, "address") }

// Runners are the names of the runners that are invited.
func (a Authority) Runners() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(a.Dir, "runners"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".pem"); ok {
			out = append(out, name)
		}
	}
	return out, nil
}

// Address is where the daemon's broker listened last; "" if it never did.
func (a Authority) Address() string {
	b, err := regular.Read(a.Dir, filepath.Base(a.addressFile()))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// Invite makes a certificate for a runner. With an earlier one of the
// same name nobody can connect any more.
func (a Authority) Invite(name, address string) (Invitation, error) {
	if !token.MatchString(name) || name == daemonUser {
		return Invitation{}, fmt.Errorf("%q cannot be a runner's name: use letters, digits, - and _, at most 64", name)
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return Invitation{}, fmt.Errorf("address %q: %w: give HOST:PORT as the runner reaches it", address, err)
	}
	ca, key, err := a.load()
	if err != nil {
		return Invitation{}, err
	}
	cert, certKey, err := issue(ca, key, name, x509.ExtKeyUsageClientAuth)
	if err != nil {
		return Invitation{}, err
	}
	if err := a.write(a.runnerFile(name), cert); err != nil {
		return Invitation{}, err
	}
	return Invitation{URL: "tls://" + address, Name: DefaultName, Authority: string(certificatePEM(ca.Raw)), Certificate: string(cert), Key: string(certKey)}, nil
}

// Revoke withdraws an invitation. A runner that is connected by it is disconnected at its
// next beat.
func (a Authority) Revoke(name string) error {
	if !token.MatchString(name) {
		return fmt.Errorf("%q is no runner's name", name)
	}
	err := os.Remove(a.runnerFile(name))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("no runner %q was invited", name)
	}
	return err
}

// invited says whether a certificate is the one that the runner of this name was given last.
func (a Authority) invited(name string, cert []byte) bool {
	if !token.MatchString(name) {
		return false
	}
	der := a.certificate(name)
	return der != nil && bytes.Equal(der, cert)
}

// certificate is the one that a runner was given last; nil if none was.
func (a Authority) certificate(name string) []byte {
	b, err := regular.Read(filepath.Dir(a.runnerFile(name)), name+".pem")
	if err != nil {
		return nil
	}
	block, _ := pem.Decode(b)
	if block == nil {
		return nil
	}
	return block.Bytes
}

// server gives the TLS configuration of the broker: TLS 1.3, and a certificate of this
// authority on the other side.
func (a Authority) server() (*tls.Config, error) {
	ca, key, err := a.load()
	if err != nil {
		return nil, err
	}
	cert, certKey, err := issue(ca, key, serverName, x509.ExtKeyUsageServerAuth)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, certKey)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca)
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}, nil
}

// client gives the TLS configuration of whoever has the invitation.
func (i Invitation) client() (*tls.Config, error) {
	pair, err := tls.X509KeyPair([]byte(i.Certificate), []byte(i.Key))
	if err != nil {
		return nil, fmt.Errorf("the invitation's certificate: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(i.Authority)) {
		return nil, errors.New("the invitation has no certificate of an authority")
	}
	if err := i.valid(pair.Leaf, time.Now()); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}, RootCAs: pool, ServerName: serverName}, nil
}

func (i Invitation) valid(leaf *x509.Certificate, now time.Time) error {
	switch {
	case now.After(leaf.NotAfter):
		return fmt.Errorf("the invitation ended at %s: make a new one where the daemon is (netsplit cluster invite %s)", leaf.NotAfter.Format(time.RFC3339), leaf.Subject.CommonName)
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("the invitation is valid from %s on, and this machine's clock says %s: set the clock", leaf.NotBefore.Format(time.RFC3339), now.Format(time.RFC3339))
	}
	return nil
}

// runner is the name in the invitation's certificate.
func (i Invitation) runner() (string, error) {
	pair, err := tls.X509KeyPair([]byte(i.Certificate), []byte(i.Key))
	if err != nil {
		return "", fmt.Errorf("the invitation's certificate: %w", err)
	}
	return pair.Leaf.Subject.CommonName, nil
}

// ReadInvitation reads an invitation. Only its owner may be able to read it: it holds a key.
func ReadInvitation(path string) (Invitation, error) {
	var out Invitation
	b, err := regular.Read(filepath.Dir(path), filepath.Base(path))
	if err != nil {
		return out, fmt.Errorf("read the invitation: %w", err)
	}
	if err := json.Unmarshal(b, &out); err != nil || out.URL == "" || out.Certificate == "" {
		return out, fmt.Errorf("%s is no invitation: make one where the daemon is (netsplit cluster invite NAME)", path)
	}
	st, err := os.Lstat(path)
	if err != nil {
		return out, fmt.Errorf("read the invitation: %w", err)
	}
	if st.Mode().Perm()&0o077 != 0 {
		return out, fmt.Errorf("other users can read invitation %s, which holds a key (mode %03o): chmod 600 %s, and if somebody may have read it make a new one", path, st.Mode().Perm(), path)
	}
	return out, nil
}

// load gives the authority's certificate and key, which it makes the first time.
func (a Authority) load() (*x509.Certificate, *ecdsa.PrivateKey, error) {
	b, err := regular.Read(a.Dir, filepath.Base(a.caFile()))
	if errors.Is(err, fs.ErrNotExist) {
		if err := a.make(); err != nil {
			return nil, nil, err
		}
		b, err = regular.Read(a.Dir, filepath.Base(a.caFile()))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the authority of the cluster: %w", err)
	}
	pair, err := tls.X509KeyPair(b, b)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w: restore it, or delete %s and invite all runners anew", a.caFile(), err, a.Dir)
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, nil, fmt.Errorf("%s has another kind of key than netsplit makes: delete %s and invite all runners anew", a.caFile(), a.Dir)
	}
	return pair.Leaf, key, nil
}

func (a Authority) make() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template, err := certificate("netsplit cluster", authorityLife)
	if err != nil {
		return err
	}
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return err
	}
	keyText, err := keyPEM(key)
	if err != nil {
		return err
	}
	return a.write(a.caFile(), append(certificatePEM(der), keyText...))
}

func (a Authority) write(path string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return renameio.WriteFile(path, b, 0o600, renameio.WithTempDir(filepath.Dir(path)), renameio.WithPermissions(0o600))
}

func issue(ca *x509.Certificate, key *ecdsa.PrivateKey, name string, use x509.ExtKeyUsage) (cert, certKey []byte, err error) {
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template, err := certificate(name, validFor)
	if err != nil {
		return nil, nil, err
	}
	template.KeyUsage, template.ExtKeyUsage, template.DNSNames = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{use}, []string{name}
	der, err := x509.CreateCertificate(rand.Reader, template, ca, &own.PublicKey, key)
	if err != nil {
		return nil, nil, err
	}
	certKey, err = keyPEM(own)
	return certificatePEM(der), certKey, err
}

func certificate(name string, life time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-backdated), NotAfter: now.Add(life)}, nil
}

func certificatePEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func keyPEM(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// sum is the name of content among the files of the cluster.
func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}
