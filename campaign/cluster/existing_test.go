package cluster

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"netsplit/model"
)

// existing is a NATS server that is not the daemon's own, and how each side connects.
type existing struct {
	url, runnerURL string // runnerURL "": url
	daemon, runner Existing
}

// natsServer starts a NATS server with JetStream. change has what is particular to it.
func natsServer(t *testing.T, change func(o *server.Options)) (url string, srv *server.Server) {
	t.Helper()
	o := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir()}
	if change != nil {
		change(o)
	}
	srv, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	go srv.Start()
	t.Cleanup(func() { stop(srv) })
	if err := ready(srv, nil); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint("nats://127.0.0.1:", srv.Addr().(*net.TCPAddr).Port), srv
}

func withUser(url, user string) string { return strings.Replace(url, "://", "://"+user+"@", 1) }

func file(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t *testing.T) existing {
	url, _ := natsServer(t, nil)
	return existing{url: url}
}

func byPassword(t *testing.T) existing {
	url, _ := natsServer(t, func(o *server.Options) {
		o.Users = []*server.User{{Username: "netsplit", Password: "p1"}, {Username: "runner", Password: "p2"}}
	})
	return existing{url: withUser(url, "netsplit:p1"), runnerURL: withUser(url, "runner:p2")}
}

// byCredentials has an operator, an account with JetStream, and a file with credentials for each
// side.
func byCredentials(t *testing.T) existing {
	key := func(make func() (nkeys.KeyPair, error)) (nkeys.KeyPair, string) {
		k, err := make()
		if err != nil {
			t.Fatal(err)
		}
		public, err := k.PublicKey()
		if err != nil {
			t.Fatal(err)
		}
		return k, public
	}
	encoded := func(text string, err error) string {
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	operator, operatorName := key(nkeys.CreateOperator)
	account, accountName := key(nkeys.CreateAccount)
	_, systemName := key(nkeys.CreateAccount)
	oc := jwt.NewOperatorClaims(operatorName)
	oc.SystemAccount = systemName
	oc, err := jwt.DecodeOperatorClaims(encoded(oc.Encode(operator)))
	if err != nil {
		t.Fatal(err)
	}
	ac := jwt.NewAccountClaims(accountName)
	ac.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: jwt.NoLimit, DiskStorage: jwt.NoLimit}
	var accounts server.MemAccResolver
	if err := errors.Join(accounts.Store(accountName, encoded(ac.Encode(operator))), accounts.Store(systemName, encoded(jwt.NewAccountClaims(systemName).Encode(operator)))); err != nil {
		t.Fatal(err)
	}
	credentials := func() string {
		user, name := key(nkeys.CreateUser)
		seed, err := user.Seed()
		if err != nil {
			t.Fatal(err)
		}
		text, err := jwt.FormatUserConfig(encoded(jwt.NewUserClaims(name).Encode(account)), seed)
		if err != nil {
			t.Fatal(err)
		}
		return file(t, "user.creds", text)
	}
	url, _ := natsServer(t, func(o *server.Options) {
		o.TrustedOperators, o.SystemAccount, o.AccountResolver = []*jwt.OperatorClaims{oc}, systemName, &accounts
	})
	return existing{url: url, daemon: Existing{Credentials: credentials()}, runner: Existing{Credentials: credentials()}}
}

