package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"netsplit/testbed/agent"
	"netsplit/testbed/proc"
)

// firstPort is the source port of the first flow of a load.
const firstPort = 1024

// mix is what a load of many flows is told to be from now on: datagrams of Size
// bytes, Rate a second, in turn from Flows source ports.
type mix struct {
	Flows, Rate, Size int
}

// mixSent is a frame of a load: its number, counted from 0 on, and its source port.
type mixSent struct {
	Num  uint32
	Port uint16
}

// mixOrder is one line to a load: what to be from now on, or a question which
// frames it sent from one time to another, in nanoseconds since 1970. It answers
// with those, oldest first.
type mixOrder struct {
	Be       *mix `json:",omitempty"`
	From, To int64
}

// mixKept is how many frames a load knows the times of.
const mixKept = 1 << 16

// mixFrame is a frame between two hosts, named by MAC and address, without size,
// source port and number.
func mixFrame(toMAC, fromMAC, from, to string) ([]byte, error) {
	frame := make([]byte, 1514)
	for i, a := range []string{toMAC, fromMAC} {
		mac, err := net.ParseMAC(a)
		if err != nil {
			return nil, err
		}
		copy(frame[i*6:], mac)
	}
	copy(frame[12:], []byte{8, 0, 0x45, 0})
	frame[22], frame[23] = 64, unix.IPPROTO_UDP
	for i, a := range []string{from, to} {
		copy(frame[26+4*i:], net.ParseIP(a).To4())
	}
	binary.BigEndian.PutUint16(frame[36:], sinkPort)
	return frame, nil
}

// resize writes the lengths of a frame of so many bytes. It claims to be longer
// than it is, so that the receiver's kernel drops it unanswered.
func resize(frame []byte, size int) {
	total := uint16(size - 14)
	binary.BigEndian.PutUint16(frame[16:], total)
	binary.BigEndian.PutUint16(frame[24:], 0)
	binary.BigEndian.PutUint16(frame[24:], checksum(frame[14:34]))
	binary.BigEndian.PutUint16(frame[38:], total)
}

// stampFrame writes source port and number, by which each frame is another.
func stampFrame(frame []byte, f mixSent) {
	binary.BigEndian.PutUint16(frame[34:], f.Port)
	binary.BigEndian.PutUint32(frame[42:], f.Num)
}

// mixChild sends datagrams between two hosts as it is told, without pause.
func mixChild(args []string) error {
	runtime.GOMAXPROCS(2)
	frame, err := mixFrame(args[0], args[1], args[2], args[3])
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0) // receives nothing
	if err != nil {
		return err
	}
	nic, err := net.InterfaceByName(args[4])
	if err != nil {
		return err
	}
	to := &unix.SockaddrLinklayer{Ifindex: nic.Index}
	var reported atomic.Pointer[mix]
	type stamp struct {
		at int64 // before it was sent
		f  mixSent
	}
	var mu sync.Mutex // of kept and num
	kept, num := make([]stamp, mixKept), uint32(0)
	go func() {
		var now mix
		for sent, began := 0, time.Now(); ; {
			if m := reported.Load(); m == nil {
				time.Sleep(time.Millisecond)
				continue
			} else if *m != now {
				now, sent, began = *m, 0, time.Now()
				resize(frame, now.Size)
			}
			due := int(time.Since(began).Seconds() * float64(now.Rate))
			if sent < due-now.Rate/10 { // the machine stood still: a steady load does not catch up
				sent = due
			}
			for ; sent < due; sent++ {
				mu.Lock()
				s := stamp{time.Now().UnixNano(), mixSent{num, uint16(firstPort + sent%now.Flows)}}
				kept[num%mixKept], num = s, num+1
				mu.Unlock()
				stampFrame(frame, s.f)
				_ = unix.Sendto(fd, frame[:now.Size], 0, to)
			}
			time.Sleep(100 * time.Microsecond)
		}
	}()
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var o mixOrder
		if err := in.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		got := []mixSent{}
		if o.Be != nil {
			reported.Store(o.Be)
		} else {
			mu.Lock()
			for k := num - min(num, mixKept); k != num; k++ {
				if s := kept[k%mixKept]; o.From <= s.at && s.at < o.To {
					got = append(got, s.f)
				}
			}
			mu.Unlock()
		}
		if err := out.Encode(got); err != nil {
			return err
		}
	}
}

