//go:build captures

package framing

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"netsplit/inference/packet"
	"netsplit/inference/pcap"
	"netsplit/inference/stream"
	"netsplit/model"
)

// captures is a folder of captures with labels, which are no part of the
// repository: NAME.pcap and NAME.labels.tsv (time, conn, from_server, offset,
// length, type).
var captures = flag.String("captures", "", "folder of labelled captures to measure with")

type label struct {
	size int
	typ  string
}

// leastF1 is how well a framing that is suggested has to agree with the labels of a
// capture, leastLabels how many there have to be to tell.
const (
	leastF1     = 0.95
	leastLabels = 100
)

// TestLabelledCaptures measures how many messages are found, and how well their types
// agree with the labels, with the messages found and with the true ones. A framing that
// finds others than the labelled messages fails.
func TestLabelledCaptures(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(*captures, "*.pcap"))
	if *captures == "" || len(files) == 0 {
		t.Fatalf("no capture in %q: give a folder of them by -captures", *captures)
	}
	for _, file := range files {
		labels, server := labelsOf(t, strings.TrimSuffix(file, ".pcap")+".labels.tsv")
		ports, names := portsOf(t, file, server)
		for port, p := range ports {
			begin := time.Now()
			s := p.Suggest()
			took := time.Since(begin)
			t.Logf("%s port %s (%d conns, %d bytes, %d packets): %v", filepath.Base(file), port, p.conns, p.bytes, p.marks, took.Round(time.Millisecond))
			if s.Framing == nil {
				t.Logf("   none: %s", s.Why)
			} else {
				t.Logf("   frames: %s\n   %s", Line(s.Framing), s.Why)
			}
			if labels == nil {
				continue
			}
			measure(t, p, s, labels, names)
		}
	}
}

func measure(t *testing.T, p *Port, s Suggestion, labels map[string]map[uint64]label, names map[*flow]string) {
	if s.Framing != nil {
		l := lengthOf(s)
		found, right, all := 0, 0, 0
		var msgs []msg
		var truth []string
		c := chained{common: map[int]int{}, tries: allTries}
		for i, f := range p.flows {
			all += len(labels[names[f]])
			l.walk(f, keepFlow, &c, func(b []byte, off uint64, n int) {
				found++
				m := msg{flow: i, dir: f.dir, size: n, b: b[:min(len(b), n, typeAt)], conn: f.conn, seq: f.packet(off + uint64(n))}
				msgs, truth = append(msgs, m), append(truth, "")
				if is, ok := labels[names[f]][off]; ok && is.size == n {
					right++
					truth[len(truth)-1] = is.typ
				}
			})
		}
		pairs := pairsOf(s.Framing, msgs, truth)
		f1 := 2 * float64(right) / float64(found+all)
		t.Logf("   FRAMING F1 %.4f (%d found, %d right, %d true)  TYPES %s", f1, found, right, all, vmeasure(pairs))
		if all >= leastLabels && f1 < leastF1 {
			t.Errorf("   the framing that is suggested finds other messages than there are: F1 %.4f, want %.2f", f1, leastF1)
		}
	}
	// types with the true messages, whatever tells them apart
	var msgs []msg
	var truth []string
	for i, f := range p.flows {
		for _, r := range f.runs {
			for off := r.off; off < r.end(); {
				lb, ok := labels[names[f]][off]
				if !ok {
					off++
					continue
				}
				b := r.b[off-r.off:]
				msgs = append(msgs, msg{flow: i, dir: f.dir, size: lb.size, b: b[:min(len(b), lb.size, typeAt)], conn: f.conn, seq: f.packet(off + uint64(lb.size))})
				truth = append(truth, lb.typ)
				off += uint64(lb.size)
			}
		}
	}
	var l length
	if s.Framing != nil {
		l = lengthOf(s)
	}
	fr, n := describe(msgs, l)
	pairs := pairsOf(fr, msgs, truth)
	t.Logf("   TRUE FRAMING: %s %d types %s", Line(fr), n, vmeasure(pairs))
}

// pairsOf counts the types that a framing gives messages with the true ones; "" is
// none.
func pairsOf(fr *model.Framing, msgs []msg, truth []string) map[[2]string]int {
	order := make([]int, len(msgs))
	for i := range msgs {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return msgs[a].seq - msgs[b].seq })
	pairs := map[[2]string]int{}
	requested := map[string]string{}
	id := func(m msg) string {
		if fr.Correlation == nil {
			return ""
		}
		p := [2]model.Place{fr.Correlation.Request, fr.Correlation.Answer}[m.dir]
		if p.At+p.Size > len(m.b) {
			return ""
		}
		return fmt.Sprint(m.conn, m.b[p.At:p.At+p.Size])
	}
	for _, i := range order {
		m := msgs[i]
		typ := typeOf(Suggestion{Framing: fr}, m.dir, m.b)
		if fr.Correlation != nil {
			if m.dir == 0 {
				requested[id(m)] = typ
			} else {
				typ = "answer " + requested[id(m)]
			}
		}
		if truth[i] != "" {
			pairs[[2]string{typ, truth[i]}]++
		}
	}
	return pairs
}