// byTLS demands a certificate of each side.
func byTLS(t *testing.T) existing {
	ca, key, err := (Authority{t.TempDir()}).load()
	if err != nil {
		t.Fatal(err)
	}
	pair := func(name string, use x509.ExtKeyUsage) (cert, certKey []byte) {
		cert, certKey, err := issue(ca, key, name, use)
		if err != nil {
			t.Fatal(err)
		}
		return cert, certKey
	}
	own, err := tls.X509KeyPair(pair("localhost", x509.ExtKeyUsageServerAuth))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca)
	url, _ := natsServer(t, func(o *server.Options) {
		o.TLS, o.TLSVerify, o.TLSTimeout = true, true, 10
		o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{own}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}
	})
	caFile := file(t, "ca.pem", certificatePEM(ca.Raw))
	by := func(name string) Existing {
		cert, certKey := pair(name, x509.ExtKeyUsageClientAuth)
		return Existing{CA: caFile, Cert: file(t, "cert.pem", cert), Key: file(t, "key.pem", certKey)}
	}
	return existing{url: strings.Replace(url, "nats://127.0.0.1", "tls://localhost", 1), daemon: by("daemon"), runner: by("runner")}
}

// TestAnExistingServer carries the runs as the daemon's own broker does: those of a runner that
// is killed, and those that are under way while no daemon runs.
func TestAnExistingServer(t *testing.T) {
	for name, kind := range map[string]func(*testing.T) existing{"open": open, "by password": byPassword, "by credentials": byCredentials, "by TLS": byTLS} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClassAt(t, kind(t))
			took, goOn := channel[string](), channel[bool]()
			m1 := c.starts(&hand{name: "m1", makes: func(ctx context.Context, w model.WorkItem) error {
				took <- w.Run
				<-ctx.Done()
				return ctx.Err()
			}})
			o := c.offer()
			first := c.begins(o)
			<-took
			m1.dies()
			c.starts(&hand{name: "m2", makes: func(ctx context.Context, w model.WorkItem) error {
				if w.Run == item(2).Run {
					took <- w.Run
					<-goOn
				}
				return ctx.Err()
			}})
			if m, err := first(); err != nil || m.Lab != "m2" {
				t.Errorf("the run of a runner that was killed: made by %q, %v", m.Lab, err)
			}
			ctx, ends := context.WithCancel(t.Context())
			left := channel[error]()
			go func() {
				_, err := c.one(ctx, o, item(2))
				left <- err
			}()
			<-took
			ends()
			<-left
			o.Leave()
			c.reopen(0)
			o = c.offer()
			goOn <- true
			if m, err := c.one(t.Context(), o, item(2)); err != nil || m.Lab != "m2" || len(c.makers(item(2).Run)) != 1 {
				t.Errorf("the run that was under way without a daemon: made by %v, the record is of %q, %v", c.makers(item(2).Run), m.Lab, err)
			}
			o.End()
			c.until("nothing of the campaign is left", func() bool { return len(c.left()) == 0 })
			if strings.Contains(c.hub.Address(), "p1") {
				t.Errorf("the address tells the password: %s", c.hub.Address())
			}
		})
	}
}

func channel[T any]() chan T { return make(chan T, 10) }

// TestAnExistingServerThatRestarts: both sides connect again, and the run under way counts.
func TestAnExistingServerThatRestarts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	url, srv := natsServer(t, func(o *server.Options) { o.StoreDir = dir })
	c := newClassAt(t, existing{url: url})
	took, goOn := channel[string](), channel[bool]()
	c.starts(&hand{name: "m1", makes: func(_ context.Context, w model.WorkItem) error {
		took <- w.Run
		<-goOn
		return nil
	}})
	made := c.begins(c.offer())
	<-took
	port := srv.Addr().(*net.TCPAddr).Port
	stop(srv)
	c.until("the daemon says that it is away", func() bool {
		err := c.hub.Away()
		return err != nil && strings.Contains(err.Error(), "cannot be reached") && strings.Contains(err.Error(), url)
	})
	natsServer(t, func(o *server.Options) { o.StoreDir, o.Port = dir, port })
	goOn <- true
	if m, err := made(); err != nil || m.Lab != "m1" || len(c.makers(m.Run)) != 1 {
		t.Errorf("made by %v, the record is of %q, %v", c.makers(m.Run), m.Lab, err)
	}
}

