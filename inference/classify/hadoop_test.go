package classify

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"netsplit/model"
)

// pb builds a message: pairs of a field number and an int, string or pb.
type pb []any

func (p pb) bytes() []byte {
	var b []byte
	for i := 0; i+1 < len(p); i += 2 {
		num := protowire.Number(p[i].(int))
		switch v := p[i+1].(type) {
		case int:
			b = protowire.AppendVarint(protowire.AppendTag(b, num, protowire.VarintType), uint64(v))
		case string:
			b = protowire.AppendString(protowire.AppendTag(b, num, protowire.BytesType), v)
		case pb:
			b = protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), v.bytes())
		}
	}
	return b
}

func delimited(parts ...pb) string {
	var b []byte
	for _, p := range parts {
		b = protowire.AppendBytes(b, p.bytes())
	}
	return string(b)
}

func framedRPC(body string) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(body)))) + body
}

const clientID = "0123456789abcdef"

func zig(n int) int { return int(protowire.EncodeZigZag(int64(n))) }

// rpcCall is a request of the protobuf engine.
func rpcCall(id int, protocol, method string, body pb) string {
	return framedRPC(delimited(pb{1, 2, 2, 0, 3, zig(id), 4, clientID, 5, zig(0)}, pb{1, method, 2, protocol, 3, 1}, body))
}

func rpcReply(id int, body pb) string {
	return framedRPC(delimited(pb{1, id, 2, 0, 3, 9, 7, clientID, 8, zig(0)}, body))
}

func rpcFailure(id, status int, class, message string) string {
	return framedRPC(delimited(pb{1, id, 2, status, 3, 9, 4, class, 5, message, 6, 1, 7, clientID}))
}

const (
	greeting       = "hrpc\x09\x00\x00"
	clientProtocol = "org.apache.hadoop.hdfs.protocol.ClientProtocol"
	haProtocol     = "org.apache.hadoop.ha.HAServiceProtocol"
)

