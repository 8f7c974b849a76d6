package controller

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
)

// ErrTLS: the connection was not encrypted, or not by somebody we trust; test
// with errors.Is.
var ErrTLS = errors.New("no trusted TLS connection")

// errNoCertificate is what the peer's lack of a certificate looks like from
// within the TLS handshake.
var errNoCertificate = errors.New("the switch showed no certificate")

// LoadTLS reads PEM files for a controller that speaks OpenFlow over TLS
// (OpenFlow 1.3 §6.3.3): its own certificate and key, and the certificates of
// the authorities that sign switches. Both sides show a certificate. Which names
// stand in them is not looked at; which datapaths may connect is
// Config.Allowed's to say.
func LoadTLS(certFile, keyFile, caFile string) (*tls.Config, error) {
	own, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("controller: certificate %s with key %s: %w", certFile, keyFile, err)
	}
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("controller: certificates of the switches' authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("controller: %s holds no certificate in PEM", caFile)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{own}, ClientCAs: pool, MinVersion: tls.VersionTLS12,
		// A certificate is required: by VerifyConnection, whose error can be
		// told from the others.
		ClientAuth: tls.VerifyClientCertIfGiven,
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.VerifiedChains) == 0 {
				return errNoCertificate
			}
			return nil
		},
	}, nil
}

func (c *Controller) encrypt(conn *tls.Conn) error {
	ctx, cancel := context.WithTimeout(context.Background(), c.cfg.HandshakeTimeout)
	defer cancel()
	err := conn.HandshakeContext(ctx)
	if err == nil {
		return nil
	}
	var header tls.RecordHeaderError
	var cert *tls.CertificateVerificationError
	var op *net.OpError
	switch {
	case errors.As(err, &header):
		return fmt.Errorf("%w: it speaks plain TCP and this port TLS: give it a key (ovs-vsctl set-ssl) and set its controller to ssl:ADDRESS:PORT (%w)", ErrTLS, err)
	case errors.Is(err, errNoCertificate):
		return fmt.Errorf("%w: %w: give it one that --tls-ca signed (ovs-vsctl set-ssl)", ErrTLS, err)
	case errors.As(err, &cert):
		name := "?"
		if len(cert.UnverifiedCertificates) > 0 {
			name = cert.UnverifiedCertificates[0].Subject.String()
		}
		return fmt.Errorf("%w: the certificate of %q is not trusted: it must be valid now and signed by --tls-ca (%w)", ErrTLS, name, cert.Err)
	case errors.As(err, &op) && (op.Op == "remote error" || op.Op == "local error"):
		// OpenSSL, and so Open vSwitch, says why in clear where TLS 1.3 has
		// turned to ciphers: here that is a record of a wrong MAC.
		return fmt.Errorf("%w: the switch broke off, probably because it does not trust netsplit's certificate: its CA (ovs-vsctl get-ssl) must have signed --tls-cert (%w)", ErrTLS, err)
	case ctx.Err() != nil:
		return fmt.Errorf("%w: no TLS handshake within %v; is that an OpenFlow switch with ssl: as its controller?", ErrTLS, c.cfg.HandshakeTimeout)
	}
	return fmt.Errorf("%w: %w", ErrTLS, err)
}

// isTLS says whether a first message begins as a TLS handshake does: record
// type 22, major version 3.
func isTLS(b []byte) bool { return len(b) >= 2 && b[0] == 22 && b[1] == 3 }