// TestWhoIsNotLetIn: the daemon and the runner say what the server does not like, and no password.
func TestWhoIsNotLetIn(t *testing.T) {
	t.Parallel()
	none := filepath.Join(t.TempDir(), "none")
	plain, _ := natsServer(t, func(o *server.Options) { o.JetStream = false })
	password, credentials, byTLS := byPassword(t), byCredentials(t), byTLS(t)
	host := password.url[strings.Index(password.url, "@")+1:]
	away, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := "nats://" + away.Addr().String()
	_ = away.Close()
	for name, x := range map[string]struct {
		url       string
		e         Existing
		want      string
		forRunner string // what a runner says; "": as want
	}{
		"no password":        {"nats://" + host, Existing{}, "Authorization Violation", ""},
		"a wrong password":   {"nats://netsplit:secret@" + host, Existing{}, "Authorization Violation", ""},
		"no credentials":     {credentials.url, Existing{}, "Authorization Violation", ""},
		"credentials gone":   {credentials.url, Existing{Credentials: none}, none, ""},
		"unknown authority":  {byTLS.url, Existing{Cert: byTLS.daemon.Cert, Key: byTLS.daemon.Key}, "unknown authority", "-"},
		"no certificate":     {byTLS.url, Existing{CA: byTLS.daemon.CA}, "needs --cluster-cert", "-"},
		"no authority":       {byTLS.url, Existing{CA: none}, none, ""},
		"no key":             {byTLS.url, Existing{CA: byTLS.daemon.CA, Cert: byTLS.daemon.Cert, Key: none}, none, ""},
		"no JetStream":       {plain, Existing{}, "has no JetStream", "-"},
		"nobody there":       {gone, Existing{}, "no servers available", "-"},
		"another protocol":   {"http://" + host, Existing{}, "nats://HOST:PORT", ""},
		"a name with a dot":  {plain, Existing{Name: "a.b"}, "use letters", ""},
		"a name of a record": {plain, Existing{Name: "a-records-b"}, "-records", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, err := Open(t.Context(), Config{Dir: t.TempDir(), Address: x.url, Existing: x.e, Goes: func(string) bool { return true }, Log: slog.New(slog.DiscardHandler), times: short})
			if err == nil {
				h.Close()
			}
			says(t, "the daemon", err, x.want)
			want := cmp.Or(x.forRunner, x.want)
			if want == "-" { // it waits
				return
			}
			r, err := Join(RunnerConfig{URL: x.url, Existing: x.e, About: model.Runner{Name: "m1"}, times: short, Log: slog.New(slog.DiscardHandler)})
			if err == nil {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				err = r.Run(ctx)
			}
			says(t, "the runner", err, want)
		})
	}
	if _, err := Join(RunnerConfig{URL: plain, About: model.Runner{Name: "a.b"}, Log: slog.New(slog.DiscardHandler)}); err == nil || !strings.Contains(err.Error(), "runner's name") {
		t.Errorf("a runner called a.b: %v", err)
	}
}

func says(t *testing.T, who string, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
		t.Errorf("%s: %v: want %q, and no password", who, err, want)
	}
}

// TestDaemonsThatShareAServer: runs go to the runners of the same name, and what one daemon
// removes is its own.
func TestDaemonsThatShareAServer(t *testing.T) {
	t.Parallel()
	url, _ := natsServer(t, nil)
	var all []*class
	for _, name := range []string{"", "other"} {
		c := newClassAt(t, existing{url: url, daemon: Existing{Name: name}, runner: Existing{Name: name}})
		c.starts(&hand{name: "of-" + cmp.Or(name, DefaultName)})
		all = append(all, c)
	}
	for n, c := range all {
		o := c.offer()
		for i := range 3 {
			m, err := c.one(t.Context(), o, item(i))
			if want := []string{"of-netsplit", "of-other"}[n]; err != nil || m.Lab != want {
				t.Errorf("made by %q, want %s, %v", m.Lab, want, err)
			}
		}
		if l := c.hub.Runners(); len(l) != 1 {
			t.Errorf("%d runners of daemon %d", len(l), n)
		}
	}
	first, second := all[0], all[1]
	if _, err := second.hub.files.PutBytes(t.Context(), "kept", []byte("x")); err != nil {
		t.Fatal(err)
	}
	first.goes = func(string) bool { return false }
	first.reopen(0) // and removes what it has
	if b, err := second.hub.files.GetBytes(t.Context(), "kept"); err != nil || string(b) != "x" {
		t.Errorf("what the other daemon keeps: %q, %v", b, err)
	}
	if _, err := second.hub.campaigns.Get(t.Context(), "c-1"); err != nil {
		t.Errorf("the campaign of the other daemon: %v", err)
	}
	if _, err := first.hub.campaigns.Get(t.Context(), "c-1"); err == nil {
		t.Error("the first daemon keeps a campaign that is over")
	}
}

