package classify

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netsplit/model"
)

// thriftMsg is a strict message with the fields of a struct.
func thriftMsg(kind byte, name string, seq byte, fields string) string {
	return "\x80\x01\x00" + string(kind) + cqlLong(name) + "\x00\x00\x00" + string(seq) + fields + "\x00"
}

func thriftFramed(s string) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(s)))) + s
}

func TestThriftConversations(t *testing.T) {
	arg := func(id byte, s string) string { return "\x0b\x00" + string(id) + cqlLong(s) }
	level := "\x08\x00\x04\x00\x00\x00\x02"
	call := thriftMsg(1, "insert", 1, arg(1, "key")+"\x0c\x00\x02\x0b\x00\x03"+cqlLong("cf")+"\x00"+level)
	timedOut := thriftMsg(2, "insert", 1, "\x0c\x00\x03\x00")
	loose := cqlLong("truncate") + "\x01\x00\x00\x00\x07" + arg(1, "cf") + "\x00"
	for _, c := range []struct {
		name  string
		turns []turn
		want  []string
	}{
		{"framed", []turn{{0, thriftFramed(call)}, {1, thriftFramed(timedOut)}, {0, thriftFramed(thriftMsg(1, "nosuch", 2, ""))}, {1, thriftFramed(thriftMsg(3, "nosuch", 2, arg(1, "Invalid method name")))}},
			[]string{"> thrift insert call", "< thrift insert error TIMED_OUT", "> thrift nosuch call", "< thrift nosuch exception"}},
		{"unframed", []turn{{0, call + thriftMsg(1, "describe_version", 2, "")}, {1, thriftMsg(2, "insert", 1, "") + thriftMsg(2, "describe_version", 2, arg(0, "19.4.0"))}},
			[]string{"> thrift insert call", "> thrift describe_version call", "< thrift insert reply", "< thrift describe_version reply"}},
		{"not strict", []turn{{0, loose + loose}, {1, thriftFramed(loose[:12] + "\x02" + loose[13:])}},
			[]string{"> thrift truncate call", "> thrift truncate call", "< thrift truncate error INVALID_REQUEST"}},
		{"long without frame", []turn{{0, thriftMsg(1, "insert", 1, arg(1, strings.Repeat("k", 200_000)))}, {1, thriftMsg(2, "insert", 1, "")}, {0, call}},
			[]string{"> thrift insert call", "> thrift insert call end", "< thrift insert reply", "> thrift insert call"}},
		{"names are no data", []turn{{0, thriftFramed(thriftMsg(1, "user1234", 1, "")) + thriftFramed(thriftMsg(4, "execute_cql3_query", 1, ""))}},
			[]string{"> thrift other call", "> thrift execute_cql3_query oneway"}},
		{"start in the middle", []turn{{0, "value\x00\x00" + thriftFramed(call)}}, []string{"> unknown", "> thrift insert call"}},
		{"not Thrift", []turn{{0, "GET / HTTP/1.1\r\n"}}, []string{"> unknown"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, types(play(newThrift(), c.turns))); diff != "" {
				t.Errorf("types (-want +got):\n%s", diff)
			}
		})
	}
}

func TestThriftFields(t *testing.T) {
	list := "\x0f\x00\x00\x0b\x00\x00\x00\x02" + cqlLong("a b") + cqlLong("\xff\xfe")
	us := play(newThrift(), []turn{
		{0, thriftFramed(thriftMsg(1, "get", 7, "\x0b\x00\x01"+cqlLong("k1")+"\x0c\x00\x02\x0b\x00\x03"+cqlLong("cf")+"\x00\x08\x00\x03\x00\x00\x00\x05"))},
		{1, thriftFramed(thriftMsg(2, "describe_keyspaces", 7, list))}})
	for i, want := range []map[string]string{
		{"method": "get", "seqid": "7", "key": "k1", "column_path": "{3: cf}", "consistency_level": "ALL"},
		{"reply": `["a b" (2 bytes)]`},
	} {
		for name, v := range want {
			if got := field(us[i], name); got != v {
				t.Errorf("%s: %s is %q, want %q", us[i].Type, name, got, v)
			}
		}
	}
}

// A message without a frame that is longer than is looked at is framed alike
// however it is cut, also one that ends just behind the border.
func TestThriftLongMessagesKeepTheRules(t *testing.T) {
	for _, n := range []int{thriftKeep - 100, thriftKeep + 100, 2 * frameKeep, 3 * frameKeep} {
		in := []step{{dir: 0, b: []byte(thriftMsg(1, "insert", 1, "\x0b\x00\x01"+cqlLong(strings.Repeat("k", n))))},
			{dir: 1, b: []byte(thriftMsg(2, "insert", 1, ""))}, {dir: 0, b: []byte(thriftMsg(1, "get", 2, ""))}}
		for seed := range int64(4) {
			us := rules(t, model.Protocol{Dissector: NameThrift}, in, seed, fuzzCuts)
			if last := us[0][len(us[0])-1]; last.Type != "thrift get call" {
				t.Errorf("%d bytes: %+v", n, last)
			}
			rules(t, model.Protocol{Dissector: NameThrift}, []step{{b: append(in[0].b, in[2].b...)}}, seed, fuzzCuts)
		}
	}
}
