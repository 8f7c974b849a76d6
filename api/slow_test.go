package api_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"netsplit/api"
)

// patience is how long a test waits for what comes within some seconds.
const patience = 60 * time.Second

// listens serves h at an address, which it returns.
func listens(t *testing.T, h http.Handler) string {
	t.Helper()
	ln, err := api.Listen(t.Context(), api.ListenConfig{Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, h, small{ln})
	return ln.Addr().String()
}

// small has connections that hold little of an answer: who does not read is noticed soon.
type small struct{ net.Listener }

func (l small) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(4096)
	}
	return c, err
}

func dials(t *testing.T, address string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.(*net.TCPConn)
}

// dribbles sends head and then a byte at a time, until the daemon hangs up. It returns what the
// daemon answers.
func dribbles(t *testing.T, address, head string) string {
	t.Helper()
	c := dials(t, address)
	if _, err := io.WriteString(c, head); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	defer close(over)
	go func() {
		for {
			select {
			case <-over:
				return
			case <-time.After(100 * time.Millisecond):
			}
			if _, err := io.WriteString(c, "x"); err != nil {
				return
			}
		}
	}()
	_ = c.SetReadDeadline(time.Now().Add(patience))
	answer, err := io.ReadAll(c)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%.60q: the daemon still waits", head)
	}
	return string(answer)
}

// TestClientsThatAreSlowToAsk are hung up on, with and without credentials, and hold up nobody.
func TestClientsThatAreSlowToAsk(t *testing.T) {
	t.Parallel()
	address := listens(t, handler(t, newFake(t)))
	const full = "Authorization: Bearer " + token + "\r\n"
	for name, c := range map[string]struct{ head, want string }{
		"nothing but headers":            {"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: ", ""},
		"half a request line":            {"GET /live", ""},
		"a body":                         {"POST /v1/campaigns HTTP/1.1\r\nHost: 127.0.0.1\r\n" + full + "Content-Type: application/json\r\nContent-Length: 60000\r\n\r\n{", "408"},
		"an upload without credentials":  {"POST /v1/targets HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-tar\r\nContent-Length: 60000\r\n\r\n", "401"},
		"a body that nobody asked for":   {"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 60000\r\n\r\n", "200"},
		"a body to the metrics":          {"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n" + full + "Content-Length: 60000\r\n\r\n", "200"},
		"a body without an operation":    {"POST /none HTTP/1.1\r\nHost: 127.0.0.1\r\n" + full + "Content-Length: 60000\r\n\r\n", "404"},
		"a body of another site's page":  {"POST /v1/reset HTTP/1.1\r\nHost: 127.0.0.1\r\n" + full + "Sec-Fetch-Site: cross-site\r\nContent-Length: 60000\r\n\r\n", "403"},
		"a body that announces a length": {"POST /v1/reset HTTP/1.1\r\nHost: elsewhere.example\r\nContent-Length: 60000\r\n\r\n", "421"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer := dribbles(t, address, c.head)
			if c.want == "" && strings.Contains(answer, " 200 ") || !strings.HasPrefix(answer, "HTTP/1.1 "+c.want) && c.want != "" {
				t.Errorf("%.100q, want %s", answer, c.want)
			}
		})
	}
	t.Run("another client", func(t *testing.T) {
		for range 20 {
			res, err := http.Get("http://" + address + "/livez")
			if err != nil || res.StatusCode != 200 {
				t.Fatal(res, err)
			}
			_ = res.Body.Close()
		}
	})
}

