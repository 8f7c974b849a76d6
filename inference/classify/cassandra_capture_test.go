package classify_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netsplit/e2e/need"
	"netsplit/inference/classify"
	"netsplit/model"
)

// cassMessages reads a capture of testdata/cassandra; transport events are
// left out.
func cassMessages(t *testing.T, name string) []model.Message {
	t.Helper()
	all := messagesOf(t, framesOf(t, "cassandra", name), map[uint16]string{7000: classify.NameCassandra, 9042: classify.NameCQL, 9160: classify.NameThrift})
	return slices.DeleteFunc(all, func(m model.Message) bool {
		return m.Bytes == 0 || strings.HasPrefix(m.Type, "tcp ")
	})
}

// Every message of the captures has a type, and the types that tell what
// happened are among them.
func TestCassandraCaptures(t *testing.T) {
	for _, c := range []struct {
		name   string
		most   int // types, all ports together
		wanted []string
	}{
		{"3.11.5.pcap", 100, []string{"cassandra connect", "cassandra connect stream", "cassandra GOSSIP_DIGEST_ACK2", "cassandra MUTATION", "cassandra REQUEST_RESPONSE empty",
			"cassandra DEFINITIONS_UPDATE", "cassandra MIGRATION_REQUEST", "cassandra PAXOS_PROPOSE", "cassandra HINT", "cassandra stream COMPLETE",
			"cql QUERY INSERT IF", "cql RESULT QUERY INSERT IF", "cql ERROR UNAVAILABLE QUERY INSERT"}},
		{"4.1.7.pcap", 120, []string{"cassandra connect small", "cassandra connect stream", "cassandra SCHEMA_PUSH_REQ", "cassandra MUTATION_REQ", "cassandra READ_RSP",
			"cassandra PAXOS_COMMIT_REQ", "cassandra stream STREAM_INIT", "cassandra stream STREAM", "cql EXECUTE INSERT", "cql EXECUTE INSERT end", "cql RESULT BATCH INSERT"}},
		{"5.0.4.pcap", 120, []string{"cassandra GOSSIP_DIGEST_SYN", "cassandra HINT_REQ", "cassandra MUTATION_RSP", "cassandra stream PREPARE_SYNACK"}},
		{"1.0.8.pcap", 40, []string{"cassandra GOSSIP_DIGEST_SYN", "cassandra GOSSIP_DIGEST_ACK", "cassandra GOSSIP_DIGEST_ACK2", "cassandra DEFINITIONS_UPDATE", "cassandra MUTATION", "cassandra SCHEMA_CHECK"}},
		{"0.7.0.pcap", 40, []string{"cassandra DEFINITIONS_ANNOUNCE", "cassandra DEFINITIONS_UPDATE_RESPONSE", "cassandra MUTATION", "cassandra SCHEMA_CHECK", "cassandra REQUEST_RESPONSE"}},
		{"1.0.8-thrift.pcap", 60, []string{"thrift system_add_keyspace call", "thrift insert reply", "thrift get error NOT_FOUND", "thrift set_keyspace error INVALID_REQUEST"}},
		{"0.7.0-thrift.pcap", 60, []string{"thrift system_add_keyspace call", "thrift insert reply", "thrift get error NOT_FOUND", "thrift describe_schema_versions reply"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			types := map[string]int{}
			for _, m := range cassMessages(t, c.name) {
				types[m.Type]++
				if m.Type == model.TypeUnknown || strings.Contains(m.Type, "verb") || strings.HasSuffix(m.Type, "compressed") {
					t.Errorf("%s: %q, %d bytes at %d", m.Stream, m.Type, m.Bytes, m.Offset)
				}
				if v, ok := m.Field("incomplete"); ok {
					t.Errorf("%s: %s at %d: incomplete %s", m.Stream, m.Type, m.Offset, v)
				}
			}
			if len(types) > c.most {
				t.Errorf("%d types", len(types))
			}
			for _, w := range c.wanted {
				if types[w] == 0 {
					t.Errorf("no %q in %v", w, types)
				}
			}
		})
	}
}

