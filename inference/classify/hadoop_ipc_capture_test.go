package classify_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netsplit/inference/classify"
	"netsplit/model"
)

var hadoop020Ports = map[uint16]string{8020: classify.NameHadoopWritable, 50020: classify.NameHadoopWritable}

// hadoop020Read reads the calls of testdata/hdfs020.
func hadoop020Read(t *testing.T) (out []model.Message) {
	t.Helper()
	for _, m := range messagesOf(t, framesOf(t, "hdfs020", "calls.pcap"), hadoop020Ports) {
		if !m.Transport() {
			out = append(out, m)
		}
	}
	return out
}

// TestHadoopWritableCapture: every byte is of a call or an answer, and each answer is of a call.
func TestHadoopWritableCapture(t *testing.T) {
	open := []has{
		{"rpc greeting", "rpc.version", "3"},
		{"rpc context", "protocol", "org.apache.hadoop.ipc.VersionedProtocol"},
		{"rpc context", "userInfo.effectiveUser", "root"},
		{"rpc register", "arg0.storageID", "DS-426907081-127.0.0.1-50010-1795732864341"},
		{"rpc register reply", "value", "10.9.0.4:50010"},
		{"rpc blockReport reply", "value", "finalize"},
		{"rpc create", "arg0", "/f0"},
		{"rpc create", "arg1", "0755"},
		{"rpc addBlock reply", "value", "blk_3076554114793934343_1001"},
		{"rpc addBlock reply", "value.locs", "10.9.0.2:50010,10.9.0.4:50010,10.9.0.3:50010"},
		{"rpc blockReceived", "arg1", "blk_3076554114793934343_1001"},
		{"rpc getFileInfo reply", "value.length", "200000"},
		{"rpc recoverBlock", "arg2", "10.9.0.3:50010,10.9.0.2:50010,10.9.0.4:50010"},
		{"rpc nextGenerationStamp reply", "value", "1002"},
		{"rpc updateBlock", "arg1", "blk_3076554114793934343_1002"},
		{"rpc commitBlockSynchronization", "arg2", "200000"},
		{"rpc getBlockLocations reply", "value.length", "400000"},
	}
	calls, answers := map[string]bool{}, 0
	types := map[string]int{}
	for _, m := range hadoop020Read(t) {
		types[m.Type]++
		if strings.Contains(m.Type, model.TypeUnknown) || strings.Contains(m.Type, "unmatched") || strings.Contains(m.Type, "other") {
			t.Errorf("message %d is %s", m.Num, m.Type)
		}
		call, _ := m.Field("rpc.call")
		id := string(m.To) + ":" + m.Stream + " " + call // of the request's direction
		switch {
		case strings.HasSuffix(m.Type, " reply"):
			answers++
			method, _ := m.Field("rpc.method")
			if m.Type != "rpc "+method+" reply" {
				t.Errorf("%s answers %s", m.Type, method)
			}
		case call != "":
			if calls[id] {
				t.Errorf("call %s twice", id)
			}
			calls[id] = true
		}
		for i := 0; i < len(open); i++ {
			if v, ok := m.Field(open[i].field); ok && m.Type == open[i].typ && v == open[i].value {
				open = append(open[:i], open[i+1:]...)
				i--
			}
		}
	}
	for _, h := range open {
		t.Errorf("no %s with %s=%s", h.typ, h.field, h.value)
	}
	if len(types) < 38 || answers < 150 || len(calls)-answers > 5 {
		t.Errorf("%d types, %d calls, %d answers", len(types), len(calls), answers)
	}
}

// TestHadoopWritableAgreesWithHadoop: Hadoop's own classes read the same messages, and fields, at the same places
// (calls.txt; see README.md).
func TestHadoopWritableAgreesWithHadoop(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "hdfs020", "calls.txt"))
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	var got []string
	for _, m := range hadoop020Read(t) {
		line := fmt.Sprintf("%s\t%d\t%d\t%s", strings.TrimSuffix(strings.TrimPrefix(m.Stream, "tcp "), "#1"), m.Offset, m.Bytes, m.Type)
		for _, f := range m.Fields {
			line += "\t" + f.Name + "=" + f.Value
		}
		got = append(got, line)
	}
	// Fields are in another order, and so are connections.
	for _, lines := range [][]string{want, got} {
		for i, line := range lines {
			words := strings.Split(line, "\t")
			slices.Sort(words[min(4, len(words)):])
			lines[i] = strings.Join(words, "\t")
		}
		slices.Sort(lines)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-Hadoop +netsplit):\n%s", d)
	}
}
