package cluster

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// broker is the NATS server within the daemon. Runners reach it by TLS with the certificate
// of their invitation, the daemon itself within the process.
type broker struct {
	full     atomic.Bool // a write of its store failed for want of room: it takes no more
	srv      atomic.Pointer[server.Server]
	options  *server.Options
	at       string // HOST:PORT where it listens
	ca       Authority
	password string // of the daemon's own connection
	n        names
	log      *slog.Logger
}

// startTime bounds how long a broker may take to read what it stored.
const startTime = 2 * time.Minute

// maxMessage is large enough for a run's scenario and for what a runner answers.
const maxMessage = 4 << 20

func startBroker(address, dir string, ca Authority, n names, log *slog.Logger) (*broker, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("cluster address %q: %w: use HOST:PORT, or the URL of a NATS server", address, err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil, fmt.Errorf("cluster address %q: the port is no number", address)
	}
	if number == 0 {
		number = server.RANDOM_PORT
	}
	conf, err := ca.server()
	if err != nil {
		return nil, err
	}
	b := &broker{ca: ca, password: rand.Text(), n: n, log: log}
	b.options = &server.Options{ServerName: string(n), Host: host, Port: number, NoSigs: true, MaxPayload: maxMessage,
		JetStream: true, StoreDir: filepath.Join(dir, "broker"), TLS: true, TLSConfig: conf, TLSVerify: true, TLSTimeout: 5,
		CustomClientAuthentication: b, NoSystemAccount: false}
	if err := b.start(); err != nil {
		return nil, fmt.Errorf("broker of the cluster, at %s: %w", address, err)
	}
	at := b.srv.Load().Addr().(*net.TCPAddr)
	b.at, b.options.Port = at.String(), at.Port
	return b, ca.write(ca.addressFile(), []byte(b.at+"\n"))
}

// start starts the server on what is stored.
func (b *broker) start() error {
	srv, err := server.NewServer(b.options.Clone())
	if err != nil {
		return err
	}
	failed := make(chan string, 1)
	srv.SetLoggerV2(brokerLog{b.log, failed, &b.full}, false, false, false)
	go srv.Start()
	err = ready(srv, failed)
	if err == nil && !srv.JetStreamEnabled() {
		err = fmt.Errorf("it cannot use its store in %s: is the disk full or read-only?", b.options.StoreDir)
	}
	if err != nil {
		stop(srv)
		return err
	}
	b.srv.Store(srv)
	return nil
}

// isSick says whether the server stores nothing any more. It does not recover by itself.
func (b *broker) isSick() bool { return b.full.Load() || !b.srv.Load().JetStreamEnabled() }

// restart starts the server anew on what is stored. Who was connected connects again.
func (b *broker) restart() error {
	stop(b.srv.Load())
	b.full.Store(false) // if it does not start, it has no JetStream
	return b.start()
}

// ready waits until the server has read what it stored, and listens.
func ready(srv *server.Server, failed <-chan string) error {
	for end := time.Now().Add(startTime); time.Now().Before(end); {
		if srv.ReadyForConnections(50 * time.Millisecond) {
			return nil
		}
		select {
		case why := <-failed:
			return errors.New(why)
		default:
		}
	}
	return fmt.Errorf("it was not ready within %v", startTime)
}

func (b *broker) stop() { stop(b.srv.Load()) }

func stop(srv *server.Server) {
	srv.Shutdown()
	srv.WaitForShutdown()
}

// InProcessConn is a connection to the server as it is now.
func (b *broker) InProcessConn() (net.Conn, error) { return b.srv.Load().InProcessConn() }

// Check admits the daemon's own connection and runners that are invited.
func (b *broker) Check(c server.ClientAuthentication) bool {
	if state := c.GetTLSConnectionState(); state != nil {
		if len(state.PeerCertificates) == 0 {
			return false
		}
		leaf := state.PeerCertificates[0]
		name := leaf.Subject.CommonName
		if !b.ca.invited(name, leaf.Raw) {
			return false
		}
		c.RegisterUser(&server.User{Username: user(name, leaf.Raw), Permissions: runnerMay(b.n, name)})
		return true
	}
	if c.RemoteAddress() != nil && c.RemoteAddress().Network() != "pipe" {
		return false
	}
	if subtle.ConstantTimeCompare([]byte(c.GetOpts().Password), []byte(b.password)) != 1 {
		return false
	}
	c.RegisterUser(&server.User{Username: daemonUser})
	return true
}

