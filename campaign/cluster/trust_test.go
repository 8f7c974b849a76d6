package cluster

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"netsplit/model"
)

// TestARunnerThatLies: a record that is not of the run is not taken for it.
func TestARunnerThatLies(t *testing.T) {
	for name, l := range map[string]struct {
		change func(dir string, m *model.RunMeta)
		want   string
	}{
		"another run":      {func(_ string, m *model.RunMeta) { m.Run = "c-1-r0009" }, "it is of run c-1-r0009"},
		"another campaign": {func(_ string, m *model.RunMeta) { m.Campaign = "c-9" }, "campaign c-9"},
		"another scenario": {func(_ string, m *model.RunMeta) { m.Scenario.Seed = 99 }, "another scenario"},
		"a long name":      {func(_ string, m *model.RunMeta) { m.Target = strings.Repeat("x", 2<<20) }, "meta.json has"},
		"a replay":         {func(_ string, m *model.RunMeta) { m.ReplayOf = "c-0-r0001" }, "it is of run"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClass(t)
			c.starts(&hand{name: "liar", change: l.change})
			o := c.offer()
			if _, err := c.one(t.Context(), o, item(1)); err == nil || !strings.Contains(err.Error(), l.want) || !strings.Contains(err.Error(), "liar") {
				t.Errorf("it is taken: %v", err)
			}
			if _, err := os.Stat(c.record("c-1-r0001")); err == nil {
				t.Error("the record is there")
			}
		})
	}
}

// hostile are archives of which nothing may be written outside of the folder.
func hostile(t *testing.T, outside string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{"garbage": []byte("garbage")}
	for name, headers := range map[string][]tar.Header{
		"above":         {{Name: "../outside", Typeflag: tar.TypeReg}},
		"absolute":      {{Name: outside, Typeflag: tar.TypeReg}},
		"link":          {{Name: "l", Linkname: "/etc", Typeflag: tar.TypeSymlink}},
		"through link":  {{Name: "l", Linkname: filepath.Dir(outside), Typeflag: tar.TypeSymlink}, {Name: "l/outside", Typeflag: tar.TypeReg}},
		"hard link":     {{Name: "l", Linkname: outside, Typeflag: tar.TypeLink}},
		"through":       {{Name: "a/../../outside", Typeflag: tar.TypeReg}},
		"device":        {{Name: "d", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}},
		"disk":          {{Name: "d", Typeflag: tar.TypeBlock, Devmajor: 8}},
		"FIFO":          {{Name: "d", Typeflag: tar.TypeFifo}},
		"folder":        {{Name: "d/", Typeflag: tar.TypeDir}},
		"itself":        {{Name: ".", Typeflag: tar.TypeReg}},
		"twice":         {{Name: "x", Typeflag: tar.TypeReg}, {Name: "x", Typeflag: tar.TypeReg}},
		"file and path": {{Name: "x", Typeflag: tar.TypeReg}, {Name: "x/y", Typeflag: tar.TypeReg}},
		"huge":          {{Name: "x", Typeflag: tar.TypeReg, Size: ofSoftware.bytes + 1}},
		"half":          {{Name: "x", Typeflag: tar.TypeReg, Size: 1000}},
	} {
		var b bytes.Buffer
		z, err := zstd.NewWriter(&b)
		if err != nil {
			t.Fatal(err)
		}
		w := tar.NewWriter(z)
		for _, h := range headers {
			err = errors.Join(err, w.WriteHeader(&h))
		}
		if last := headers[len(headers)-1]; last.Size == 0 { // else there is no content
			err = errors.Join(err, w.Close())
		}
		if err = errors.Join(err, z.Close()); err != nil {
			t.Fatal(err)
		}
		out[name] = b.Bytes()
	}
	return out
}

// TestArchivesOfOthers: what leads out of the folder, or is no regular file, is refused.
func TestArchivesOfOthers(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	for name, archive := range hostile(t, outside) {
		dir := filepath.Join(t.TempDir(), "in")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := unpack(bytes.NewReader(archive), dir, forOwner, ofRecord); err == nil {
			t.Errorf("%s: it is taken", name)
		}
		writesNothing(t, name, dir, outside)
	}
}

