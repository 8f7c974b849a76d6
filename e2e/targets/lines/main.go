package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

func main() {
	talk := flag.String("talk", "", "host to talk to; absent: receive")
	udp := flag.String("udp", "", "lines to send by UDP, separated by commas")
	tcp := flag.String("tcp", "", "lines to send by TCP; a / begins another connection")
	every := flag.Duration("every", 60*time.Millisecond, "time between two lines")
	last := flag.Duration("last", 1500*time.Millisecond, "time to stay after the last line")
	flag.Parse()
	var err error
	if *talk == "" {
		err = receive()
	} else {
		t := &talker{host: *talk, every: *every}
		if t.start, err = strconv.ParseInt(os.Getenv("NETSPLIT_RUN_START"), 10, 64); err == nil {
			t.datagrams(*udp)
			t.streams(*tcp)
			time.Sleep(*last)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "lines:", err)
		os.Exit(1)
	}
}

var out sync.Mutex // one line at a time

// say prints what arrived, and when, in nanoseconds since 1970.
func say(from, line string) {
	out.Lock()
	defer out.Unlock()
	fmt.Printf("%d %s %s\n", time.Now().UnixNano(), from, line)
}

const (
	udpPort = "7100"
	tcpPort = "7101"
	// readyPort says "ready" to whoever connects, once the others are open.
	readyPort = "7102"
)

func receive() error {
	u, err := net.ListenPacket("udp", ":"+udpPort)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", ":"+tcpPort)
	if err != nil {
		return err
	}
	ready, err := net.Listen("tcp", "127.0.0.1:"+readyPort)
	if err != nil {
		return err
	}
	go func() {
		for {
			c, err := ready.Accept()
			if err != nil {
				return
			}
			fmt.Fprintln(c, "ready")
			c.Close()
		}
	}()
	go func() {
		b := make([]byte, 2048)
		for {
			n, _, err := u.ReadFrom(b)
			if err != nil {
				return
			}
			say("udp", strings.TrimSpace(string(b[:n])))
		}
	}()
	var conns atomic.Int32
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			name := fmt.Sprintf("tcp%d", conns.Add(1))
			r := bufio.NewReader(c)
			for {
				line, err := r.ReadString('\n')
				if err != nil {
					if line != "" {
						say(name, "part "+line)
					}
					say(name, ending(err))
					c.Close()
					return
				}
				say(name, strings.TrimSpace(line))
			}
		}()
	}
}

// ending is how a connection ended, in a word.
func ending(err error) string {
	switch {
	case errors.Is(err, io.EOF):
		return "EOF"
	case errors.Is(err, syscall.ECONNRESET):
		return "RESET"
	}
	return "error " + err.Error()
}

type talker struct {
	start int64 // of the run, in nanoseconds since 1970
	host  string
	every time.Duration
}

// entry writes a line of the history, in Jepsen's shape: what was sent and when.
func (t *talker) entry(typ, f, value, why string) {
	b, err := json.Marshal(map[string]any{"process": 0, "type": typ, "f": f, "value": value, "time": time.Now().UnixNano() - t.start, "error": why})
	if err == nil {
		fmt.Println(string(b))
	}
}

func (t *talker) datagrams(lines string) {
	if lines == "" {
		return
	}
	c, err := net.Dial("udp", net.JoinHostPort(t.host, udpPort))
	if err != nil {
		t.entry("info", "udp", "", "dial "+err.Error())
		return
	}
	defer c.Close()
	for _, l := range strings.Split(lines, ",") {
		t.entry("invoke", "udp", l, "")
		_, err := fmt.Fprintln(c, l)
		t.outcome("udp", l, err)
		time.Sleep(t.every)
	}
}

func (t *talker) streams(lines string) {
	if lines == "" {
		return
	}
	for _, part := range strings.Split(lines, "/") {
		c, err := net.DialTimeout("tcp", net.JoinHostPort(t.host, tcpPort), 2*time.Second)
		if err != nil {
			t.entry("info", "tcp", "", "dial "+err.Error())
			continue
		}
		for _, l := range strings.Split(part, ",") {
			t.entry("invoke", "tcp", l, "")
			_, err = fmt.Fprintln(c, l)
			t.outcome("tcp", l, err)
			if err != nil {
				break
			}
			time.Sleep(t.every)
		}
		// What became of the connection shows in a write, or in a read: nobody
		// answers.
		if err == nil {
			_ = c.SetReadDeadline(time.Now().Add(10 * t.every))
			_, err = c.Read(make([]byte, 1))
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = errors.New("open still")
		}
		t.entry("invoke", "end", part, "")
		t.entry("info", "end", part, ending(err))
		defer c.Close()
	}
}

func (t *talker) outcome(f, line string, err error) {
	if err != nil {
		t.entry("info", f, line, ending(err))
		return
	}
	t.entry("ok", f, line, "")
}