// mixLoad is a load from host a to host b.
type mixLoad struct {
	in    *json.Encoder
	out   *json.Decoder
	frame []byte // as of its last order
	size  int    // bytes of it that are sent
}

// newMix starts a load; it is silent until told.
func (b *rig) newMix() (*mixLoad, error) {
	from, to := b.host(hostA), b.host(hostB)
	link, err := b.links[hostA].h.LinkByIndex(b.links[hostA].index)
	if err != nil {
		return nil, err
	}
	frame, err := mixFrame(to.MAC, from.MAC, from.IP.String(), to.IP.String())
	if err != nil {
		return nil, err
	}
	cmd := b.command(context.Background(), hostA, b.self, "child", "mix", to.MAC, from.MAC, from.IP.String(), to.IP.String(), link.Attrs().Name)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = os.Stderr
	if err := proc.StartCommand(cmd); err != nil {
		return nil, err
	}
	b.closers = append(b.closers, func() error { stdin.Close(); return cmd.Wait() })
	return &mixLoad{in: json.NewEncoder(stdin), out: json.NewDecoder(stdout), frame: frame}, nil
}

func (l *mixLoad) ask(o mixOrder) (got []mixSent, err error) {
	if err := l.in.Encode(o); err != nil {
		return nil, err
	}
	return got, l.out.Decode(&got)
}

// tell has it be another load from now on.
func (l *mixLoad) tell(m mix) error {
	resize(l.frame, m.Size)
	l.size = m.Size
	_, err := l.ask(mixOrder{Be: &m})
	return err
}

func (l *mixLoad) sentIn(from, to time.Time) ([]uint64, error) {
	got, err := l.ask(mixOrder{From: from.UnixNano(), To: to.UnixNano()})
	if err != nil {
		return nil, err
	}
	digests := make([]uint64, len(got))
	for i, f := range got {
		stampFrame(l.frame, f)
		digests[i] = agent.Digest(l.frame[:l.size])
	}
	return digests, nil
}

// split has Open vSwitch keep one cached decision for each source port of UDP to
// host b: a rule that forwards as ours do and copies the port to a register.
func (b *rig) split(ctx context.Context) error {
	to := b.host(hostB)
	_, err := b.ofctl(ctx, "add-flow", b.mgmt(), fmt.Sprintf("table=2,cookie="+theirCookie+",priority=201,udp,dl_dst=%s,actions=move:NXM_OF_UDP_SRC[]->NXM_NX_REG0[0..15],output:%d", to.MAC, to.Port.Number))
	return err
}

// unsplit takes that rule away: a daemon that finds it leaves the switch alone.
func (b *rig) unsplit(ctx context.Context) error {
	_, err := b.ofctl(ctx, "del-flows", b.mgmt(), "cookie="+theirCookie+"/-1")
	return err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

var currentFlows = regexp.MustCompile(`\(current (\d+)\)`)

// cached is how many decisions Open vSwitch has cached.
func (b *rig) cached(ctx context.Context) (int, error) {
	target := "ovs-vswitchd"
	if own := filepath.Join(b.lab.OVSRunDir(), "vs.ctl"); exists(own) { // the lab's own switch
		target = own
	}
	cmd := exec.CommandContext(ctx, "ovs-appctl", "-t", target, "upcall/show")
	cmd.Env = append(os.Environ(), "OVS_RUNDIR="+b.lab.OVSRunDir())
	out, err := cmd.CombinedOutput()
	m := currentFlows.FindSubmatch(out)
	if err != nil || m == nil {
		return 0, fmt.Errorf("ovs-appctl upcall/show: %w: %s", err, out)
	}
	return strconv.Atoi(string(m[1]))
}
