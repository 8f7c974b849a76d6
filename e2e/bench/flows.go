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
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"netsplit/campaign/proc"
)

// firstPort is the source port of the first flow of a load.
const firstPort = 1024

// mix is what a load of many flows is told to be from now on: datagrams of Size
// bytes, Rate a second, in turn from Flows source ports.
type mix struct {
	Flows, Rate, Size int
}

// mixChild sends datagrams between two hosts, named by MAC and address, as it is
// told, without pause. They claim to be longer than they are, so that the
// receiver's kernel drops them unanswered.
func mixChild(args []string) error {
	runtime.GOMAXPROCS(2)
	frame := make([]byte, 1514)
	for i, a := range args[:2] { // to, from
		mac, err := net.ParseMAC(a)
		if err != nil {
			return err
		}
		copy(frame[i*6:], mac)
	}
	copy(frame[12:], []byte{8, 0, 0x45, 0})
	frame[22], frame[23] = 64, unix.IPPROTO_UDP
	for i, a := range args[2:4] { // from, to
		copy(frame[26+4*i:], net.ParseIP(a).To4())
	}
	binary.BigEndian.PutUint16(frame[36:], sinkPort)
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0) // receives nothing
	if err != nil {
		return err
	}
	nic, err := net.InterfaceByName(args[4])
	if err != nil {
		return err
	}
	to := &unix.SockaddrLinklayer{Ifindex: nic.Index}
	var told atomic.Pointer[mix]
	go func() {
		var now mix
		for sent, began := 0, time.Now(); ; {
			if m := told.Load(); m == nil {
				time.Sleep(time.Millisecond)
				continue
			} else if *m != now {
				now, sent, began = *m, 0, time.Now()
				total := uint16(now.Size - 14)
				binary.BigEndian.PutUint16(frame[16:], total)
				binary.BigEndian.PutUint16(frame[24:], 0)
				binary.BigEndian.PutUint16(frame[24:], checksum(frame[14:34]))
				binary.BigEndian.PutUint16(frame[38:], total)
			}
			due := int(time.Since(began).Seconds() * float64(now.Rate))
			if sent < due-now.Rate/10 { // the machine stood still: a steady load does not catch up
				sent = due
			}
			for ; sent < due; sent++ {
				binary.BigEndian.PutUint16(frame[34:], uint16(firstPort+sent%now.Flows))
				_ = unix.Sendto(fd, frame[:now.Size], 0, to)
			}
			time.Sleep(100 * time.Microsecond)
		}
	}()
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		m := new(mix)
		if err := in.Decode(m); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		told.Store(m)
		if err := out.Encode(m); err != nil {
			return err
		}
	}
}

// newMix starts a load from host a to host b; it is silent until told.
func (b *bed) newMix() (tell func(mix) error, err error) {
	from, to := b.host(hostA), b.host(hostB)
	link, err := b.links[hostA].h.LinkByIndex(b.links[hostA].index)
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
	in, out := json.NewEncoder(stdin), json.NewDecoder(stdout)
	return func(m mix) error {
		if err := in.Encode(m); err != nil {
			return err
		}
		return out.Decode(&mix{})
	}, nil
}

// split has Open vSwitch keep one cached decision for each source port of UDP to
// host b: a rule that forwards as ours do and copies the port to a register.
func (b *bed) split(ctx context.Context) error {
	to := b.host(hostB)
	_, err := b.ofctl(ctx, "add-flow", b.mgmt(), fmt.Sprintf("table=2,cookie="+theirCookie+",priority=201,udp,dl_dst=%s,actions=move:NXM_OF_UDP_SRC[]->NXM_NX_REG0[0..15],output:%d", to.MAC, to.Port.Number))
	return err
}

// unsplit takes that rule away: a daemon that finds it leaves the switch alone.
func (b *bed) unsplit(ctx context.Context) error {
	_, err := b.ofctl(ctx, "del-flows", b.mgmt(), "cookie="+theirCookie+"/-1")
	return err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

var currentFlows = regexp.MustCompile(`\(current (\d+)\)`)

// cached is how many decisions Open vSwitch has cached.
func (b *bed) cached(ctx context.Context) (int, error) {
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
