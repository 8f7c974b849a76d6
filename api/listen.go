package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"
)

// TokenEnv is the environment variable that holds the token.
const TokenEnv = "NETSPLIT_TOKEN"

// minToken is the least length of a token: 128 bits in hex are 32 characters,
// and half of that is no word that somebody guesses.
const minToken = 16

// LoadToken reads the token from the file, or, if that is "", from the
// environment. No token at all is no error. A token is never a flag: those
// can be read in the process list.
func LoadToken(file string) (string, error) {
	token, from := os.Getenv(TokenEnv), TokenEnv
	if file != "" {
		b, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("api: read the token: %w", err)
		}
		token, from = string(b), file
	}
	token = strings.TrimSpace(token)
	if (token != "" || file != "") && len(token) < minToken {
		return "", fmt.Errorf("api: the token in %s has %d characters, want %d at least: make one with: head -c 24 /dev/urandom | base64", from, len(token), minToken)
	}
	return token, nil
}

// Listen opens the address of the API. Any address but loopback needs a
// token, because whoever reaches the API can cut the network.
func Listen(ctx context.Context, addr, token string) (net.Listener, error) {
	tcp, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		err = &net.OpError{Op: "listen", Net: "tcp", Err: err}
		return nil, fmt.Errorf("api: %w: choose an address of this machine and a port with --listen, as in 127.0.0.1:7070", err)
	}
	if !tcp.IP.IsLoopback() && token == "" {
		return nil, fmt.Errorf("api: refusing to listen on %s without a token, since it can be reached from other machines: "+
			"put one into a file (head -c 24 /dev/urandom | base64) and name that with --token-file, or set %s, or listen on 127.0.0.1", addr, TokenEnv)
	}
	// The address that was judged is the one that is opened.
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", tcp.String())
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("api: %s is in use by another process (ss -ltnp shows which): stop it, or choose another address with --listen: %w", addr, err)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("api: no right to listen on %s: choose a port above 1023 with --listen: %w", addr, err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("api: this machine has no address %s: choose one of its own with --listen: %w", addr, err)
	case err != nil:
		return nil, fmt.Errorf("api: listen: %w", err)
	}
	return ln, nil
}

// drain is how long Serve waits for requests under way.
const drain = 5 * time.Second

// Serve serves until ctx ends, then lets requests under way finish for 5 s.
// Event streams end with ctx. It closes the listener.
func Serve(ctx context.Context, ln net.Listener, h http.Handler) error {
	srv := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		// Not WriteTimeout: streams and files take what they take.
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(ln) }()
	select {
	case err := <-failed:
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