// What the nodes told each other about node 3 and the schema can be read.
func TestCassandraCapturesTellState(t *testing.T) {
	for _, c := range []struct{ capture, field, want string }{
		{"3.11.5.pcap", "endpoints", "\n10.91.0.3 STATUS=LEFT,3074457345618258602,"},
		{"3.11.5.pcap", "endpoints", "\n10.91.0.3 STATUS=NORMAL,3074457345618258602 SCHEMA="},
		{"3.11.5.pcap", "tables", "\nks4.t\n"},
		{"3.11.5.pcap", "keyspaces", "\nks4\n"},
		{"4.1.7.pcap", "endpoints", " STATUS_WITH_PORT=NORMAL,"},
		{"4.1.7.pcap", "tables", "\nks5.cnt\n"},
		{"5.0.4.pcap", "endpoints", "\n10.95.0.3 STATUS=LEFT,"},
		{"1.0.8.pcap", "endpoints", "\n10.93.0.3 STATUS=LEFT,"},
		{"0.7.0.pcap", "endpoints", "\n10.94.0.3 STATUS=NORMAL,113427455640312821154458202477256070485 SCHEMA="},
		{"1.0.8.pcap", "migrations", "\nAddColumnFamily ks1.cf1\n"},
		{"0.7.0.pcap", "migrations", "\nAddColumnFamily ks1.cf1\n"},
		{"0.7.0.pcap", "table", "\nks1.cf1\n"},
	} {
		found := false
		for _, m := range cassMessages(t, c.capture) {
			v, _ := m.Field(c.field)
			found = found || strings.Contains("\n"+v+"\n", c.want)
		}
		if !found {
			t.Errorf("%s: no field %s with %q", c.capture, c.field, c.want)
		}
	}
}

// tshark 4.0 reads CQL up to version 4 and Thrift; it agrees message by
// message.
func TestCassandraClientsAgainstTshark(t *testing.T) {
	need.Program(t, "tshark", "tshark")
	for _, c := range []struct {
		capture string
		args    []string
		ours    func(m model.Message) string
	}{
		{"3.11.5.pcap", []string{"-Y", "cql", "-e", "cql.version", "-e", "cql.stream", "-e", "cql.opcode"}, func(m model.Message) string {
			if !strings.HasPrefix(m.Type, "cql ") || strings.HasSuffix(m.Type, " end") {
				return ""
			}
			v, _ := m.Field("version")
			s, _ := m.Field("stream")
			n, err := strconv.Atoi(v)
			if err != nil {
				return ""
			}
			if m.FromPort == 9042 {
				n |= 0x80
			}
			return fmt.Sprintf("0x%02x %s %s", n, s, strings.Fields(m.Type)[1])
		}},
		{"1.0.8-thrift.pcap", []string{"-d", "tcp.port==9160,thrift", "-Y", "thrift", "-e", "thrift.method", "-e", "thrift.seq_id", "-e", "thrift.mtype"}, thriftLine},
		{"0.7.0-thrift.pcap", []string{"-d", "tcp.port==9160,thrift", "-Y", "thrift", "-e", "thrift.method", "-e", "thrift.seq_id", "-e", "thrift.mtype"}, thriftLine},
	} {
		cmd := exec.Command("tshark", append([]string{"-r", filepath.Join("testdata", "cassandra", c.capture), "-T", "fields", "-E", "occurrence=a"}, c.args...)...)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", c.capture, err)
		}
		var theirs []string
		for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
			cols := strings.Split(line, "\t")
			first := strings.Split(cols[0], ",")
			for i := range first {
				var row []string
				for k, col := range cols {
					if vs := strings.Split(col, ","); i < len(vs) {
						row = append(row, tsharkName(c.capture, k, vs[i]))
					}
				}
				theirs = append(theirs, strings.Join(row, " "))
			}
		}
		var ours []string
		for _, m := range cassMessages(t, c.capture) {
			if s := c.ours(m); s != "" {
				ours = append(ours, s)
			}
		}
		if len(ours) < 50 {
			t.Errorf("%s: only %d messages", c.capture, len(ours))
		}
		slices.Sort(ours)
		slices.Sort(theirs)
		if diff := cmp.Diff(theirs, ours); diff != "" {
			t.Errorf("%s (-tshark +ours):\n%.3000s", c.capture, diff)
		}
	}
}

func thriftLine(m model.Message) string {
	f := strings.Fields(m.Type)
	if f[0] != "thrift" {
		return ""
	}
	s, _ := m.Field("seqid")
	kind := f[2]
	if kind == "error" {
		kind = "reply"
	}
	return f[1] + " " + s + " " + kind
}

// tsharkName spells out the numbers of opcodes and kinds of messages, which
// stand in the third column.
func tsharkName(capture string, column int, v string) string {
	n, err := strconv.ParseUint(v, 0, 8)
	if err != nil || column != 2 {
		return v
	}
	if strings.Contains(capture, "thrift") {
		return []string{"", "call", "reply", "exception", "oneway"}[n]
	}
	return []string{"ERROR", "STARTUP", "READY", "AUTHENTICATE", "", "OPTIONS", "SUPPORTED", "QUERY", "RESULT", "PREPARE",
		"EXECUTE", "REGISTER", "EVENT", "BATCH", "AUTH_CHALLENGE", "AUTH_RESPONSE", "AUTH_SUCCESS"}[n]
}