const daemonUser = "daemon"

// user is what the broker calls a runner: another invitation makes another user.
func user(name string, certificate []byte) string { return name + " " + sum(certificate) }

// inbox is where answers to a runner go: no other runner sees them.
func inbox(name string) string { return "_INBOX_" + name }

// runnerMay is what a runner needs, and no more: it takes and acknowledges items, reads what
// campaigns need, speaks in its own name, and brings records. It cannot hand out items, read
// another's answers, or change streams.
func runnerMay(n names, name string) *server.Permissions {
	stream := func(verb, stream string) string { return "$JS.API." + verb + "." + stream }
	campaigns, files, records := "KV_"+n.campaigns(), "OBJ_"+n.files(), "OBJ_"+n.records(name)
	publish := []string{
		n.subject("runner", name), n.subject("doing", name, "*"), n.subject("result", "*", "*", name), n.subject("software", name), n.subject("back", name),
		stream("CONSUMER.MSG.NEXT", n.items()+".*"), stream("CONSUMER.INFO", n.items()+".*"), "$JS.ACK." + n.items() + ".>", "$JS.FC.>",
		stream("STREAM.INFO", n.items()), stream("STREAM.INFO", n.results()),
		"$O." + n.records(name) + ".>", stream("STREAM.PURGE", records),
	}
	for _, s := range []string{campaigns, files, records} {
		publish = append(publish, stream("STREAM.INFO", s), stream("DIRECT.GET", s), stream("DIRECT.GET", s+".>"), stream("STREAM.MSG.GET", s))
	}
	for _, s := range []string{campaigns, files} {
		publish = append(publish, stream("CONSUMER.CREATE", s), stream("CONSUMER.CREATE", s+".>"), stream("CONSUMER.DELETE", s+".*"),
			stream("CONSUMER.INFO", s+".*"), stream("CONSUMER.MSG.NEXT", s+".*"))
	}
	return &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: publish},
		Subscribe: &server.SubjectPermission{Allow: []string{inbox(name) + ".>", n.subject("stop", "*", "*"), n.subject("hello"), n.subject("live", "*")}},
		Response:  &server.ResponsePermission{MaxMsgs: 1, Expires: 5 * time.Second},
	}
}

// connect connects the daemon itself.
func (b *broker) connect(options ...nats.Option) (*nats.Conn, error) {
	return nats.Connect("", append(options, nats.InProcessServer(b), nats.UserInfo(daemonUser, b.password))...)
}

// expel disconnects the runners whose invitation was withdrawn.
func (b *broker) expel() error {
	z, err := b.srv.Load().Connz(&server.ConnzOptions{Username: true, Limit: 1 << 20})
	if err != nil {
		return err
	}
	invited, err := b.ca.Runners()
	if err != nil {
		return err
	}
	still := map[string]bool{daemonUser: true}
	for _, name := range invited {
		if der := b.ca.certificate(name); der != nil {
			still[user(name, der)] = true
		}
	}
	var errs []error
	for _, c := range z.Conns {
		if !still[c.AuthorizedUser] {
			errs = append(errs, b.srv.Load().DisconnectClientByID(c.Cid))
		}
	}
	return errors.Join(errs...)
}

// brokerLog has the broker's words in the daemon's log.
type brokerLog struct {
	log    *slog.Logger
	failed chan<- string
	full   *atomic.Bool
}

func (l brokerLog) Noticef(format string, v ...any) {
	l.log.Debug("broker: " + fmt.Sprintf(format, v...))
}
func (l brokerLog) Warnf(format string, v ...any) { l.log.Warn("broker: " + fmt.Sprintf(format, v...)) }
func (l brokerLog) Errorf(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	if strings.Contains(text, "no space left") {
		l.full.Store(true)
	}
	l.log.Warn("broker: " + text)
}
func (l brokerLog) Fatalf(format string, v ...any) {
	select {
	case l.failed <- fmt.Sprintf(format, v...):
	default:
		l.log.Error("broker: " + fmt.Sprintf(format, v...))
	}
}
func (l brokerLog) Debugf(format string, v ...any) {}
func (l brokerLog) Tracef(format string, v ...any) {}
