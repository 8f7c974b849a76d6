package cluster

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
)

// Existing is how to connect to a NATS server that is not the daemon's own.
type Existing struct {
	Name        string // what streams, buckets and subjects begin with; "": DefaultName
	Credentials string // file
	CA          string // file
	Cert, Key   string // files
}

// connect connects to an existing NATS server.
func (e Existing) connect(address string, options ...nats.Option) (*nats.Conn, names, error) {
	n := names(e.Name)
	if n == "" {
		n = DefaultName
	}
	if !token.MatchString(string(n)) {
		return nil, "", fmt.Errorf("cluster name %q: use letters, digits, - and _, at most 64", n)
	}
	if strings.Contains(string(n)+"-", recordsOf) { // another daemon would take its buckets for those of a runner
		return nil, "", fmt.Errorf("cluster name %q: choose one without -records", n)
	}
	if u, err := url.Parse(address); err != nil || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) {
		return nil, "", fmt.Errorf("cluster %q is no URL of a NATS server: use nats://HOST:PORT or tls://HOST:PORT", address)
	}
	if e.Credentials != "" {
		options = append(options, nats.UserCredentials(e.Credentials))
	}
	if e.CA != "" {
		options = append(options, nats.RootCAs(e.CA))
	}
	if e.Cert != "" || e.Key != "" {
		options = append(options, nats.ClientCert(e.Cert, e.Key))
	}
	nc, err := nats.Connect(address, options...)
	if err != nil {
		err = fmt.Errorf("connect to the NATS server at %s: %w", redacted(address), err)
		if e.Cert == "" && wantsCertificate(err) {
			err = fmt.Errorf("%w (a server that asks for a certificate needs --cluster-cert and --cluster-key)", err)
		}
	}
	return nc, n, err
}

// wantsCertificate: the server says so, or ends the connection after the handshake, whichever is
// seen first.
func wantsCertificate(err error) bool {
	s := err.Error()
	return strings.Contains(s, "certificate required") || strings.Contains(s, "bad certificate") || strings.Contains(s, "after TLS handshake")
}

func redacted(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "its address"
	}
	return u.Redacted()
}
