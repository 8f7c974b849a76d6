package client

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"netsplit/api/trust"
)

// DefaultPort is the port of a daemon without --listen.
const DefaultPort = 7070

// Config says which daemon to speak with, and how.
type Config struct {
	// API is unix:PATH for a socket, or an address such as
	// https://rack.example:7070. Without a token, an address on loopback
	// stands for the socket of this user's daemon that listens there; so does
	// "", for the default port.
	API string
	// Token is sent to the address that API names and to nobody else; "" for
	// none. Sockets need none.
	Token string
	// Fingerprint is the SHA-256, in hex, of the certificate that the daemon must
	// show; "" for one that this machine trusts.
	Fingerprint string
	// Insecure sends a token by plain HTTP to other machines.
	Insecure bool
}

// New returns a client. It sends nothing yet.
func New(c Config) (*Client, error) {
	if c.API == "" {
		if c.Token != "" {
			return nil, errors.New("client: there is a token but no --api: a token is only sent to a daemon named by --api")
		}
		return own(DefaultPort)
	}
	if path, ok := strings.CutPrefix(c.API, "unix:"); ok {
		return bySocket(strings.TrimPrefix(path, "//")), nil
	}
	base := c.API
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	u, err := url.Parse(base)
	if err != nil || u.Hostname() == "" || u.User != nil || (u.Scheme != "http" && u.Scheme != "https") || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return nil, errors.New("client: not an address of a daemon: write one such as https://rack.example:7070, 127.0.0.1:7070 or unix:/run/netsplit-api/7070.sock")
	}
	here := u.Hostname() == "localhost"
	if ip := net.ParseIP(u.Hostname()); ip != nil {
		here = ip.IsLoopback()
	}
	transport := &http.Transport{}
	switch {
	case u.Scheme == "https":
		transport.Proxy = http.ProxyFromEnvironment // sees no more than that we connect
		if c.Fingerprint != "" {
			if transport.TLSClientConfig, err = pinned(c.Fingerprint); err != nil {
				return nil, err
			}
		}
	case c.Fingerprint != "":
		return nil, fmt.Errorf("client: --api-fingerprint needs TLS, but %s is plain HTTP: write https://%s", c.API, u.Host)
	case here && c.Token == "":
		port, err := strconv.Atoi(u.Port())
		if err != nil {
			port = 80
		}
		return own(port)
	case !here && !c.Insecure:
		return nil, fmt.Errorf("client: refusing plain HTTP to %s, because others could read what is sent: write https://%s, or use --insecure", u.Host, u.Host)
	}
	base = u.Scheme + "://" + u.Host
	return &Client{base: base, where: base, token: c.Token, http: httpClient(transport)}, nil
}

func own(port int) (*Client, error) {
	path, found := trust.Find(port)
	if !found {
		return nil, fmt.Errorf("client: %w of this user at 127.0.0.1:%d (there is no socket %s): start one with netsplit serve, or name another with --api, and its token with --api-token-file", ErrNoDaemon, port, path)
	}
	return bySocket(path), nil
}

func bySocket(path string) *Client {
	c := Over(func(ctx context.Context) (net.Conn, error) { return trust.Dial(ctx, path) })
	c.where = "unix:" + path
	return c
}

// Over returns a client whose connections come from dial.
func Over(dial func(context.Context) (net.Conn, error)) *Client {
	return &Client{base: "http://localhost", where: "this process", http: httpClient(&http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
	})}
}

func httpClient(t *http.Transport) *http.Client {
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// pinned accepts the one certificate that has the fingerprint, whoever signed it.
func pinned(fingerprint string) (*tls.Config, error) {
	text := strings.TrimPrefix(strings.ToLower(fingerprint), "sha256:")
	want, err := hex.DecodeString(strings.ReplaceAll(text, ":", ""))
	if err != nil || len(want) != sha256.Size {
		return nil, errors.New("client: a fingerprint has 64 hex digits, as netsplit serve prints it: see --api-fingerprint")
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, // in place of it:
		VerifyConnection: func(s tls.ConnectionState) error {
			if got := sha256.Sum256(s.PeerCertificates[0].Raw); string(got[:]) != string(want) {
				return fmt.Errorf("the daemon's certificate has the fingerprint %s, not that of --api-fingerprint: nothing was sent", hex.EncodeToString(got[:]))
			}
			return nil
		},
	}, nil
}

// unknownAuthority says that a certificate is of no authority that this machine knows.
func unknownAuthority(err error) bool {
	var unknown x509.UnknownAuthorityError
	return errors.As(err, &unknown)
}

// outOfTime says that a certificate has expired or is not yet valid.
func outOfTime(err error) bool {
	var invalid x509.CertificateInvalidError
	return errors.As(err, &invalid) && invalid.Reason == x509.Expired
}
