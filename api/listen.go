package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"
)

// ListenConfig says where the API listens for other programs than the commands
// of its own user.
type ListenConfig struct {
	Addr string
	// Cert and Key are files (PEM) for TLS; they are read again when they change. Without, an
	// address that other machines reach gets a certificate that is made once and kept in Dir.
	Cert, Key, Dir string
	// Insecure speaks plain HTTP on such an address.
	Insecure bool
	// Log is told of another certificate; nil is slog.Default.
	Log *slog.Logger

	now func() time.Time // nil: the clock
}

// Listener is where the API listens.
type Listener struct {
	net.Listener
	// URL is where it is found from this machine; Fingerprint is of its
	// certificate, "" without TLS.
	URL, Fingerprint string
	// Made: the certificate is one that netsplit made.
	Made bool
}

// Port is the TCP port.
func (l *Listener) Port() int { return l.Addr().(*net.TCPAddr).Port }

// Check says what is wrong with it, as far as that can be known without listening, or making
// a certificate.
func (c ListenConfig) Check() error {
	_, err := c.check()
	if err == nil && c.Cert != "" {
		_, _, err = loadTLS(c.renewal(c.Cert, c.Key, false))
	}
	return err
}

func (c ListenConfig) check() (*net.TCPAddr, error) {
	tcp, err := net.ResolveTCPAddr("tcp", c.Addr)
	if err != nil {
		err = &net.OpError{Op: "listen", Net: "tcp", Err: err}
		return nil, fmt.Errorf("api: %w: choose an address of this machine and a port with --listen, such as 127.0.0.1:7070", err)
	}
	beyond := !tcp.IP.IsLoopback()
	switch {
	case c.Insecure && c.Cert != "":
		return nil, errors.New("api: --insecure means plain HTTP: leave it out, or --api-cert and --api-key")
	case c.Insecure && !beyond:
		return nil, fmt.Errorf("api: --insecure is for addresses other than loopback: leave it out for %s", c.Addr)
	case (c.Cert == "") != (c.Key == ""):
		return nil, errors.New("api: --api-cert and --api-key go together")
	case c.Cert == "" && beyond && !c.Insecure && c.Dir == "":
		return nil, fmt.Errorf("api: refusing plain HTTP on %s, because other machines can reach it: name a certificate (--api-cert, --api-key), or use --insecure", c.Addr)
	}
	return tcp, nil
}

// Listen opens the address of the API: plain HTTP on loopback, TLS elsewhere,
// because whoever reads a token on the way can cut the network.
func Listen(ctx context.Context, c ListenConfig) (*Listener, error) {
	tcp, err := c.check()
	if err != nil {
		return nil, err
	}
	l := &Listener{}
	var conf *tls.Config
	switch {
	case c.Cert != "":
		conf, l.Fingerprint, err = loadTLS(c.renewal(c.Cert, c.Key, false))
	case !tcp.IP.IsLoopback() && !c.Insecure:
		l.Made = true
		conf, l.Fingerprint, err = c.ownTLS(tcp.IP)
	}
	if err != nil {
		return nil, err
	}
	// The address that was judged is the one that is opened.
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", tcp.String())
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("api: %s is in use by another process (ss -ltnp shows which): stop it, or choose another address with --listen: %w", c.Addr, err)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("api: no right to listen on %s: choose a port above 1023 with --listen: %w", c.Addr, err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("api: this machine has no address %s: choose one of its own with --listen: %w", c.Addr, err)
	case err != nil:
		return nil, fmt.Errorf("api: listen: %w", err)
	}
	host, scheme := tcp.IP.String(), "http"
	if tcp.IP == nil || tcp.IP.IsUnspecified() {
		host = "localhost"
	}
	if conf != nil {
		l.Listener, scheme = tls.NewListener(ln, conf), "https"
	} else {
		l.Listener = ln
	}
	l.URL = scheme + "://" + net.JoinHostPort(host, strconv.Itoa(l.Port()))
	return l, nil
}

// drain is how long Serve waits for requests under way.
const drain = 5 * time.Second

// Serve serves until ctx ends, then lets requests under way finish for 5 s.
// Event streams end with ctx. It closes the listeners.
func Serve(ctx context.Context, h http.Handler, lns ...net.Listener) error {
	srv := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleTime,
		// net/http answers longer ones itself, and with text: parameters that are too long are
		// to be told as all that is wrong.
		MaxHeaderBytes: 256 << 10,
		// Not ReadTimeout and WriteTimeout: see paces.
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: withPeer,
	}
	failed := make(chan error, len(lns))
	for _, ln := range lns {
		go func() { failed <- srv.Serve(ln) }()
	}
	select {
	case err := <-failed:
		_ = srv.Close()
		return fmt.Errorf("api: serve: %w", err)
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	if err := srv.Shutdown(end); err != nil {
		_ = srv.Close()
		return fmt.Errorf("api: some requests did not end within %v: %w", drain, err)
	}
	return nil
}
