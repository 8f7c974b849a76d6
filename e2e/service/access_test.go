package service

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"netsplit/e2e/harness"
)

// Users of the machine beside nobody, and root, who starts the daemons here: one whose
// socket's place somebody else has, and one who starts a daemon.
const another, ordinary = 65533, 65532

// as runs a program as that user, in a folder that everybody reaches.
func as(t *testing.T, user uint32, env []string, name string, args ...string) *harness.Process {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = "/"
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	return harness.StartCommand(t, cmd)
}

// curl asks as that user and returns the status of the answer, "000" for none, and its body.
func curl(t *testing.T, user uint32, args ...string) (status, body string) {
	t.Helper()
	r := as(t, user, nil, "curl", append([]string{"-s", "-m", "10", "-w", "\n%{http_code}"}, args...)...).Wait(t, time.Minute)
	i := strings.LastIndex(r.Stdout, "\n")
	if i < 0 {
		t.Fatalf("curl %v: %s", args, r)
	}
	return r.Stdout[i+1:], r.Stdout[:i]
}

// openDir is a folder that every user reaches.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "netsplit-access-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

const fullToken = "full-0123456789abcdef"

func tokenFile(t *testing.T, dir string, mode os.FileMode, user int) string {
	t.Helper()
	file := filepath.Join(dir, fmt.Sprintf("token-%o-%d", mode, user))
	write(t, file, fullToken+"\n")
	if err := os.Chmod(file, mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(file, user, user); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestAnotherUserGetsNothing: nobody asks by loopback and by the socket, and reads the
// files of tokens.
func TestAnotherUserGetsNothing(t *testing.T) {
	harness.LeavesNothing(t)
	dir := openDir(t)
	d := serve(t, "--runs-dir", dir, "--token-file", tokenFile(t, dir, 0o600, 0))
	made := harness.Run(t, "access", "read-token")
	token := strings.TrimSpace(made.Stdout)
	if made.Code != 0 || len(token) < 20 {
		t.Fatalf("access read-token: %s", made)
	}
	url := "http://" + d.API
	came := filepath.Join(openDir(t), "came")
	target := filepath.Join(filepath.Dir(came), "target.yaml")
	good, err := os.ReadFile(gossip(t))
	if err != nil {
		t.Fatal(err)
	}
	write(t, target, string(good))
	for _, args := range [][]string{{"/"}, {"/static/page.js"}, {"/metrics"}, {"/v1/campaigns"}, {"/v1/events"}, {"/v1/openapi.json"}, {"/v1/version"}, {"/nothing"},
		{"/v1/campaigns", "-H", "Content-Type: application/json", "-d", `{"target":"` + target + `"}`}, {"/v1/reset", "-X", "POST"},
		{"/v1/access/page", "-X", "POST"}, {"/v1/access/read-token", "-X", "POST"}, {"/metrics", "-H", "Authorization: Bearer " + token[1:]}} {
		status, body := curl(t, nobody, append([]string{url + args[0]}, args[1:]...)...)
		if status != "401" || !strings.Contains(body, "urn:netsplit:problem:unauthorized") || strings.Contains(body, token[1:]) {
			t.Errorf("nobody asks %v: %s %s", args, status, body)
		}
	}
	if status, body := curl(t, nobody, url+"/healthz"); status != "200" || strings.Contains(body, "store") {
		t.Errorf("health: %s %s", status, body)
	}
	var list struct{ Items []any }
	if d.Call("GET", "/v1/campaigns", nil, &list); len(list.Items) != 0 {
		t.Errorf("campaigns: %v", list.Items)
	}

	// The socket is behind a closed door, and were that open, the kernel says who comes.
	bySocket := []string{"--unix-socket", d.Socket, "http://localhost/v1/campaigns"}
	if status, _ := curl(t, nobody, bySocket...); status != "000" {
		t.Errorf("nobody by the socket: %s", status)
	}
	if status, _ := curl(t, 0, bySocket...); status != "200" {
		t.Errorf("root by the socket: %s", status)
	}
	chmod := func(folder, socket os.FileMode) {
		t.Helper()
		if os.Chmod(filepath.Dir(d.Socket), folder) != nil || os.Chmod(d.Socket, socket) != nil {
			t.Fatal("chmod")
		}
	}
	chmod(0o755, 0o777)
	status, body := curl(t, nobody, bySocket...)
	if status != "403" || !strings.Contains(body, "urn:netsplit:problem:forbidden") {
		t.Errorf("nobody by an open socket: %s %s", status, body)
	}
	chmod(0o700, 0o600)

	for _, file := range []string{filepath.Join(dir, "access", "read-token"), filepath.Join(dir, "token-600-0")} {
		if r := as(t, nobody, nil, "cat", file).Wait(t, time.Minute); r.Code == 0 || r.Stdout != "" {
			t.Errorf("nobody reads %s: %s", file, r)
		}
		if _, err := os.ReadFile(file); err != nil {
			t.Error(err)
		}
	}
	for _, args := range [][]string{{"--api", d.API}, {"--api", url}, {"--api", "unix:" + d.Socket}, {}} {
		if r := as(t, nobody, nil, harness.Bin("netsplit"), append([]string{"partition", "list"}, args...)...).Wait(t, time.Minute); r.Code == 0 {
			t.Errorf("nobody's command with %v: %s", args, r)
		}
	}

	// Who has a token gets what it is for.
	reads := []string{"-H", "Authorization: Bearer " + token}
	if status, body := curl(t, nobody, append(reads, url+"/metrics")...); status != "200" || !strings.Contains(body, "netsplit_build_info") {
		t.Errorf("metrics with the read-only token: %s", status)
	}
	if status, _ := curl(t, nobody, append(reads, "-X", "POST", url+"/v1/reset")...); status != "403" {
		t.Errorf("reset with the read-only token: %s", status)
	}
	full := []string{"NETSPLIT_TOKEN=" + fullToken}
	if r := as(t, nobody, full, harness.Bin("netsplit"), "invariants", "--api", url).Wait(t, time.Minute); r.Code != 0 {
		t.Errorf("nobody's command with the full token: %s", r)
	}
}

func TestPageOpensOnce(t *testing.T) {
	harness.LeavesNothing(t)
	d := serve(t, "--runs-dir", t.TempDir())
	made := harness.Run(t, "access", "page")
	address := strings.TrimSpace(made.Stdout)
	if made.Code != 0 || !strings.HasPrefix(address, "http://"+d.API+"/") {
		t.Fatalf("access page: %s", made)
	}
	jar := filepath.Join(ownDir(t, nobody), "jar")
	kept := []string{"-b", jar, "-c", jar}
	if status, body := curl(t, nobody, append(kept, "-L", address)...); status != "200" || !strings.Contains(body, "<title>netsplit</title>") {
		t.Errorf("the page: %s %s", status, body)
	}
	if status, body := curl(t, nobody, append(kept, "http://"+d.API+"/v1/campaigns")...); status != "200" || !strings.Contains(body, "items") {
		t.Errorf("what the page asks: %s %s", status, body)
	}
	if _, body := curl(t, nobody, append(kept, "-N", "-m", "2", "http://"+d.API+"/v1/events")...); !strings.HasPrefix(body, ": netsplit\n") {
		t.Errorf("events: %s", body)
	}
	if status, _ := curl(t, nobody, append(kept, "-X", "POST", "http://"+d.API+"/v1/reset")...); status != "403" {
		t.Errorf("a browser resets: %s", status)
	}
	if status, _ := curl(t, nobody, address); status != "401" {
		t.Errorf("the address again: %s", status)
	}
}

// squatter answers whatever comes as a daemon would, and prints it.
const squatter = `
import socket, sys
s = socket.socket(socket.AF_UNIX if sys.argv[1] == "unix" else socket.AF_INET)
s.bind(sys.argv[2] if sys.argv[1] == "unix" else ("127.0.0.1", int(sys.argv[2])))
s.listen()
print("ready", flush=True)
while True:
    c, _ = s.accept()
    try:
        print("came", c.recv(65536), flush=True)
        c.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 30\r\n\r\n" + b'{"version":"x","items":[]    }')
    except OSError:
        pass # whoever came is gone again
    c.close()
`

func squat(t *testing.T, where ...string) *harness.Process {
	t.Helper()
	p := as(t, nobody, nil, "/usr/bin/python3", append([]string{"-c", squatter}, where...)...)
	harness.Until(t, time.Minute, "somebody squats", func() error {
		if p.Stdout() == "" {
			return fmt.Errorf("%s", p.Stderr())
		}
		return nil
	})
	return p
}

// TestWhoHoldsThePortGetsNothing: a process of nobody holds port 7070, or serves the
// socket at the place of another user's. No command sends it anything.
func TestWhoHoldsThePortGetsNothing(t *testing.T) {
	harness.LeavesNothing(t)
	tcp := squat(t, "tcp", "7070")
	t.Setenv("NETSPLIT_TOKEN", fullToken)
	for _, args := range [][]string{{"partition", "list"}, {"partition", "list", "--api", "127.0.0.1:7070"}, {"doctor"}, {"access", "page"},
		{"partition", "list", "--api-token-file", tokenFile(t, t.TempDir(), 0o600, 0)}, {"access", "read-token", "--api", "http://0.0.0.0:7070"}} {
		cmd := exec.Command(harness.Bin("netsplit"), args...)
		if slices.Contains(args, "127.0.0.1:7070") {
			cmd.Env = append(os.Environ(), "NETSPLIT_TOKEN=")
		}
		if r := harness.StartCommand(t, cmd).Wait(t, time.Minute); r.Code == 0 {
			t.Errorf("%v: %s", args, r)
		}
	}
	if got := tcp.Stdout(); got != "ready\n" {
		t.Errorf("who holds port 7070 was sent %s", got)
	}

	// The folder where that user's socket would be, made by somebody else.
	own := socketFolder(t, another)
	if err := os.Mkdir(own, 0o700); err != nil {
		t.Fatal(err)
	}
	if os.Chmod(own, 0o755) != nil || os.Chown(own, nobody, nobody) != nil {
		t.Fatal(own)
	}
	taken := squat(t, "unix", own+"/7070.sock")
	if err := os.Chmod(own+"/7070.sock", 0o777); err != nil {
		t.Fatal(err)
	}
	env := []string{"NETSPLIT_TOKEN=" + fullToken}
	for _, args := range [][]string{{}, {"--api", "unix:" + own + "/7070.sock"}} {
		r := as(t, another, env, harness.Bin("netsplit"), append([]string{"partition", "list"}, args...)...).Wait(t, time.Minute)
		if r.Code == 0 || !strings.Contains(r.Stderr, "user 65534") || !strings.Contains(r.Stderr, "nothing was sent") {
			t.Errorf("a socket of somebody else, %v: %s", args, r)
		}
	}
	if got := taken.Stdout(); strings.Contains(got, "GET") || strings.Contains(got, fullToken) {
		t.Errorf("who serves the socket was sent %s", got)
	}
	r := as(t, another, nil, harness.Bin("netsplit"), "serve", "--openflow", "127.0.0.1:0", "--listen", "127.0.0.1:0", "--runs-dir", ownDir(t, another)).Wait(t, time.Minute)
	if r.Code == 0 || !strings.Contains(r.Stderr, own+" must be a folder of user 65533") {
		t.Errorf("a daemon whose folder is somebody else's: %s", r)
	}
}

// socketFolder is where that user's socket is. What a killed test left there is removed.
func socketFolder(t *testing.T, user int) string {
	t.Helper()
	dir := fmt.Sprintf("/tmp/netsplit-api-%d", user)
	remove := func() { os.RemoveAll(dir) }
	remove()
	t.Cleanup(remove)
	return dir
}

// ownDir is a folder of that user.
func ownDir(t *testing.T, user int) string {
	t.Helper()
	dir := openDir(t)
	if err := os.Chown(dir, user, user); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestADaemonOfAnOrdinaryUser is for its user and root, without any token.
func TestADaemonOfAnOrdinaryUser(t *testing.T) {
	harness.LeavesNothing(t)
	socketFolder(t, ordinary)
	p := as(t, ordinary, nil, harness.Bin("netsplit"), "serve", "--openflow", "127.0.0.1:0", "--runs-dir", ownDir(t, ordinary))
	var socket string
	harness.Until(t, time.Minute, "it listens", func() error {
		m := regexp.MustCompile(`and unix:(\S+),`).FindStringSubmatch(p.Stderr())
		if m == nil {
			return fmt.Errorf("it said %s", p.Stderr())
		}
		socket = m[1]
		return nil
	})
	for user, want := range map[uint32]bool{ordinary: true, 0: true, nobody: false} {
		args := []string{"access", "page"}
		if user != ordinary {
			args = append(args, "--api", "unix:"+socket)
		}
		r := as(t, user, nil, harness.Bin("netsplit"), args...).Wait(t, time.Minute)
		if (r.Code == 0) != want {
			t.Errorf("user %d: %s", user, r)
		}
	}
	p.Signal(t, syscall.SIGTERM)
	if r := p.Wait(t, time.Minute); r.Code != 0 {
		t.Errorf("%s", r)
	}
	if _, err := os.Stat(socket); !os.IsNotExist(err) {
		t.Errorf("it left its socket: %v", err)
	}
}

// sockets are those that a process listens on: host:port of TCP and paths of Unix sockets.
func sockets(t *testing.T, pid int) (tcp, unix []string) {
	t.Helper()
	own := map[string]bool{}
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil || len(fds) == 0 {
		t.Fatalf("open files of %d: %v", pid, err)
	}
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil {
			if inode, ok := strings.CutPrefix(to, "socket:["); ok {
				own[strings.TrimSuffix(inode, "]")] = true
			}
		}
	}
	lines := func(file string) (out [][]string) {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, file))
		if err != nil {
			t.Fatal(err)
		}
		for sc := bufio.NewScanner(bytes.NewReader(b)); sc.Scan(); {
			out = append(out, strings.Fields(sc.Text()))
		}
		return out[1:]
	}
	for _, file := range []string{"tcp", "tcp6"} {
		for _, w := range lines(file) { // proc(5): state 0A is LISTEN
			if len(w) > 9 && w[3] == "0A" && own[w[9]] {
				var port int
				if _, err := fmt.Sscanf(w[1][strings.LastIndex(w[1], ":")+1:], "%X", &port); err != nil {
					t.Fatal(err)
				}
				tcp = append(tcp, fmt.Sprintf("127.0.0.1:%d", port))
			}
		}
	}
	for _, w := range lines("unix") { // flags 00010000: it listens
		if len(w) > 6 && w[3] == "00010000" && own[w[6]] {
			unix = append(unix, strings.Join(w[7:], " "))
		}
	}
	return tcp, unix
}