func lengthOf(s Suggestion) length {
	p := s.Framing.Length
	return length{p.At, p.Size, p.Plus, p.Order == "little"}
}

func typeOf(s Suggestion, dir int, b []byte) string {
	places, name := s.Framing.Type, "frame"
	if dir == 1 && s.Framing.Answer != nil {
		places, name = *s.Framing.Answer, "answer"
	}
	for _, p := range places {
		if p.At >= len(b) {
			break
		}
		mask := uint64(0xff)
		if p.Mask != "" {
			mask, _ = strconv.ParseUint(p.Mask, 0, 8)
		}
		name += fmt.Sprintf(" %#x", uint64(b[p.At])&mask)
	}
	return name
}

func vmeasure(pairs map[[2]string]int) string {
	a, b := map[string]int{}, map[string]int{}
	n := 0
	for k, v := range pairs {
		a[k[0]] += v
		b[k[1]] += v
		n += v
	}
	entropy := func(m map[string]int) (h float64) {
		for _, v := range m {
			h -= float64(v) / float64(n) * math.Log(float64(v)/float64(n))
		}
		return h
	}
	var joint float64
	for _, v := range pairs {
		joint -= float64(v) / float64(n) * math.Log(float64(v)/float64(n))
	}
	ha, hb := entropy(a), entropy(b)
	h, c := 1.0, 1.0
	if hb > 0 {
		h = 1 - (joint-ha)/hb
	}
	if ha > 0 {
		c = 1 - (joint-hb)/ha
	}
	return fmt.Sprintf("V %.3f (h %.3f c %.3f; %d clusters, %d types, %d messages)", 2*h*c/(h+c), h, c, len(a), len(b), n)
}

// labelsOf are the true messages of each direction, and the servers' ports.
func labelsOf(t *testing.T, file string) (map[string]map[uint64]label, map[uint16]bool) {
	f, err := os.Open(file)
	if err != nil {
		return nil, nil
	}
	defer f.Close()
	out, server := map[string]map[uint64]label{}, map[uint16]bool{}
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		w := strings.Split(sc.Text(), "\t")
		off, err := strconv.ParseUint(w[3], 10, 64)
		if err != nil {
			continue
		}
		n, _ := strconv.Atoi(w[4])
		if out[w[1]] == nil {
			out[w[1]] = map[uint64]label{}
		}
		out[w[1]][off] = label{n, w[5]}
		ends, _, _ := strings.Cut(w[1], "#")
		from, to, _ := strings.Cut(ends, ">")
		if w[2] == "1" {
			to = from
		}
		port, _ := strconv.Atoi(to)
		server[uint16(port)] = true
	}
	return out, server
}

func portsOf(t *testing.T, file string, server map[uint16]bool) (map[string]*Port, map[*flow]string) {
	t.Helper()
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	rd, err := pcap.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	ports, names := map[string]*Port{}, map[*flow]string{}
	flows := map[*stream.Conn]bool{}
	d := packet.NewDecoder(nil)
	table := stream.NewTable(func(p uint16) bool { return server[p] })
	gens := map[string]int{}
	take := func(es []stream.Event) {
		for i := range es {
			e := &es[i]
			to := e.Conn.Addr[1].Port()
			if server != nil && !server[to] {
				continue
			}
			name := "all"
			if server == nil {
				name = strconv.Itoa(int(to))
			}
			if ports[name] == nil {
				ports[name] = &Port{}
			}
			p := ports[name]
			if !flows[e.Conn] {
				flows[e.Conn] = true
				gens[fmt.Sprint(e.Conn.Addr[0].Port(), to)]++
			}
			before := len(p.flows)
			p.Add(e)
			if len(p.flows) > before {
				names[p.flows[before]] = fmt.Sprintf("%d>%d#%d", e.Conn.Addr[e.Dir].Port(), e.Conn.Addr[1-e.Dir].Port(), gens[fmt.Sprint(e.Conn.Addr[0].Port(), to)])
			}
		}
	}
	for {
		f, err := rd.Next()
		if err == io.EOF || err == pcap.ErrTruncated {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		p := d.Decode(f)
		take(table.Step(&p))
	}
	take(table.Flush())
	return ports, names
}