// TestABodyThatNeverEnds is refused while it arrives.
func TestABodyThatNeverEnds(t *testing.T) {
	t.Parallel()
	address := listens(t, handler(t, newFake(t)))
	for name, c := range map[string]struct {
		path, header, want string
	}{
		"a campaign":                    {"/v1/campaigns", "Authorization: Bearer " + token + "\r\nContent-Type: application/json\r\n", "413"},
		"an upload":                     {"/v1/targets", "Authorization: Bearer " + token + "\r\nContent-Type: application/x-tar\r\n", "413"},
		"an upload without credentials": {"/v1/targets", "Content-Type: application/x-tar\r\n", "401"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := dials(t, address)
			if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%sTransfer-Encoding: chunked\r\n\r\n", c.path, c.header); err != nil {
				t.Fatal(err)
			}
			var taken atomic.Int64
			chunk := "10000\r\n" + strings.Repeat(" ", 64<<10) + "\r\n"
			go func() {
				for taken.Load() < 1<<30 {
					n, err := io.WriteString(conn, chunk)
					taken.Add(int64(n))
					if err != nil {
						return
					}
				}
			}()
			_ = conn.SetReadDeadline(time.Now().Add(patience))
			line, err := bufio.NewReader(conn).ReadString('\n')
			if err != nil || !strings.Contains(line, c.want) {
				t.Errorf("%q, %v, want %s", line, err, c.want)
			}
			if n := taken.Load(); n > 64<<20 {
				t.Errorf("%d bytes were taken", n)
			}
		})
	}
}

// TestClientsThatDoNotRead what they asked for are hung up on, and others are answered
// meanwhile.
func TestClientsThatDoNotRead(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	for range 300 { // more than sockets hold
		f.emit("run", strings.Repeat("x", 64<<10), "fail")
	}
	f.runPath = t.TempDir()
	large, err := os.Create(filepath.Join(f.runPath, "events.jsonl"))
	if err == nil {
		err = errors.Join(large.Truncate(256<<20), large.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	inner := handler(t, f, func(c *api.Config) { c.WithPatience(time.Second, time.Second) })
	ended := make(chan string, 10)
	address := listens(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			select {
			case ended <- r.URL.Path:
			default: // nobody waits for it
			}
		}()
		inner.ServeHTTP(w, r)
	}))
	for _, path := range []string{"/v1/events", "/v1/runs/c-1-r0001/files/events.jsonl"} {
		c := dials(t, address)
		_ = c.SetReadBuffer(4096)
		if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n\r\n", path, token); err != nil {
			t.Fatal(err)
		}
		res, err := http.Get("http://" + address + "/livez")
		if err != nil || res.StatusCode != 200 {
			t.Fatal(res, err)
		}
		_ = res.Body.Close()
		for end := time.After(patience); ; {
			select {
			case got := <-ended:
				if got != path { // that of the other client
					continue
				}
			case <-end:
				t.Errorf("%s goes on for a client that does not read", path)
			}
			break
		}
	}
	// One that asks again and again, needs no credentials, and reads no answer.
	c := dials(t, address)
	_ = c.SetReadBuffer(4096)
	_ = c.SetWriteDeadline(time.Now().Add(patience))
	ask := strings.Repeat("GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 1000)
	for err == nil {
		_, err = io.WriteString(c, ask)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the daemon holds a client that reads no answer")
	}
}

// deadlines is a ResponseWriter that counts.
type deadlines struct {
	*httptest.ResponseRecorder
	renewed, largest int
}

func (d *deadlines) SetWriteDeadline(time.Time) error { d.renewed++; return nil }

func (d *deadlines) Write(b []byte) (int, error) {
	d.largest = max(d.largest, len(b))
	return d.ResponseRecorder.Write(b)
}

// TestALargeFileTakesWhatItTakes: a client that goes on reading has the bound for each piece anew.
func TestALargeFileTakesWhatItTakes(t *testing.T) {
	f := newFake(t)
	f.runPath = t.TempDir()
	if err := os.WriteFile(filepath.Join(f.runPath, "events.jsonl"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	d := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	letIn(handler(t, f)).ServeHTTP(d, httptest.NewRequest("GET", "http://127.0.0.1/v1/runs/c-1-r0001/files/events.jsonl", nil))
	if d.Body.Len() != 1<<20 || d.largest > 64<<10 || d.renewed < 16 {
		t.Errorf("%d bytes in pieces of at most %d, and %d deadlines", d.Body.Len(), d.largest, d.renewed)
	}
}