func TestACampaignInItsOwnProcessListensNowhere(t *testing.T) {
	harness.LeavesNothing(t)
	dir := t.TempDir()
	p := harness.Start(t, "campaign", gossip(t), "--strategy", "clean", "--clean", "1", "--runs-dir", dir, "--progress", "plain")
	harness.Until(t, time.Minute, "a run is under way", func() error {
		if runs, _ := filepath.Glob(filepath.Join(dir, "c-*", "*", "packets.pcapng")); len(runs) == 0 {
			return fmt.Errorf("it said %s", p.Stderr())
		}
		return nil
	})
	tcp, unix := sockets(t, p.PID())
	// Workloads ask for node actions by a socket of their own.
	unix = slices.DeleteFunc(unix, func(path string) bool {
		st, err := os.Stat(filepath.Dir(path))
		return err == nil && st.Mode().Perm() == 0o700 && strings.HasPrefix(path, os.TempDir()+"/netsplit-control-")
	})
	if len(tcp) != 1 || len(unix) != 0 {
		t.Fatalf("it listens on %v and %v, want a port for switches alone", tcp, unix)
	}
	if b := ask11(t, tcp[0]); strings.HasPrefix(b, "HTTP/") || b == "" || b[0] != 4 {
		t.Errorf("%s speaks no OpenFlow 1.3: %q", tcp[0], b)
	}
	if r := p.Wait(t, 2*time.Minute); r.Code != 0 {
		t.Errorf("%s", r)
	}

	// The same look finds what a daemon has.
	d := serve(t, "--runs-dir", t.TempDir())
	if tcp, unix := sockets(t, d.PID()); !slices.Contains(tcp, d.API) || !slices.Contains(unix, d.Socket) {
		t.Errorf("a daemon listens on %v and %v", tcp, unix)
	}
}

