package classify_test

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netsplit/e2e/need"
	"netsplit/inference/classify"
	"netsplit/internal/resegment"
	"netsplit/model"
)

var rabbitPorts = map[uint16]string{5672: classify.NameAMQP, 35672: classify.NameAMQP, 25672: classify.NameErlang}

// rabbitRead reads a capture of testdata/rabbitmq, without the segments of connections.
func rabbitRead(t *testing.T, name string) (out []model.Message) {
	t.Helper()
	for _, m := range messagesOf(t, framesOf(t, "rabbitmq", name), rabbitPorts) {
		if !m.Transport() {
			out = append(out, m)
		}
	}
	return out
}

// TestNodesOfRabbitMQ: every message of the real nodes has a type, and those of Raft and of the
// handshake the fields that matter.
func TestNodesOfRabbitMQ(t *testing.T) {
	n, nodes := map[string]int{}, map[string]bool{}
	terms := map[string]int{}
	for _, m := range rabbitRead(t, "nodes.pcap") {
		n[m.Type]++
		if strings.Contains(m.Type, model.TypeUnknown) || strings.Contains(m.Type, "?") {
			t.Errorf("message %d is %s", m.Num, m.Type)
		}
		if v, ok := m.Field("node"); ok {
			nodes[v] = true
		}
		if strings.HasSuffix(m.Type, "append_entries_rpc") {
			to, _ := m.Field("to")
			term, _ := m.Field("term")
			leader, _ := m.Field("leader")
			terms[fmt.Sprintf("%s %s led by %s", to, term, leader)]++
		}
	}
	for typ, least := range map[string]int{"erlang handshake name": 2, "erlang handshake challenge": 2, "erlang handshake status": 2,
		"erlang handshake reply": 2, "erlang handshake ack": 2, "erlang reg_send cast append_entries_rpc": 50, "erlang reg_send cast append_entries_reply": 20,
		"erlang reg_send aten_sink cast hb": 10} {
		if n[typ] < least {
			t.Errorf("%d messages %s, want %d", n[typ], typ, least)
		}
	}
	if len(n) > 90 {
		t.Errorf("%d types", len(n))
	}
	if len(terms) != 1 || terms["%2F_work 1 led by rabbit@10.64.0.1"] == 0 {
		t.Errorf("append entries of %v", terms)
	}
	if len(nodes) < 2 {
		t.Errorf("nodes %v", nodes)
	}
}

// TestClientsOfRabbitMQ: the frames are those that tshark finds, in its order.
func TestClientsOfRabbitMQ(t *testing.T) {
	need.Program(t, "tshark", "tshark")
	out, err := exec.Command("tshark", "-r", filepath.Join("testdata", "rabbitmq", "clients.pcap"), "-Y", "amqp", "-T", "fields",
		"-e", "tcp.stream", "-e", "tcp.srcport", "-e", "amqp.type").Output()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{} // frames by kind
	for _, l := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		for _, k := range strings.Split(strings.Split(l, "\t")[2], ",") {
			want[k]++
		}
	}
	got := map[string]int{}
	published, acked := 0, 0
	for _, m := range rabbitRead(t, "clients.pcap") {
		switch m.Type {
		case "amqp greeting":
		case "amqp header":
			got["2"]++
		case "amqp body":
			got["3"]++
			if text, _ := m.Field("text"); !strings.HasPrefix(text, "c") {
				t.Errorf("body %q", text)
			}
		case "amqp heartbeat":
			got["8"]++
		case "amqp basic.publish":
			published++
			got["1"]++
		case "amqp basic.ack":
			acked++
			got["1"]++
		default:
			got["1"]++
			if !strings.Contains(m.Type, ".") {
				t.Errorf("message %s", m.Type)
			}
		}
	}
	delete(want, "") // the greeting
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("frames by kind (-tshark +ours):\n%s", d)
	}
	if published < 20 || acked < published-1 {
		t.Errorf("%d published, %d confirmed", published, acked)
	}
}

// TestRabbitMQInAnyCut: segments cut elsewhere change nothing, and a gap loses what was in it.
func TestRabbitMQInAnyCut(t *testing.T) {
	for _, name := range []string{"nodes.pcap", "clients.pcap", "methods.pcap"} {
		frames := framesOf(t, "rabbitmq", name)
		types := func(frames []model.Frame) map[string]int {
			n := map[string]int{}
			for _, m := range messagesOf(t, frames, rabbitPorts) {
				n[m.Type]++
			}
			return n
		}
		whole := types(frames)
		cut, err := resegment.Frames(frames, rand.New(rand.NewPCG(1, 2)), resegment.Options{MaxSegment: 13, Window: 8, Again: 0.1})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(whole, types(cut)); d != "" {
			t.Errorf("%s: other segments (-as it was +resegmented):\n%s", name, d)
		}
		known := 0
		for typ, n := range types(append(frames[:20:20], frames[24:]...)) {
			if whole[typ] > 0 {
				known += n
			}
		}
		all := 0
		for _, n := range whole {
			all += n
		}
		if known < all*9/10 {
			t.Errorf("%s: %d of %d messages known after a gap", name, known, all)
		}
	}
}
