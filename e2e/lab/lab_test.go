// Long tests of the lab: what takes many rounds, or outages of many seconds.
package lab_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"netsplit/internal/labtest"
	"netsplit/model"
	"netsplit/testbed/lab"
)

// upArg makes the test binary a process that makes and removes a lab of its
// own for ever, until it is killed.
const upArg = "lab-churn"

var hosts = []model.NodeID{"n1", "n2", "n3"}

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == upArg {
		for {
			if _, err := lab.Up(context.Background(), lab.Spec{Name: os.Args[2], Hosts: hosts, Owner: os.Getpid()}); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
			if err := lab.Down(context.Background(), os.Args[2]); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
		}
	}
	os.Exit(labtest.Main(m.Run))
}

// TestChurn lets three processes make and remove labs while each is killed
// and started again at random moments, beside a lab that must not suffer.
func TestChurn(t *testing.T) {
	const rounds = 40
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	steady, err := lab.Up(t.Context(), lab.Spec{Name: "steady", Hosts: hosts})
	if err != nil {
		t.Fatal(err)
	}
	type churner struct {
		cmd *exec.Cmd
		out *strings.Builder
	}
	start := func(i int) churner {
		c := churner{exec.Command(exe, upArg, fmt.Sprintf("churn%d", i)), new(strings.Builder)}
		c.cmd.Stdout, c.cmd.Stderr = c.out, c.out
		if err := c.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return c
	}
	var churners [3]churner
	for i := range churners {
		churners[i] = start(i)
	}
	stop := func(i int) {
		churners[i].cmd.Process.Kill()
		churners[i].cmd.Wait()
		if said := churners[i].out.String(); said != "" {
			t.Errorf("churn%d: %s", i, said)
		}
	}
	for range rounds {
		time.Sleep(time.Duration(rng.IntN(600)) * time.Millisecond)
		i := rng.IntN(len(churners))
		stop(i)
		churners[i] = start(i)
	}
	for i := range churners {
		stop(i)
	}
	st, err := lab.Default().Show(t.Context(), "steady")
	if err != nil || st.Problem != "" {
		t.Errorf("the lab beside them: %+v, %v", st, err)
	}
	if err := steady.Down(t.Context()); err != nil {
		t.Error(err)
	}
	for _, dir := range []string{"/run/netns", "/run/netsplit"} {
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("left in %s: %v", dir, left)
		}
	}
	links, err := netlink.LinkList()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		if l.Attrs().Name != "lo" {
			t.Errorf("left: link %s", l.Attrs().Name)
		}
	}
	// A zombie is dead, and so is one in brackets, whose memory is gone; it waits for its
	// parent, or for a CPU.
	if out, _ := exec.Command("ps", "-eo", "stat,pid,args").Output(); slices.ContainsFunc(strings.Split(string(out), "\n"),
		func(line string) bool {
			return strings.Contains(line, "ovs") && !strings.HasPrefix(line, "Z") && !strings.Contains(line, "[ovs")
		}) {
		t.Errorf("left: %s", out)
	}
}

// TestComesBackSoonAfterAnOutage shows what TuneController is for: without it
// a switch comes back 4 to 6 s after its controller (measured on OVS 3.1).
func TestComesBackSoonAfterAnOutage(t *testing.T) {
	l, err := lab.Up(t.Context(), lab.Spec{Name: "demo", Hosts: hosts, Controller: "tcp:127.0.0.1:7653"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Down(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	first := listen(t, "127.0.0.1:7653")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := l.TuneController(ctx); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		first.close()
		time.Sleep(10 * time.Second)
		first = listen(t, "127.0.0.1:7653")
		began := time.Now()
		select {
		case <-first.came:
			t.Logf("outage %d: back after %v", i, time.Since(began))
		case <-time.After(3 * time.Second):
			t.Errorf("outage %d: not back 3 s after the controller", i)
		}
	}
	first.close()
}

// controller says hello and answers echoes, nothing else.
type controller struct {
	l    net.Listener
	came chan struct{} // closed at the first hello
	gone context.CancelFunc
}

func listen(t *testing.T, addr string) *controller {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &controller{l: l, came: make(chan struct{}), gone: cancel}
	t.Cleanup(c.close)
	go func() {
		for n := 0; ; n++ {
			conn, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				continue
			}
			context.AfterFunc(ctx, func() { conn.Close() })
			if n == 0 {
				close(c.came)
			}
			go answer(conn)
		}
	}()
	return c
}

func (c *controller) close() {
	c.l.Close()
	c.gone()
}

func answer(c net.Conn) {
	defer c.Close()
	c.Write([]byte{4, 0, 0, 8, 0, 0, 0, 1})
	for {
		h := make([]byte, 8)
		if _, err := io.ReadFull(c, h); err != nil {
			return
		}
		body := make([]byte, max(0, int(binary.BigEndian.Uint16(h[2:]))-8))
		if _, err := io.ReadFull(c, body); err != nil {
			return
		}
		if h[1] == 2 { // echo request
			h[1] = 3
			c.Write(append(h, body...))
		}
	}
}
