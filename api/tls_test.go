package api_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"netsplit/api"
	"netsplit/api/client"
)

func TestListen(t *testing.T) {
	ctx := context.Background()
	ln, err := api.Listen(ctx, api.ListenConfig{Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if ln.URL != "http://"+ln.Addr().String() || ln.Fingerprint != "" {
		t.Errorf("%+v", ln)
	}
	for _, c := range []struct {
		conf api.ListenConfig
		want []string
	}{
		{api.ListenConfig{Addr: ln.Addr().String()}, []string{"in use", "--listen", ln.Addr().String()}},
		{api.ListenConfig{Addr: "nonsense"}, []string{"such as 127.0.0.1:7070"}},
		{api.ListenConfig{Addr: "127.0.0.1:notaone"}, []string{"such as 127.0.0.1:7070"}},
		{api.ListenConfig{Addr: "0.0.0.0:0"}, []string{"refusing plain HTTP", "--api-cert", "--insecure"}},
		{api.ListenConfig{Addr: ":0"}, []string{"refusing plain HTTP"}},
		{api.ListenConfig{Addr: "[::]:0"}, []string{"refusing plain HTTP"}},
		{api.ListenConfig{Addr: "192.0.2.1:0"}, []string{"refusing plain HTTP"}},
		{api.ListenConfig{Addr: "192.0.2.1:0", Insecure: true}, []string{"no address"}},
		{api.ListenConfig{Addr: "127.0.0.1:0", Insecure: true}, []string{"leave it out"}},
		{api.ListenConfig{Addr: "192.0.2.1:0", Insecure: true, Cert: "x", Key: "y"}, []string{"--insecure means plain HTTP", "--api-cert"}},
		{api.ListenConfig{Addr: "127.0.0.1:0", Cert: "x"}, []string{"go together"}},
		{api.ListenConfig{Addr: "127.0.0.1:0", Cert: "x", Key: "y"}, []string{"certificate of the API", "open x"}},
	} {
		l, err := api.Listen(ctx, c.conf)
		if err == nil {
			_ = l.Close()
			t.Errorf("%+v: listens", c.conf)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%+v: %q does not say %q", c.conf, err, w)
			}
		}
	}
	plain, err := api.Listen(ctx, api.ListenConfig{Addr: "0.0.0.0:0", Insecure: true})
	if err != nil || !strings.HasPrefix(plain.URL, "http://localhost:") {
		t.Fatalf("%+v, %v", plain, err)
	}
	_ = plain.Close()
}

// Beyond loopback the API speaks TLS, with a certificate that is made once; a
// client that pins it speaks with no other.
func TestCertificateIsMadeOnceAndPinned(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	listen := func(c api.ListenConfig) *api.Listener {
		t.Helper()
		ln, err := api.Listen(ctx, c)
		if err != nil {
			t.Fatal(err)
		}
		return ln
	}
	first := listen(api.ListenConfig{Addr: "0.0.0.0:0", Dir: dir})
	_ = first.Close()
	ln := listen(api.ListenConfig{Addr: "0.0.0.0:0", Dir: dir})
	if !ln.Made || len(ln.Fingerprint) != 64 || ln.Fingerprint != first.Fingerprint {
		t.Errorf("first %s, then %s", first.Fingerprint, ln.Fingerprint)
	}
	for _, f := range []string{"api-cert.pem", "api-key.pem"} {
		if st, err := os.Stat(filepath.Join(dir, f)); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", st, err)
		}
	}
	var requested atomic.Int32
	h := handler(t, newFake(t))
	serveOn(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requested.Add(1)
		h.ServeHTTP(w, r)
	}), ln)

	base := strings.Replace(ln.URL, "localhost", "127.0.0.1", 1)
	ask := func(c client.Config) error {
		c.API, c.Token = base, token
		cl, err := client.New(c)
		if err == nil {
			_, err = cl.Version(ctx)
		}
		return err
	}
	colons := ""
	for i := 0; i < 64; i += 2 {
		colons += ":" + strings.ToUpper(ln.Fingerprint[i:i+2])
	}
	for _, f := range []string{ln.Fingerprint, "sha256:" + ln.Fingerprint, colons[1:]} {
		if err := ask(client.Config{Fingerprint: f}); err != nil {
			t.Errorf("fingerprint %s: %v", f, err)
		}
	}
	was := requested.Load()
	for f, says := range map[string]string{"": "--api-fingerprint", strings.Repeat("00", 32): "nothing was sent", "abc": "64 hex digits"} {
		if err := ask(client.Config{Fingerprint: f}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("fingerprint %q: %v", f, err)
		}
	}
	if res, err := http.Get("http://" + strings.TrimPrefix(base, "https://") + "/v1/version"); err == nil {
		res.Body.Close()
		if res.StatusCode != 400 {
			t.Errorf("plain HTTP: %s", res.Status)
		}
	}
	if got := requested.Load(); got != was {
		t.Errorf("%d requests came through", got-was)
	}
	// What is there and cannot be used is not replaced without a word.
	if err := os.WriteFile(filepath.Join(dir, "api-key.pem"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := api.Listen(ctx, api.ListenConfig{Addr: "0.0.0.0:0", Dir: dir}); err == nil || !strings.Contains(err.Error(), "remove both") {
		t.Errorf("a damaged key: %v", err)
	}

	// The same certificate named, on loopback.
	own := t.TempDir()
	made := listen(api.ListenConfig{Addr: "0.0.0.0:0", Dir: own})
	_ = made.Close()
	named := listen(api.ListenConfig{Addr: "127.0.0.1:0", Cert: filepath.Join(own, "api-cert.pem"), Key: filepath.Join(own, "api-key.pem")})
	defer named.Close()
	if named.Made || named.Fingerprint != made.Fingerprint || !strings.HasPrefix(named.URL, "https://127.0.0.1:") {
		t.Errorf("%+v", named)
	}
	go func() {
		if c, err := named.Accept(); err == nil {
			_ = c.(*tls.Conn).Handshake()
		}
	}()
	c, err := tls.Dial("tcp", named.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := api.Fingerprint(c.ConnectionState().PeerCertificates[0].Raw); got != named.Fingerprint {
		t.Errorf("shown %s, told %s", got, named.Fingerprint)
	}
	_ = c.Close()
}

// A token goes to the address that was named and over nothing that others read.
func TestWhereATokenGoes(t *testing.T) {
	for _, c := range []struct {
		conf client.Config
		says string
	}{
		{client.Config{Token: token}, "--api"},
		{client.Config{API: "http://192.0.2.1:7070", Token: token}, "--insecure"},
		{client.Config{API: "192.0.2.1:7070", Token: token}, "https://192.0.2.1:7070"},
		{client.Config{API: "rack.example:7070", Token: token}, "--insecure"},
		{client.Config{API: "rack.example:7070"}, "--insecure"},
		{client.Config{API: "127.0.0.1.example:7070", Token: token}, "--insecure"},
		{client.Config{API: "http://127.0.0.1:7070", Token: token, Fingerprint: strings.Repeat("0", 64)}, "https://127.0.0.1:7070"},
	} {
		if _, err := client.New(c.conf); err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), token) {
			t.Errorf("%+v: %v", c.conf, err)
		}
	}
	for _, c := range []client.Config{{API: "http://127.0.0.1:7070", Token: token}, {API: "localhost:7070", Token: token}, {API: "[::1]:7070", Token: token},
		{API: "https://rack.example:7070", Token: token}, {API: "http://rack.example:7070", Token: token, Insecure: true}} {
		if _, err := client.New(c); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
	// Without a token, an address on loopback is a socket, and nothing is asked of whoever has the port.
	squatter, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer squatter.Close()
	if _, err := client.New(client.Config{API: squatter.Addr().String()}); err == nil || !strings.Contains(err.Error(), squatter.Addr().String()) {
		t.Errorf("somebody else has the port: %v", err)
	}
}

// TestAnotherCertificateNeedsNoRestart: a certificate that is renewed is used for the next
// clients; files that are no pair are not.
func TestAnotherCertificateNeedsNoRestart(t *testing.T) {
	made := func() (dir, fingerprint string) {
		dir = t.TempDir()
		ln, err := api.Listen(t.Context(), api.ListenConfig{Addr: "0.0.0.0:0", Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		_ = ln.Close()
		return dir, ln.Fingerprint
	}
	first, was := made()
	second, want := made()
	third, _ := made()
	dir := t.TempDir()
	put := func(from string, files ...string) {
		for _, name := range files {
			b, err := os.ReadFile(filepath.Join(from, name))
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, name), b, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	put(first, "api-cert.pem", "api-key.pem")
	var logged bytes.Buffer
	ln, err := api.Listen(t.Context(), api.ListenConfig{Addr: "127.0.0.1:0", Cert: filepath.Join(dir, "api-cert.pem"), Key: filepath.Join(dir, "api-key.pem"),
		Log: slog.New(slog.NewTextHandler(&logged, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			_ = c.(*tls.Conn).HandshakeContext(context.Background())
			_ = c.Close()
		}
	}()
	shown := func() string {
		c, err := tls.Dial("tcp", ln.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return api.Fingerprint(c.ConnectionState().PeerCertificates[0].Raw)
	}
	until := func(fingerprint string) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); shown() != fingerprint; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("the API has no other certificate: %s", &logged)
			}
		}
	}
	until(was)
	put(second, "api-cert.pem") // half of a renewal
	time.Sleep(1100 * time.Millisecond)
	if got := shown(); got != was {
		t.Errorf("in the middle of a renewal it shows %s", got)
	}
	put(second, "api-key.pem")
	until(want)
	put(third, "api-key.pem")
	time.Sleep(1100 * time.Millisecond)
	if got := shown(); got != want {
		t.Errorf("with another's key it shows %s", got)
	}
	_ = ln.Close()
	for _, w := range []string{"keeps its certificate", "another certificate", want} {
		if !strings.Contains(logged.String(), w) {
			t.Errorf("the log does not say %q: %s", w, &logged)
		}
	}
}

// certified makes a certificate for 127.0.0.1 that signed itself.
func certified(t *testing.T, from, until time.Time) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(from.UnixNano()), NotBefore: from, NotAfter: until, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	err = errors.Join(os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	return certFile, keyFile
}

// logged is a log that a test reads while it is written.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) count(s string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), s)
}

// TestACertificateOutOfItsTime is not taken, neither at the start nor in a renewal. One that ends
// while the daemon runs is told of, and a client says what is wrong.
func TestACertificateOutOfItsTime(t *testing.T) {
	t.Parallel()
	now, day := time.Now(), 24*time.Hour
	for name, c := range map[string]struct {
		from, until time.Time
		want        []string // nil: it is taken
	}{
		"expired":       {now.Add(-2 * day), now.Add(-day), []string{"cert.pem expired at " + now.Add(-day).UTC().Format("2006-01-02"), "renew it"}},
		"not yet valid": {now.Add(day), now.Add(2 * day), []string{"is valid from " + now.Add(day).UTC().Format("2006-01-02"), "clock"}},
		"valid":         {now.Add(-day), now.Add(day), nil},
	} {
		cert, key := certified(t, c.from, c.until)
		conf := api.ListenConfig{Addr: "127.0.0.1:0", Cert: cert, Key: key, Log: slog.New(slog.DiscardHandler)}
		ln, err := api.Listen(t.Context(), conf)
		if err == nil {
			_ = ln.Close()
		}
		for _, err := range []error{err, conf.Check()} {
			if (err == nil) != (c.want == nil) {
				t.Errorf("%s: %v", name, err)
			}
			for _, w := range c.want {
				if !strings.Contains(fmt.Sprint(err), w) {
					t.Errorf("%s: %v does not say %q", name, err, w)
				}
			}
		}
	}

	// The clock of the daemon begins four days ago. The certificate is for a week.
	var behind atomic.Int64
	behind.Store(int64(4 * day))
	var log logged
	cert, key := certified(t, now.Add(-8*day), now.Add(-day))
	conf := api.ListenConfig{Addr: "127.0.0.1:0", Cert: cert, Key: key, Log: slog.New(slog.NewTextHandler(&log, nil))}.
		At(func() time.Time { return time.Now().Add(-time.Duration(behind.Load())) })
	ln, err := api.Listen(t.Context(), conf)
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, handler(t, newFake(t)), ln)
	ask := func(fingerprint string) error {
		cl, err := client.New(client.Config{API: ln.URL, Token: token, Fingerprint: fingerprint})
		if err == nil {
			_, err = cl.Version(t.Context())
		}
		return err
	}
	until := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(patience); !ok(); time.Sleep(100 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("never: %s; the log: %s", what, &log.b)
			}
			_ = ask(ln.Fingerprint) // it looks at the files while clients connect
		}
	}
	if err := ask(ln.Fingerprint); err != nil || log.count("expires soon") != 0 {
		t.Errorf("three days before its end: %v; the log: %s", err, &log.b)
	}
	behind.Store(int64(2 * day))
	until("a day before its end the log says so", func() bool { return log.count("expires soon") == 1 })
	for _, says := range []string{"expired", "--api-cert", "nothing was sent"} {
		if err := ask(""); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("a client without the fingerprint: %v: want %q", err, says)
		}
	}
	if err := ask(ln.Fingerprint); err != nil {
		t.Errorf("a client with the fingerprint: %v", err)
	}
	behind.Store(0)
	until("the log says that it has expired", func() bool { return log.count("has expired: clients that do not know its fingerprint refuse it") == 1 })
	renew := func(from, until time.Time) {
		c, k := certified(t, from, until)
		if err := errors.Join(os.Rename(k, key), os.Rename(c, cert)); err != nil {
			t.Fatal(err)
		}
	}
	renew(now.Add(day), now.Add(30*day))
	until("the log says that the next is not yet valid", func() bool { return log.count("cannot be used") > 0 && log.count("is valid from") > 0 })
	renew(now.Add(-2*day), now.Add(-time.Hour))
	until("the log says that the next has expired", func() bool { return log.count("expired at") > 0 })
	if err := ask(ln.Fingerprint); err != nil || log.count("another certificate") > 0 {
		t.Errorf("the API has another certificate: %v", err)
	}
	renew(now.Add(-day), now.Add(30*day))
	until("a good one is taken", func() bool { return log.count("another certificate") == 1 })
	if n := log.count("has expired: "); n != 1 {
		t.Errorf("the log says %d times that it has expired", n)
	}
}