// writesNothing fails if there is a file at outside, or beside dir, which is alone in its folder.
func writesNothing(t *testing.T, name, dir, outside string) {
	t.Helper()
	if _, err := os.Lstat(outside); err == nil {
		t.Errorf("%s: a file was made outside", name)
	}
	beside, err := os.ReadDir(filepath.Dir(dir))
	if err != nil || len(beside) != 1 {
		t.Errorf("%s: a file was made beside the folder: %v, %v", name, beside, err)
	}
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !d.Type().IsRegular() {
			t.Errorf("%s: %s is a %v", name, path, d.Type())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestArchivesAreBounded in files and bytes.
func TestArchivesAreBounded(t *testing.T) {
	from := t.TempDir()
	for i := range 4 {
		if err := os.WriteFile(filepath.Join(from, fmt.Sprint(i)), make([]byte, 1000), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		most  bounds
		taken bool
	}{{bounds{4, 4000}, true}, {bounds{3, 4000}, false}, {bounds{4, 3999}, false}} {
		var b bytes.Buffer
		to := t.TempDir()
		err := errors.Join(pack(from, &b), unpack(&b, to, forOwner, c.most))
		if c.taken != (err == nil) || !c.taken && !strings.Contains(err.Error(), fmt.Sprintf("more than %d files or %d bytes", c.most.files, c.most.bytes)) {
			t.Errorf("4 files of 4000 bytes, at most %+v: %v", c.most, err)
		}
	}
}

func TestArchivesKeepWhatIsThere(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	for name, mode := range map[string]os.FileMode{"a": 0o600, "b/c": 0o755} {
		f := filepath.Join(from, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(f), 0o700), os.WriteFile(f, []byte(name), mode), os.Chtimes(f, old, old)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(from, "link")); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := errors.Join(pack(from, &b), unpack(&b, to, forOwner, ofRecord)); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]os.FileMode{"a": 0o600, "b/c": 0o700} {
		st, err := os.Stat(filepath.Join(to, name))
		if err != nil || st.Mode().Perm() != mode || !st.ModTime().Equal(old) {
			t.Errorf("%s: %v, %v", name, st, err)
		}
		if text, err := os.ReadFile(filepath.Join(to, name)); err != nil || string(text) != name {
			t.Errorf("%s has %q, %v", name, text, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(to, "link")); err == nil {
		t.Error("a link was sent")
	}
}

// TestWhoMayJoin: nobody without an invitation of this daemon that is not withdrawn.
func TestWhoMayJoin(t *testing.T) {
	c := newClass(t)
	ca := Authority{filepath.Join(c.dir, "cluster")}
	h := c.starts(&hand{name: "m1"})
	c.until("it has joined", func() bool { return len(c.hub.Runners()) == 1 })
	if err := ca.Revoke("m1"); err != nil {
		t.Fatal(err)
	}
	c.until("it is gone", func() bool { return len(c.hub.Runners()) == 0 && !h.r.nc.IsConnected() })
	select {
	case <-h.done:
		if !errors.Is(h.ended, ErrRefused) {
			t.Errorf("a runner whose invitation was withdrawn: %v", h.ended)
		}
	case <-time.After(patience):
		t.Error("a runner whose invitation was withdrawn goes on")
	}
	stranger, err := (Authority{t.TempDir()}).Invite("m2", c.hub.Address())
	if err != nil {
		t.Fatal(err)
	}
	mine, err := ca.Invite("m2", c.hub.Address())
	if err != nil {
		t.Fatal(err)
	}
	half := stranger
	half.Authority = mine.Authority // it trusts this daemon, which does not know it
	for name, i := range map[string]Invitation{"of another daemon": stranger, "with another daemon's certificate": half} {
		conf, err := i.client()
		if err != nil {
			t.Fatal(err)
		}
		if nc, err := nats.Connect(i.URL, nats.Secure(conf)); err == nil {
			nc.Close()
			t.Errorf("an invitation %s lets in", name)
		}
	}
	// Who is on this machine and knows the daemon's password still has no certificate.
	bare := &tls.Config{InsecureSkipVerify: true}
	if nc, err := nats.Connect(mine.URL, nats.Secure(bare), nats.UserInfo(daemonUser, c.hub.broker.password)); err == nil {
		nc.Close()
		t.Error("the daemon's own name lets in without a certificate")
	}
	if c.hub.broker.Check(stub{password: c.hub.broker.password, address: &net.TCPAddr{}}) {
		t.Error("a connection from outside is taken for the daemon's own")
	}
	if c.hub.broker.Check(stub{password: "another"}) {
		t.Error("a wrong password is taken")
	}
	if !c.hub.broker.Check(stub{password: c.hub.broker.password}) {
		t.Error("the daemon's own connection is refused")
	}
}

// stub is a connection without TLS.
type stub struct {
	server.ClientAuthentication
	password string
	address  net.Addr
}

func (s stub) GetTLSConnectionState() *tls.ConnectionState { return nil }
func (s stub) RemoteAddress() net.Addr                     { return s.address }
func (s stub) GetOpts() *server.ClientOpts                 { return &server.ClientOpts{Password: s.password} }
func (s stub) RegisterUser(*server.User)                   {}

// TestANewInvitationVoidsTheOldOne: who had it is disconnected.
func TestANewInvitationVoidsTheOldOne(t *testing.T) {
	c := newClass(t)
	ca := Authority{filepath.Join(c.dir, "cluster")}
	old := c.starts(&hand{name: "m1"})
	c.until("it has joined", func() bool { return len(c.hub.Runners()) == 1 })
	if _, err := ca.Invite("m1", c.hub.Address()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-old.done:
		if !errors.Is(old.ended, ErrRefused) {
			t.Error(old.ended)
		}
	case <-time.After(patience):
		t.Error("a runner with an invitation that is void goes on")
	}
	if _, err := ca.Invite(daemonUser, c.hub.Address()); err == nil {
		t.Error("a runner may be called as the daemon is")
	}
}

// TestWordsThatTheDaemonDidNotSay: a member of the broker that gets words to a runner's ears,
// past its permissions, has it do nothing.
func TestWordsThatTheDaemonDidNotSay(t *testing.T) {
	c := newClass(t)
	took, ends := make(chan string, 10), make(chan struct{})
	c.starts(&hand{name: "m1", slots: 2, makes: func(ctx context.Context, w model.WorkItem) error {
		took <- w.Run
		<-ends
		return ctx.Err()
	}})
	o := c.offer()
	made := make(chan error)
	go func() {
		_, err := c.one(t.Context(), o, item(1))
		made <- err
	}()
	<-took
	n, ctx := c.hub.n, t.Context()
	forged, err := json.Marshal(item(2))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.hub.js.Publish(ctx, n.subject("item", "c-1", "c-1-r0002"), forged); err != nil {
		t.Fatal(err)
	}
	// A signature for another subject is none.
	m, err := c.hub.signed(n.subject("item", "c-1", "c-1-r0004"), forged)
	if err != nil {
		t.Fatal(err)
	}
	m.Subject = n.subject("item", "c-1", "c-1-r0003")
	if _, err := c.hub.js.PublishMsg(ctx, m); err != nil {
		t.Fatal(err)
	}
	if err := c.hub.nc.Publish(n.subject("stop", "c-1", allRuns), nil); err != nil {
		t.Fatal(err)
	}
	work, err := json.Marshal(sealed{Value: []byte(`{"campaign":"c-0","version":"v1","target":"evil"}`)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.hub.campaigns.Put(ctx, "c-0", work); err != nil {
		t.Fatal(err)
	}
	c.until("what was forged is thrown away", func() bool {
		info, err := c.hub.items.Info(ctx)
		return err == nil && info.State.Msgs == 1
	})
	close(ends)
	if err := <-made; err != nil {
		t.Errorf("the true run: %v", err)
	}
	if len(took) > 0 || len(c.makers("c-1-r0002"))+len(c.makers("c-1-r0003")) > 0 {
		t.Error("a run was made that the daemon did not hand out")
	}
}

// TestAnItemThatIsTakenAway by a member that does not make the run is handed out again.
func TestAnItemThatIsTakenAway(t *testing.T) {
	c := newClass(t)
	o := c.offer()
	h := c.starts(&hand{name: "m1", lacks: errors.New("it takes nothing")})
	o.slots.set(1)
	made := make(chan error)
	go func() {
		_, err := o.Run(t.Context(), item(1), c.record("c-1-r0001"), func(string) error { return nil })
		made <- err
	}()
	c.until("it is handed out", func() bool {
		info, err := c.hub.items.Info(t.Context())
		return err == nil && info.State.Msgs == 1
	})
	if err := c.hub.items.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.end()
	<-h.done
	c.starts(&hand{name: "m2"})
	if err := <-made; err != nil {
		t.Error(err)
	}
}

// TestWhatARunnerMayDo: it hands out no runs, and hears and speaks for no other.
func TestWhatARunnerMayDo(t *testing.T) {
	c := newClass(t)
	h := &hand{name: "m1"}
	i, err := Authority{filepath.Join(c.dir, "cluster")}.Invite("m1", c.hub.Address())
	if err != nil {
		t.Fatal(err)
	}
	h.c = c
	denied := make(chan error, 10)
	conf, err := i.client()
	if err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(i.URL, nats.Secure(conf), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { denied <- err }))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	n := names(DefaultName)
	for _, subject := range []string{n.subject("item", "c-1", "c-1-r0001"), n.subject("runner", "m2"), n.subject("result", "c-1", "c-1-r0001", "m2"), n.subject("doing", "m2", "c-1-r0001"), n.subject("back", "m2"), n.subject("stop", "c-1", "all"), n.subject("hello"),
		"$KV." + n.campaigns() + ".c-1", "$O." + n.files() + ".M.x", "$JS.API.STREAM.DELETE." + n.items(), "$O." + n.records("m2") + ".M.x", "$JS.API.STREAM.PURGE.OBJ_" + n.records("m2"), "$JS.API.DIRECT.GET.OBJ_" + n.records("m2"), "$JS.API.STREAM.MSG.GET.OBJ_" + n.records("m2"), "$JS.API.STREAM.PURGE." + n.results(), "$JS.API.STREAM.CREATE.x", "$SYS.REQ.SERVER.PING"} {
		if err := errors.Join(nc.Publish(subject, []byte("{}")), nc.Flush()); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-denied:
			if !errors.Is(err, nats.ErrPermissionViolation) {
				t.Errorf("publish %s: %v", subject, err)
			}
		case <-time.After(patience):
			t.Errorf("a runner may publish %s", subject)
		}
	}
	for _, subject := range []string{">", n.subject("item", ">"), n.subject("result", ">"), "_INBOX_m2.>", "_INBOX.>", "$SYS.>"} {
		if _, err := nc.Subscribe(subject, func(*nats.Msg) {}); err != nil {
			t.Fatal(err)
		}
		if err := nc.Flush(); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-denied:
			if !errors.Is(err, nats.ErrPermissionViolation) {
				t.Errorf("subscribe %s: %v", subject, err)
			}
		case <-time.After(patience):
			t.Errorf("a runner may hear %s", subject)
		}
	}
}

// TestRunnersThatDoNotFit say what they lack, and make nothing.
func TestRunnersThatDoNotFit(t *testing.T) {
	c := newClass(t)
	c.starts(&hand{name: "bare", lacks: errors.New("there is no redis-server:\ninstall it")})
	o := c.offer("hardware-switch")
	c.until("it says which word it lacks", func() bool {
		l := c.hub.Runners()
		return len(l) == 1 && l[0].State == model.RunnerUnfit && strings.Contains(l[0].Reason, "hardware-switch")
	})
	o.End()
	o = c.offer("lab")
	c.until("it says what its machine lacks", func() bool {
		l := c.hub.Runners()
		return len(l) == 1 && l[0].State == model.RunnerUnfit && l[0].Reason == "there is no redis-server: install it"
	})
	o.End()
	o, err := c.hub.Offer(t.Context(), Work{Campaign: "c-2", Version: "v2"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer o.End()
	c.until("it says which version it is", func() bool {
		l := c.hub.Runners()
		return len(l) == 1 && strings.Contains(l[0].Reason, "is netsplit v1 and the daemon is v2")
	})
}

func TestInvitations(t *testing.T) {
	dir := t.TempDir()
	a := Authority{dir}
	for _, name := range []string{"", "a.b", "../x", "a b", "*", ">", strings.Repeat("a", 65)} {
		if _, err := a.Invite(name, "127.0.0.1:1"); err == nil {
			t.Errorf("a runner may be called %q", name)
		}
	}
	for _, address := range []string{"", "host", ":", "1.2.3.4"} {
		if _, err := a.Invite("m1", address); err == nil && address != ":" {
			t.Errorf("%q is an address", address)
		}
	}
	i, err := a.Invite("m1", "127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Revoke("m9"); err == nil {
		t.Error("one that was never made is withdrawn")
	}
	now := time.Now()
	conf, err := i.client()
	if err != nil {
		t.Fatal(err)
	}
	leaf := conf.Certificates[0].Leaf
	if err := i.valid(leaf, now.Add(3*365*24*time.Hour)); err == nil || !strings.Contains(err.Error(), "make a new one") {
		t.Errorf("an old one: %v", err)
	}
	if err := i.valid(leaf, now.Add(-24*time.Hour)); err == nil || !strings.Contains(err.Error(), "clock") {
		t.Errorf("with a clock that is set back: %v", err)
	}
	file := filepath.Join(dir, "m1.join")
	text, err := json.Marshal(i)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text []byte
		mode os.FileMode
		want string // "": it is taken
	}{{text, 0o600, ""}, {text, 0o644, "chmod 600"}, {[]byte("{}"), 0o600, "is no invitation"}, {[]byte("root:x:0:0"), 0o644, "is no invitation"}} {
		if err := errors.Join(os.WriteFile(file, c.text, c.mode), os.Chmod(file, c.mode)); err != nil {
			t.Fatal(err)
		}
		_, err := ReadInvitation(file)
		if (err == nil) != (c.want == "") || !strings.Contains(fmt.Sprint(err), c.want) || strings.Contains(fmt.Sprint(err), "root:") {
			t.Errorf("%.20q, mode %o: %v", c.text, c.mode, err)
		}
	}
}

// TestGarbageAtTheBroker: what is no TLS, or no NATS, disturbs nobody.
func TestGarbageAtTheBroker(t *testing.T) {
	c := newClass(t)
	c.starts(&hand{name: "m1"})
	o := c.offer()
	junk := make([]byte, 1<<20)
	if _, err := rand.Read(junk); err != nil {
		t.Fatal(err)
	}
	for _, text := range [][]byte{junk, []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), []byte("CONNECT {\"user\":\"daemon\",\"pass\":\"x\"}\r\nPING\r\n")} {
		conn, err := net.Dial("tcp", c.hub.Address())
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		_, _ = conn.Write(text) // the broker may hang up
		_, _ = io.Copy(io.Discard, conn)
		_ = conn.Close()
	}
	if _, err := c.one(t.Context(), o, item(1)); err != nil {
		t.Error(err)
	}
}

// TestAnAddressThatIsTaken is told.
func TestAnAddressThatIsTaken(t *testing.T) {
	c := newClass(t)
	_, err := Open(t.Context(), Config{Dir: t.TempDir(), Address: c.hub.Address(), Goes: c.goes, Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a second broker at one address: %v", err)
	}
}
