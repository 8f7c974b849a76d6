package classify_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netsplit/inference"
	"netsplit/inference/classify"
	"netsplit/internal/resegment"
	"netsplit/model"
)

// framesOf reads a capture of testdata.
func framesOf(t *testing.T, folder, name string) []model.Frame {
	t.Helper()
	frames, err := resegment.Read(filepath.Join("testdata", folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return frames
}

// messagesOf reads frames; ports name the dissectors.
func messagesOf(t *testing.T, frames []model.Frame, ports map[uint16]string, hosts ...model.TestbedHost) []model.Message {
	t.Helper()
	cfg := inference.Config{Hosts: hosts}
	for port, d := range ports {
		cfg.Protocols = append(cfg.Protocols, model.Protocol{Port: port, Transport: "tcp", Dissector: d})
	}
	p, err := inference.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var all []model.Message
	for _, f := range frames {
		all = append(all, p.Read(f).New...)
	}
	return append(all, p.Flush(0).New...)
}

// label is a message of a capture as those who made it say.
type label struct {
	offset, length int
	typ            string
}

// zkLabels returns them by sender's and receiver's port, in order.
func zkLabels(t *testing.T, name string) map[string][]label {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "zookeeper", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := map[string][]label{}
	s := bufio.NewScanner(f)
	for s.Scan() {
		c := strings.Split(s.Text(), "\t")
		if len(c) != 6 || c[0] == "ts" {
			continue
		}
		off, _ := strconv.Atoi(c[3])
		n, _ := strconv.Atoi(c[4])
		conn, _, _ := strings.Cut(c[1], "#")
		out[conn] = append(out[conn], label{off, n, c[5]})
	}
	return out
}

func zkLabelOf(typ string) string {
	name := strings.TrimPrefix(typ, "zk ")
	switch {
	case strings.HasPrefix(name, "fle "):
		return strings.Replace(strings.TrimPrefix(name, "fle "), "hello", "HELLO", 1)
	case strings.HasPrefix(name, "4lw ") && strings.HasSuffix(name, " reply"):
		return "4lw-resp"
	case strings.HasPrefix(name, "4lw "):
		return "4lw"
	case strings.HasPrefix(name, "event "):
		return "resp:notify"
	case name == "connect":
		return "connectReq"
	case name == "connect reply":
		return "connectResp"
	}
	name = strings.Replace(name, "closeSession", "close", 1)
	if n, ok := strings.CutSuffix(name, " reply"); ok {
		return "resp:" + n
	}
	return "req:" + name
}

func TestZooKeeperCaptures(t *testing.T) {
	for _, c := range []struct {
		name  string
		ports map[uint16]string
		want  int
	}{
		{"zk-client", map[uint16]string{2181: classify.NameZooKeeper, 2182: classify.NameZooKeeper, 2183: classify.NameZooKeeper}, 546},
		{"zk-fle", map[uint16]string{3881: classify.NameZooKeeperFLE, 3882: classify.NameZooKeeperFLE, 3883: classify.NameZooKeeperFLE}, 30},
	} {
		t.Run(c.name, func(t *testing.T) {
			labels := zkLabels(t, c.name+".labels.tsv")
			right, payload := 0, 0
			for _, m := range messagesOf(t, framesOf(t, "zookeeper", c.name+".pcap"), c.ports) {
				if m.Bytes == 0 {
					continue
				}
				payload++
				conn := strconv.Itoa(int(m.FromPort)) + ">" + strconv.Itoa(int(m.ToPort))
				l := labels[conn]
				if len(l) == 0 {
					t.Fatalf("%s: %s at %d: no label left", conn, m.Type, m.Offset)
				}
				labels[conn] = l[1:]
				got := label{int(m.Offset), m.Bytes, zkLabelOf(m.Type)}
				if got != l[0] {
					t.Errorf("%s: %+v (%s), labelled %+v", conn, got, m.Type, l[0])
					continue
				}
				right++
			}
			if right != c.want || payload != c.want {
				t.Errorf("%d of %d messages as labelled, want %d", right, payload, c.want)
			}
		})
	}
}

// zkPorts are those of ZooKeeper's sample configuration.
var zkPorts = map[uint16]string{2181: classify.NameZooKeeper, 2888: classify.NameZooKeeperZAB, 3888: classify.NameZooKeeperFLE}

// TestZooKeeperReleases reads what servers of each release say to one another
// and to clients when the leader is restarted: no byte is unknown, elections
// and the sync of followers are complete, and epochs are those of the leaders.
func TestZooKeeperReleases(t *testing.T) {
	files, err := filepath.Glob("testdata/zookeeper/restart-*.pcap")
	if err != nil || len(files) != 3 {
		t.Fatalf("%v: %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			frames := framesOf(t, "zookeeper", filepath.Base(file))
			all := messagesOf(t, frames, zkPorts)
			count := map[string]int{}
			leader := map[string]string{} // by epoch
			for _, m := range all {
				count[m.Type]++
				if m.Type == model.TypeUnknown || strings.HasSuffix(m.Type, "unmatched") {
					t.Errorf("%s at %d, %d bytes: %s", m.Stream, m.Offset, m.Bytes, m.Type)
				}
				if _, cut := m.Field("incomplete"); cut {
					t.Errorf("%s at %d: %s is incomplete", m.Stream, m.Offset, m.Type)
				}
				if m.Type != "zk zab PING" && m.Type != "zk zab NEWLEADER" {
					continue
				}
				from, _, _ := strings.Cut(strings.TrimPrefix(m.Stream, "tcp "), ":")
				epoch, _ := m.Field("epoch")
				if leader[epoch] == "" {
					leader[epoch] = from
				}
				if leader[epoch] != from {
					t.Errorf("epoch %s is led by %s and by %s", epoch, leader[epoch], from)
				}
			}
			for _, typ := range []string{"zk fle hello", "zk fle LOOKING", "zk fle FOLLOWING", "zk fle LEADING",
				"zk zab FOLLOWERINFO", "zk zab LEADERINFO", "zk zab ACKEPOCH", "zk zab DIFF", "zk zab NEWLEADER", "zk zab ACK", "zk zab UPTODATE",
				"zk zab PROPOSAL create", "zk zab PROPOSAL setData", "zk zab PROPOSAL createSession", "zk zab COMMIT", "zk zab PING", "zk zab PING reply", "zk zab REQUEST create",
				"zk zab REVALIDATE", "zk zab REVALIDATE reply",
				"zk connect", "zk connect reply", "zk create", "zk create reply", "zk setData reply", "zk getData reply", "zk sync reply", "zk 4lw srvr", "zk 4lw srvr reply"} {
				if count[typ] == 0 {
					t.Errorf("no %s", typ)
				}
			}
			if len(leader) < 2 {
				t.Errorf("leaders by epoch: %v", leader)
			}
			cut, err := resegment.Frames(frames, rand.New(rand.NewPCG(1, 7)), resegment.Options{MaxSegment: 13, Window: 8, Again: 0.1})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(zkStreams(all), zkStreams(messagesOf(t, cut, zkPorts))); diff != "" {
				t.Errorf("other segments, other messages (-recorded +cut):\n%.2000s", diff)
			}
		})
	}
}

// zkStreams describes the messages of each stream.
func zkStreams(all []model.Message) map[string][]string {
	out := map[string][]string{}
	for _, m := range all {
		if m.Bytes > 0 {
			out[m.Stream] = append(out[m.Stream], fmt.Sprintf("@%d+%d %s %v", m.Offset, m.Bytes, m.Type, m.Fields))
		}
	}
	return out
}