func TestHadoopRPCTypes(t *testing.T) {
	sasl := uint32(0xFFFFFFDF) // -33
	for _, c := range []struct {
		name  string
		turns []turn
		want  []string
	}{
		{"a connection begins", []turn{{0, greeting + framedRPC(delimited(pb{1, 2, 2, 0, 3, zig(-3), 4, clientID}, pb{2, pb{1, "root"}, 3, clientProtocol})) +
			rpcCall(0, clientProtocol, "getFileInfo", pb{1, "/a"})}, {1, rpcReply(0, pb{})}},
			[]string{"> rpc greeting", "> rpc context", "> rpc getFileInfo", "< rpc getFileInfo reply"}},
		{"answers in another order", []turn{{0, rpcCall(1, clientProtocol, "mkdirs", pb{}) + rpcCall(2, clientProtocol, "delete", pb{})}, {1, rpcReply(2, pb{}) + rpcReply(1, pb{})}},
			[]string{"> rpc mkdirs", "> rpc delete", "< rpc delete reply", "< rpc mkdirs reply"}},
		{"errors", []turn{{0, rpcCall(1, clientProtocol, "mkdirs", pb{})}, {1, rpcFailure(1, 1, "org.apache.hadoop.ipc.StandbyException", "no") + rpcFailure(7, 2, "x.Y", "z")}},
			[]string{"> rpc mkdirs", "< rpc mkdirs error", "< rpc error unmatched"}},
		{"no request was seen", []turn{{1, rpcReply(5, pb{})}, {0, rpcCall(6, clientProtocol, "mkdirs", pb{})}, {1, rpcReply(6, pb{})}},
			[]string{"< rpc reply unmatched", "> rpc mkdirs", "< rpc mkdirs reply"}},
		{"the opener was not seen", []turn{{1, rpcCall(6, clientProtocol, "mkdirs", pb{})}, {0, rpcReply(6, pb{})}},
			[]string{"< rpc mkdirs", "> rpc mkdirs reply"}},
		{"an answer comes once", []turn{{0, rpcCall(6, clientProtocol, "mkdirs", pb{})}, {1, rpcReply(6, pb{}) + rpcReply(6, pb{})}},
			[]string{"> rpc mkdirs", "< rpc mkdirs reply", "< rpc reply unmatched"}},
		{"ping", []turn{{0, greeting + framedRPC(delimited(pb{1, 2, 2, 0, 3, zig(-4), 4, clientID}))}},
			[]string{"> rpc greeting", "> rpc keepalive"}},
		{"negotiation", []turn{{0, "hrpc\x09\x00\xdf" + framedRPC(delimited(pb{1, 2, 2, 0, 3, zig(-33), 4, "", 5, zig(-1)}, pb{2, 1}))},
			{1, framedRPC(delimited(pb{1, int(sasl), 2, 0, 3, 9, 7, ""}, pb{2, 1, 4, pb{1, "TOKEN"}})) + framedRPC(delimited(pb{1, int(sasl), 2, 2, 3, 9, 4, "javax.security.sasl.SaslException", 7, ""}))}},
			[]string{"> rpc greeting", "> rpc sasl NEGOTIATE", "< rpc sasl NEGOTIATE", "< rpc sasl error"}},
		{"methods of two protocols", []turn{{0, rpcCall(1, "org.apache.hadoop.hdfs.qjournal.protocol.QJournalProtocol", "journal", pb{}) + rpcCall(2, "org.apache.hadoop.hdfs.server.protocol.NamenodeProtocol", "versionRequest", pb{})}},
			[]string{"> rpc journal QJournalProtocol", "> rpc versionRequest"}},
		{"a protocol the table does not know", []turn{{0, rpcCall(1, "com.example.Other", "doThings", pb{1, "x"})}, {1, rpcReply(1, pb{1, 2})}},
			[]string{"> rpc doThings", "< rpc doThings reply"}},
		{"a name that is none", []turn{{0, rpcCall(1, "com.example.Other", "a b", pb{})}, {1, rpcReply(1, pb{})}},
			[]string{"> unknown", "< rpc reply unmatched"}},
		{"not this protocol", []turn{{0, "GET / HTTP/1.1\r\n\r\n"}, {1, "HTTP/1.1 404 Not Found\r\n\r\n"}},
			[]string{"> unknown", "< unknown"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, types(play(newHadoopRPC(), c.turns))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestHadoopRPCFields(t *testing.T) {
	token := pb{1, pb{1, pb{1, 7, 2, 1700000000000}, 2, 3}, 2, 5}.bytes()
	digest := `charset=utf-8,username="` + base64.StdEncoding.EncodeToString(token) + `",realm="default"`
	attempt := pb{1, pb{1, 7, 2, 1700000000000}, 2, 3}
	container := func(n int) pb { return pb{1, pb{1, 7, 2, 1700000000000}, 2, attempt, 3, n} }
	const tracker = "org.apache.hadoop.yarn.server.api.ResourceTrackerPB"
	for _, c := range []struct {
		name  string
		turns []turn
		unit  int
		want  map[string]string
	}{
		{"headers", []turn{{0, framedRPC(delimited(pb{1, 2, 2, 0, 3, zig(9), 4, clientID, 5, zig(2)}, pb{1, "getServiceStatus", 2, haProtocol, 3, 1}, pb{}))}}, 0,
			map[string]string{"rpc.protocol": haProtocol, "rpc.method": "getServiceStatus", "rpc.call": "9", "rpc.retry": "2"}},
		{"state", []turn{{0, rpcCall(1, haProtocol, "getServiceStatus", pb{})}, {1, rpcReply(1, pb{1, 2, 2, 1})}}, 1,
			map[string]string{"state": "STANDBY", "readyToBecomeActive": "true"}},
		{"exception", []turn{{0, rpcCall(1, clientProtocol, "mkdirs", pb{})}, {1, rpcFailure(1, 1, "org.apache.hadoop.ipc.StandbyException", "Operation category WRITE\n\tat x")}}, 1,
			map[string]string{"rpc.exception": "org.apache.hadoop.ipc.StandbyException", "rpc.message": "Operation category WRITE", "rpc.status": "ERROR", "rpc.detail": "ERROR_APPLICATION"}},
		{"numbers below zero", []turn{{0, rpcCall(1, "org.apache.hadoop.hdfs.server.protocol.NamenodeProtocol", "getTransactionId", pb{})}, {1, rpcReply(1, pb{1, -12345})}}, 1,
			map[string]string{"txId": "-12345"}},
		{"a value of tomorrow", []turn{{0, rpcCall(1, haProtocol, "getServiceStatus", pb{})}, {1, rpcReply(1, pb{1, 9, 77, "new", 78, 1})}}, 1,
			map[string]string{"state": "9", "readyToBecomeActive": "(none)"}},
		{"containers", []turn{{0, rpcCall(1, tracker, "nodeHeartbeat", pb{1, pb{1, pb{1, "n3", 2, 8041}, 3, pb{1, container(2), 2, 2, 3, "a b", 4, 0}, 3, pb{1, container(1<<40 | 3), 2, 3}}})}}, 0,
			map[string]string{"node_status.node_id": "n3:8041",
				"node_status.containersStatuses": "container_1700000000000_0007_03_000002 state=C_RUNNING diagnostics=\"a b\" exit_status=0\ncontainer_e01_1700000000000_0007_03_000003 state=C_COMPLETE\n"}},
		{"identifiers only", []turn{{0, rpcCall(1, tracker, "nodeHeartbeat", pb{})}, {1, rpcReply(1, pb{4, 1, 5, container(2), 5, container(3)})}}, 1,
			map[string]string{"nodeAction": "RESYNC", "containers_to_cleanup": "container_1700000000000_0007_03_000002\ncontainer_1700000000000_0007_03_000003\n"}},
		{"the container is in its token", []turn{{0, rpcCall(1, "org.apache.hadoop.yarn.api.ContainerManagementProtocolPB", "startContainers",
			pb{1, pb{2, pb{1, string(pb{1, container(2)}.bytes()), 2, "secret", 3, "ContainerToken"}}})}}, 0,
			map[string]string{"start_container_request": "container_1700000000000_0007_03_000002\n"}},
		{"the attempt is in the token", []turn{{0, framedRPC(delimited(pb{1, 2, 2, 0, 3, zig(-33), 4, ""}, pb{2, 2, 3, digest, 4, pb{1, "TOKEN"}})) +
			rpcCall(0, "org.apache.hadoop.yarn.api.ApplicationMasterProtocolPB", "finishApplicationMaster", pb{3, 1})}}, 1,
			map[string]string{"rpc.attempt": "appattempt_1700000000000_0007_000003", "final_application_status": "APP_SUCCEEDED"}},
		{"blocks of a report", []turn{{0, rpcCall(1, "org.apache.hadoop.hdfs.server.protocol.DatanodeProtocol", "blockReport",
			pb{3, pb{1, pb{1, "DS-1"}, 3, 2, 4, string(varints(zig(5), 100, 1001, 0, zig(6), 7, 1002, 1))}, 3, pb{1, pb{1, "DS-2"}, 2, string(varints(1, 1, 5, 100, 1001, -1, -1, -1, 6, 7, 1002, 1))}})}}, 0,
			map[string]string{"reports": "storage.storageUuid=DS-1 numberOfBlocks=2 blocksBuffers=blk_5_1001,blk_6_1002/RBW\nstorage.storageUuid=DS-2 blocks=blk_5_1001,blk_6_1002/RBW\n"}},
		{"a message that is broken inside", []turn{{0, rpcCall(1, clientProtocol, "rename", pb{1, "/a", 2, "/b"})[:95] + "\xff\xff\xff\xff"}}, 0, map[string]string{"src": "/a", "dst": "(none)"}},
		{"wrong wire types are passed over", []turn{{0, rpcCall(1, clientProtocol, "rename", pb{1, 5, 2, "/b"})}}, 0, map[string]string{"src": "(none)", "dst": "/b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			us := play(newHadoopRPC(), c.turns)
			for name, want := range c.want {
				if got := field(us[c.unit], name); got != want {
					t.Errorf("%s: field %s is %q, want %q (%+v)", us[c.unit].Type, name, got, want, us[c.unit].Fields)
				}
			}
		})
	}
}

func varints(ns ...int) (b []byte) {
	for _, n := range ns {
		b = protowire.AppendVarint(b, uint64(n))
	}
	return b
}

func TestHadoopWritable(t *testing.T) {
	utf8 := func(s string) string { return string(binary.BigEndian.AppendUint16(nil, uint16(len(s)))) + s }
	int32 := func(n int) string { return string(binary.BigEndian.AppendUint32(nil, uint32(n))) }
	text := func(s string) string { return string(rune(len(s))) + s }
	task := int32(1) + int32(4) + int32(7) + text("1700000000000") + text("MAP")
	const id = "org.apache.hadoop.mapred.TaskAttemptID"
	call := func(method, args string, n int) string {
		return framedRPC(delimited(pb{1, 1, 2, 0, 3, zig(1), 4, clientID}) + int32(0) + int32(2) + utf8("org.apache.hadoop.mapred.TaskUmbilicalProtocol") +
			utf8(method) + int32(0) + int32(19) + int32(0) + int32(n) + args)
	}
	args := utf8(id) + utf8(id) + task + utf8("org.apache.hadoop.mapred.TaskStatus") + utf8("org.apache.hadoop.mapred.MapTaskStatus") +
		task + "\x3f\x00\x00\x00" + int32(1) + text("RUNNING") + text("why") + text("map > sort") + text("MAP")
	us := play(newHadoopRPC(), []turn{{0, call("statusUpdate", args, 2)}, {1, framedRPC(delimited(pb{1, 1, 2, 0, 3, 9, 7, clientID}) + utf8("boolean") + "\x01")},
		{0, call("statusUpdate", args[:40], 2)}})
	want := map[string]string{"task": "attempt_1700000000000_0007_m_000004_1", "status.progress": "0.5", "status.state": "RUNNING", "status.text": "map > sort", "status.phase": "MAP"}
	for name, v := range want {
		if got := field(us[0], name); got != v {
			t.Errorf("field %s is %q, want %q (%+v)", name, got, v, us[0])
		}
	}
	if us[1].Type != "rpc statusUpdate reply" || field(us[1], "value") != "true" || us[2].Type != "rpc statusUpdate" {
		t.Errorf("%+v", us[1:])
	}
}

func TestHadoopVariableLengths(t *testing.T) {
	for in, want := range map[string]int64{"\x00": 0, "\x7f": 127, "\xff": -1, "\x90": -112, "\x8f\xc8": 200, "\x87\xc7": -200, "\x8d\x01\x00\x00": 65536, "\x85\xff\xff\xff": -1 << 24} {
		w := &writable{b: []byte(in)}
		if got := w.vlong(); got != want || w.bad || len(w.b) > 0 {
			t.Errorf("% x is %d, want %d", in, got, want)
		}
	}
	w := &writable{b: []byte("\x8d\x01")}
	if w.vlong(); !w.bad {
		t.Error("bytes are missing")
	}
}

func TestHadoopRPCAfterAGap(t *testing.T) {
	var us []Unit
	add := func(u Unit) { us = append(us, u) }
	d := newHadoopRPC()
	call := func(i int) string { return rpcCall(i, clientProtocol, "mkdirs", pb{1, "/d"}) }
	first := greeting + call(1)
	d.Data(0, 0, []byte(first), add)
	d.Gap(0, uint64(len(first)), 5000, add)
	off := uint64(len(first) + 5000)
	rest := call(2)[30:] + call(3) + call(4)
	d.Data(0, off, []byte(rest), add)
	d.Data(1, 0, []byte(rpcReply(3, pb{})), add)
	want := []string{"> rpc greeting", "> rpc mkdirs", "> unknown", "> rpc mkdirs", "> rpc mkdirs", "< rpc mkdirs reply"}
	if diff := cmp.Diff(want, types(us)); diff != "" {
		t.Error(diff)
	}
}

func TestHadoopRPCKeepsLittle(t *testing.T) {
	d := newHadoopRPC().(*framedPair)
	var got []string
	add := func(u Unit) { got = append(got, fmt.Sprintf("%s %d", u.Type, u.Bytes)) }
	long := rpcCall(1, clientProtocol, "create", pb{1, "/a", 2, strings.Repeat("x", 5<<20)})
	for off := 0; off < len(long); off += 1000 {
		d.Data(0, uint64(off), []byte(long[off:min(off+1000, len(long))]), add)
		if cap(d.d[0].buf) > 4*frameKeep {
			t.Fatalf("keeps %d bytes", cap(d.d[0].buf))
		}
	}
	if diff := cmp.Diff([]string{"rpc create 65536", fmt.Sprintf("rpc create end %d", len(long)-65536)}, got); diff != "" {
		t.Error(diff)
	}
	h := &hadoopRPC{pending: map[int32]hrpcCall{}}
	for i := range 3 * hrpcPending {
		h.ask(int32(i), hrpcCall{})
	}
	if len(h.pending) > hrpcPending || len(h.order) > 2*hrpcPending {
		t.Errorf("%d calls kept, %d in order", len(h.pending), len(h.order))
	}
}

func TestHadoopTypesDoNotGrowWithData(t *testing.T) {
	seen := map[string]bool{}
	for i := range 300 {
		id := fmt.Sprintf("id%d", i)
		for _, u := range play(newHadoopRPC(), []turn{{0, greeting + rpcCall(i, clientProtocol, "create", pb{1, id, 3, id}) + rpcCall(i+1, clientProtocol, "not a name "+id, pb{})},
			{1, rpcFailure(i, 1, "x."+id, id) + rpcReply(i+7, pb{1, i})}}) {
			seen[u.Type] = true
		}
		for _, u := range play(newHDFSData(), []turn{{0, "\x00\x1c\x51" + delimited(pb{1, pb{1, pb{1, pb{1, id, 2, i, 3, i}}, 2, id}, 2, 0, 3, i})}, {1, delimited(pb{1, i % 2 * 5, 2, id})}}) {
			seen[u.Type] = true
		}
	}
	if len(seen) > 9 {
		t.Errorf("%d types: %v", len(seen), seen)
	}
	var turns []turn
	for i := range 300 {
		turns = append(turns, turn{0, rpcCall(i, "com.example.Other", fmt.Sprintf("method%d", i), pb{})}, turn{1, rpcReply(i, pb{})})
	}
	clear(seen)
	for _, u := range play(newHadoopRPC(), turns) {
		seen[u.Type] = true
	}
	if len(seen) != 2*hrpcNames+2 || !seen["rpc other"] || !seen["rpc other reply"] {
		t.Errorf("%d types of unknown methods", len(seen))
	}
}

func TestHadoopTableHoldsTheStateOfThePaper(t *testing.T) {
	for method, fields := range map[string][]string{
		"registerDatanode": {"registration"}, "sendHeartbeat": {"registration", "reports"}, "transitionToActive": {"reqInfo"}, "newEpoch": {"epoch"},
		"journal": {"records", "firstTxnId"}, "blockReceivedAndDeleted": {"blocks"}, "registerNodeManager": {"node_id"}, "nodeHeartbeat": {"node_status"},
		"allocate": {"ask", "release"}, "startContainers": {"start_container_request"}, "submitApplication": {"application_submission_context"},
	} {
		m, ok := hadoopTable.method("", method)
		if !ok {
			t.Errorf("no method %s", method)
			continue
		}
		names := map[string]bool{}
		for _, f := range m.in.fields {
			names[f.name] = true
		}
		for _, f := range fields {
			if !names[f] {
				t.Errorf("%s has no field %s", method, f)
			}
		}
	}
	if m, _ := hadoopTable.method("", "sendHeartbeat"); m.out.field(2).name != "haStatus" {
		t.Error("the answer to a heartbeat tells the state of the NameNode in field 2")
	}
}

func TestBrokenTablesAreRefused(t *testing.T) {
	for _, text := range []string{"X a", "M a.B;1 f a.C", "M a.B;x f int32", "M"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q was taken", text)
				}
			}()
			parsePBTable(text)
		}()
	}
}

func TestUndeclaredPortsAreSniffed(t *testing.T) {
	for _, c := range []struct {
		turns []turn
		want  []string
	}{
		{[]turn{{0, "hr"}, {0, greeting[2:] + rpcCall(1, haProtocol, "monitorHealth", pb{})}, {1, rpcReply(1, pb{})}}, []string{"> rpc greeting", "> rpc monitorHealth", "< rpc monitorHealth reply"}},
		{[]turn{{0, "hr"}, {1, "hello"}, {0, "pc\x09"}}, []string{"> tcp data > 2^1 \"hr\"", "< tcp data < 2^2 \"hello\"", "> tcp data > 2^1 \"pc\""}},
		{[]turn{{0, "hrpd"}, {1, "x"}}, []string{"> tcp data > 2^2 \"hrpd\"", "< tcp data < 2^0"}},
		{[]turn{{0, "hrp"}, {0, ipcGreeting[3:] + ipcContext}}, []string{"> rpc greeting", "> rpc context"}},
		{[]turn{{0, "hrpc\x04\x50"}}, []string{"> rpc greeting"}},
		{[]turn{{0, "hrpc\x05\x50"}}, []string{"> tcp data > 2^2"}},
		{[]turn{{1, greeting}, {0, greeting}}, []string{"< tcp data < 2^2 \"hrpc\"", "> tcp data > 2^2 \"hrpc\""}},
		{[]turn{{0, "h"}}, []string{"> tcp data > 2^0"}},
	} {
		d, err := New(model.Protocol{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, types(play(d, c.turns))); diff != "" {
			t.Errorf("%+v: %s", c.turns, diff)
		}
	}
}
