package classify_test

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"netsplit/inference"
	"netsplit/inference/classify"
	"netsplit/inference/pcap"
	"netsplit/model"
)

// zkRead reads a capture of testdata/zookeeper; ports name the dissectors.
func zkRead(t *testing.T, name string, ports map[uint16]string) []model.Message {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "zookeeper", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := pcap.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var cfg inference.Config
	for port, d := range ports {
		cfg.Protocols = append(cfg.Protocols, model.Protocol{Port: port, Transport: "tcp", Dissector: d})
	}
	p, err := inference.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var all []model.Message
	for {
		fr, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		fr.Data = slices.Clone(fr.Data)
		all = append(all, p.Step(fr).New...)
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

// zkLabelOf is the label of a type.
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
			for _, m := range zkRead(t, c.name+".pcap", c.ports) {
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