// TestRightsAreTheServers: netsplit signs nothing there, so whoever may publish has runners do
// something, and the server's own rights keep others from it.
func TestRightsAreTheServers(t *testing.T) {
	t.Parallel()
	url, _ := natsServer(t, func(o *server.Options) {
		mayNot := &server.Permissions{Publish: &server.SubjectPermission{Deny: []string{"netsplit.item.>"}}}
		o.Users = []*server.User{{Username: "daemon", Password: "p"}, {Username: "runner", Password: "p", Permissions: mayNot}, {Username: "member", Password: "p"}}
	})
	c := newClassAt(t, existing{url: withUser(url, "daemon:p"), runnerURL: withUser(url, "runner:p")})
	c.starts(&hand{name: "m1"})
	o := c.offer()
	defer o.End()
	if _, err := c.one(t.Context(), o, item(1)); err != nil {
		t.Fatal(err)
	}
	forged, err := json.Marshal(item(2))
	if err != nil {
		t.Fatal(err)
	}
	publish := func(user string) {
		denied := make(chan error, 10)
		nc, err := nats.Connect(withUser(url, user+":p"), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { denied <- err }))
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		if err := errors.Join(nc.Publish("netsplit.item.c-1.c-1-r0002", forged), nc.Flush()); err != nil {
			t.Fatal(err)
		}
		if user == "member" {
			return
		}
		select {
		case err := <-denied:
			if !errors.Is(err, nats.ErrPermissionViolation) {
				t.Error(err)
			}
		case <-time.After(patience):
			t.Errorf("%s may publish an item", user)
		}
	}
	publish("runner")
	publish("member")
	c.until("the run that a member asked for is made", func() bool { return len(c.makers("c-1-r0002")) == 1 })
}

// TestAServerOfSmallMessages is refused: no record could be sent.
func TestAServerOfSmallMessages(t *testing.T) {
	t.Parallel()
	url, _ := natsServer(t, func(o *server.Options) { o.MaxPayload = 64 << 10 })
	_, err := Open(t.Context(), Config{Dir: t.TempDir(), Address: url, Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "at most 65536 bytes (max_payload)") {
		t.Errorf("%v", err)
	}
}

// TestAScenarioThatTheServerDoesNotTake fails its run, and says the bound.
func TestAScenarioThatTheServerDoesNotTake(t *testing.T) {
	t.Parallel()
	url, _ := natsServer(t, func(o *server.Options) { o.MaxPayload = 200 << 10 })
	c := newClassAt(t, existing{url: url})
	c.starts(&hand{name: "m1"})
	o := c.offer()
	w := item(1)
	w.Scenario.ID = strings.Repeat("x", 300<<10)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := c.one(ctx, o, w); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("at most %d (max_payload)", 200<<10-headerRoom)) {
		t.Errorf("a scenario of 300 KiB where messages have at most 200: %v", err)
	}
	if _, err := c.one(t.Context(), o, item(2)); err != nil {
		t.Errorf("the next run: %v", err)
	}
}
