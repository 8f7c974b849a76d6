package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"netsplit/model"
	"netsplit/testbed/agent"
	"netsplit/testbed/proc"
)

// sinkPort is where UDP loads go. Somebody has it open and reads nothing.
const sinkPort = 9999

// child runs this program's part as a process on a host.
func child(args []string) error {
	switch args[0] {
	case "agent":
		return agent.Serve(context.Background(), os.Stdin, os.Stdout)
	case "send":
		return sendChild(args[1])
	case "sink":
		return sinkChild()
	case "api":
		runs, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		return apiChild(args[1], runs)
	case "mix":
		return mixChild(args[1:])
	case "ping":
		n, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		every, err := time.ParseDuration(args[3])
		if err != nil {
			return err
		}
		size, err := strconv.Atoi(args[4])
		if err != nil {
			return err
		}
		return pingChild(args[1], n, every, size)
	}
	return fmt.Errorf("no child %q", args[0])
}

// order is one line to a sender: UDP payloads of Size bytes, Rate a second,
// for Time.
type order struct {
	Size, Rate int
	Time       time.Duration
}

// sendChild carries out orders and answers each with the packets sent.
func sendChild(to string) error {
	runtime.GOMAXPROCS(1)
	addr, err := net.ResolveUDPAddr("udp4", to)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: addr.Port, Addr: [4]byte(addr.IP.To4())}); err != nil {
		return err
	}
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var o order
		if err := in.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := out.Encode(send(fd, o)); err != nil {
			return err
		}
	}
}

// send sends at an even pace, at most burst packets without looking at the
// clock; what could not be sent in time is sent late, never skipped.
func send(fd int, o order) int {
	const burst = 32
	payload := make([]byte, o.Size)
	sent := 0
	for began := time.Now(); ; {
		passed := time.Since(began)
		if passed >= o.Time {
			return sent
		}
		due := int(passed.Seconds() * float64(o.Rate))
		for n := 0; sent < due && n < burst; n++ {
			if _, err := unix.Write(fd, payload); err == nil {
				sent++
			}
		}
		if sent >= due {
			time.Sleep(100 * time.Microsecond)
		}
	}
}

// sinkChild holds the sink's port open, so that the kernel answers no packet
// with an ICMP error, until its standard input ends.
func sinkChild() error {
	c, err := net.ListenUDP("udp4", &net.UDPAddr{Port: sinkPort})
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetReadBuffer(1) // the kernel makes it the least it allows
	_, _ = io.Copy(io.Discard, os.Stdin)
	return nil
}

// pingChild sends n ICMP echo requests of size bytes, an even number (RFC 792),
// each after the reply to the one before and at least the interval later, and
// prints the round trips in nanoseconds as JSON.
func pingChild(to string, n int, every time.Duration, size int) error {
	c, err := net.Dial("ip4:icmp", to)
	if err != nil {
		return err
	}
	defer c.Close()
	id := uint16(os.Getpid())
	msg := make([]byte, size)
	buf := make([]byte, 2048)
	var took []time.Duration
	for seq := range n {
		began := time.Now()
		msg[0], msg[1], msg[2], msg[3] = 8, 0, 0, 0
		msg[4], msg[5], msg[6], msg[7] = byte(id>>8), byte(id), byte(seq>>8), byte(seq)
		sum := checksum(msg)
		msg[2], msg[3] = byte(sum>>8), byte(sum)
		if _, err := c.Write(msg); err != nil {
			return err
		}
		_ = c.SetReadDeadline(began.Add(time.Second))
		for {
			got, err := c.Read(buf)
			if err != nil {
				return fmt.Errorf("echo %d of %d: %w", seq+1, n, err)
			}
			// Read gives the IP header too. Type 0 is the reply; identifier
			// and number are ours.
			if b := buf[:got]; got >= 28 && b[20] == 0 && [4]byte(b[24:28]) == [4]byte(msg[4:8]) {
				break
			}
		}
		took = append(took, time.Since(began))
		time.Sleep(every - time.Since(began))
	}
	return json.NewEncoder(os.Stdout).Encode(took)
}

// checksum is the Internet checksum (RFC 1071) of an even number of bytes.
func checksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(b[i])<<8 | uint32(b[i+1])
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}

func (b *rig) roundTrips(ctx context.Context, n int, every time.Duration, size int) ([]time.Duration, error) {
	argv := append(append([]string{}, b.host(hostA).Exec...), b.self, "child", "ping", b.host(hostB).IP.String(), strconv.Itoa(n), every.String(), strconv.Itoa(size))
	text, err := proc.Output(ctx, argv, 30*time.Second+time.Duration(n)*every)
	if err != nil {
		return nil, err
	}
	var out []time.Duration
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		return nil, fmt.Errorf("ping: %w", err)
	}
	return out, nil
}

// sender is a load from one host to the other's sink.
type sender struct {
	cmd *exec.Cmd
	in  *json.Encoder
	out *json.Decoder
}

func (b *rig) newSender(from, to model.NodeID) (*sender, error) {
	sink := b.command(context.Background(), to, b.self, "child", "sink")
	hold, err := sink.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := proc.StartCommand(sink); err != nil {
		return nil, err
	}
	b.closers = append(b.closers, func() error { hold.Close(); return sink.Wait() })

	s := &sender{cmd: b.command(context.Background(), from, b.self, "child", "send", fmt.Sprintf("%s:%d", b.host(to).IP, sinkPort))}
	stdin, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.cmd.Stderr = os.Stderr
	if err := proc.StartCommand(s.cmd); err != nil {
		return nil, err
	}
	b.closers = append(b.closers, func() error {
		stdin.Close()
		// A sender that is not done with its order need not finish it.
		stop := time.AfterFunc(2*time.Second, func() { _ = s.cmd.Process.Kill() })
		defer stop.Stop()
		_ = s.cmd.Wait()
		return nil
	})
	s.in, s.out = json.NewEncoder(stdin), json.NewDecoder(bufio.NewReader(stdout))
	return s, nil
}

// begin gives an order; the function it returns waits for its end and gives
// the number of packets sent.
func (s *sender) begin(o order) (func() (int, error), error) {
	if err := s.in.Encode(o); err != nil {
		return nil, fmt.Errorf("sender: %w", err)
	}
	return func() (int, error) {
		var n int
		if err := s.out.Decode(&n); err != nil {
			return 0, fmt.Errorf("sender: %w", err)
		}
		return n, nil
	}, nil
}