// ask11 sends a request and returns the beginning of what comes back.
func ask11(t *testing.T, addr string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := c.Write([]byte("GET /v1/version HTTP/1.1\r\nHost: localhost\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 64)
	n, _ := c.Read(b) // 0 bytes: the caller says what is wrong with that
	return string(b[:n])
}

// TestBeyondLoopbackByTLS: with a certificate that is made once, and plain HTTP
// only where somebody says so.
func TestBeyondLoopbackByTLS(t *testing.T) {
	harness.LeavesNothing(t)
	dir := openDir(t)
	d := serve(t, "--runs-dir", dir, "--listen", "0.0.0.0:0", "--token-file", tokenFile(t, dir, 0o600, 0))
	said := regexp.MustCompile(`API on https://localhost:(\d+) .*\(certificate sha256:([0-9a-f]{64}), made by netsplit\)`).FindStringSubmatch(d.Stderr())
	if said == nil {
		t.Fatalf("it says %s", d.Stderr())
	}
	addr, print := "127.0.0.1:"+said[1], said[2]
	if status, body := curl(t, nobody, "http://"+addr+"/v1/campaigns", "-H", "Authorization: Bearer "+fullToken); status != "400" || strings.Contains(body, "items") {
		t.Errorf("plain HTTP: %s %s", status, body)
	}
	if status, _ := curl(t, nobody, "-k", "https://"+addr+"/v1/campaigns"); status != "401" {
		t.Errorf("without credentials: %s", status)
	}
	if status, _ := curl(t, 0, "--cacert", filepath.Join(dir, "access", "api-cert.pem"), "https://"+addr+"/v1/campaigns", "-H", "Authorization: Bearer "+fullToken); status != "200" {
		t.Errorf("with the certificate and the token: %s", status)
	}
	list := func(args ...string) harness.Result {
		return harness.Run(t, append([]string{"invariants", "--api-token-file", filepath.Join(dir, "token-600-0")}, args...)...)
	}
	if r := list("--api", "https://"+addr, "--api-fingerprint", print); r.Code != 0 {
		t.Errorf("with the fingerprint: %s", r)
	}
	for _, args := range [][]string{{"--api", "https://" + addr}, {"--api", "https://" + addr, "--api-fingerprint", strings.Repeat("ab", 32)}} {
		if r := list(args...); r.Code == 0 || !strings.Contains(r.Stderr, "--api-fingerprint") {
			t.Errorf("%v: %s", args, r)
		}
	}
	if r := as(t, nobody, nil, "cat", filepath.Join(dir, "access", "api-key.pem")).Wait(t, time.Minute); r.Code == 0 {
		t.Error("nobody reads the key")
	}
	d.Signal(t, syscall.SIGTERM)
	d.Wait(t, time.Minute)

	plain := serve(t, "--runs-dir", dir, "--listen", "0.0.0.0:0", "--insecure")
	if !strings.Contains(plain.Stderr(), "API on http://") {
		t.Errorf("--insecure: it says %s", plain.Stderr())
	}
	again := serve(t, "--runs-dir", filepath.Join(dir, "again"), "--store", filepath.Join(dir, "other.db"), "--listen", "0.0.0.0:0", "--openflow", "127.0.0.1:0")
	if !strings.Contains(again.Stderr(), print) {
		t.Errorf("another certificate was made: it says %s", again.Stderr())
	}
}

// TestTokenFilesOfOthers are refused, by daemon and command.
func TestTokenFilesOfOthers(t *testing.T) {
	harness.LeavesNothing(t)
	dir := openDir(t)
	for file, says := range map[string]string{
		tokenFile(t, dir, 0o644, 0):      "mode 644",
		tokenFile(t, dir, 0o640, 0):      "mode 640",
		tokenFile(t, dir, 0o600, nobody): "belongs to user 65534",
	} {
		refused(t, harness.Start(t, "serve", "--listen", "127.0.0.1:0", "--openflow", "127.0.0.1:0", "--runs-dir", t.TempDir(), "--token-file", file), says)
		refused(t, harness.Start(t, "partition", "list", "--api", "https://127.0.0.1:1", "--api-token-file", file), says)
	}
	r := as(t, nobody, nil, harness.Bin("netsplit"), "partition", "list", "--api", "http://127.0.0.1:1", "--api-token-file", tokenFile(t, dir, 0o604, another)).Wait(t, time.Minute)
	if r.Code == 0 || !strings.Contains(r.Stderr, "belongs to user 65533") {
		t.Errorf("another user's: %s", r)
	}
	// A token is no flag.
	if r := harness.Run(t, "partition", "list", "--api", "http://127.0.0.1:1", "--api-token", fullToken); r.Code != 2 {
		t.Errorf("%s", r)
	}
}
