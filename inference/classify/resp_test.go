package classify

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netsplit/model"
)

// turns is a conversation: each string is "> bytes" or "< bytes" in Go syntax.
type turn struct {
	dir int
	b   string
}

func play(d Dissector, turns []turn) []Unit {
	var us []Unit
	add := func(u Unit) { us = append(us, u) }
	var off [2]uint64
	for _, x := range turns {
		d.Data(x.dir, off[x.dir], []byte(x.b), add)
		off[x.dir] += uint64(len(x.b))
	}
	d.Close(0, add)
	d.Close(1, add)
	return us
}

// cmdBytes encodes a command as clients do.
func cmdBytes(args ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b.String()
}

func types(us []Unit) []string {
	var out []string
	for _, u := range us {
		out = append(out, string("><"[u.Dir])+" "+u.Type)
	}
	return out
}

func field(u Unit, name string) string {
	m := model.Message{Fields: u.Fields}
	v, ok := m.Field(name)
	if !ok {
		return "(none)"
	}
	return v
}

func TestRESPConversations(t *testing.T) {
	mark := strings.Repeat("0123456789", 4)
	for _, c := range []struct {
		name  string
		turns []turn
		want  []string
	}{
		{"request and reply", []turn{{0, cmdBytes("set", "k1", "v")}, {1, "+OK\r\n"}, {0, cmdBytes("GET", "k1") + cmdBytes("INFO")}, {1, "$1\r\nv\r\n$3\r\na\nb\r\n"}},
			[]string{"> resp SET", "< resp reply SET", "> resp GET", "> resp INFO", "< resp reply GET", "< resp reply INFO"}},
		{"inline command and empty lines", []turn{{0, "\r\n\nPING\r\nping hello\n"}, {1, "+PONG\r\n$5\r\nhello\r\n"}},
			[]string{"> resp newline", "> resp newline", "> resp PING", "> resp PING", "< resp reply PING", "< resp reply PING"}},
		{"sentinel hello and vote", []turn{
			{0, cmdBytes("PUBLISH", "__sentinel__:hello", "10.0.0.1,26379,id,3,m,10.0.0.2,6379,3") + cmdBytes("SENTINEL", "is-master-down-by-addr", "10.0.0.1", "6379", "3", "*")},
			{1, ":1\r\n*3\r\n:1\r\n$1\r\n*\r\n:0\r\n"}},
			[]string{"> resp PUBLISH __sentinel__:hello", "> resp SENTINEL IS-MASTER-DOWN-BY-ADDR", "< resp reply PUBLISH __sentinel__:hello", "< resp reply SENTINEL IS-MASTER-DOWN-BY-ADDR"}},
		{"transaction", []turn{{0, cmdBytes("MULTI") + cmdBytes("SLAVEOF", "NO", "ONE") + cmdBytes("CONFIG", "REWRITE") + cmdBytes("EXEC") + cmdBytes("ROLE")},
			{1, "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n+OK\r\n*1\r\n$6\r\nmaster\r\n"}},
			[]string{"> resp MULTI", "> resp SLAVEOF NO ONE", "> resp CONFIG REWRITE", "> resp EXEC", "> resp ROLE",
				"< resp reply MULTI", "< resp queued SLAVEOF NO ONE", "< resp queued CONFIG REWRITE", "< resp reply EXEC", "< resp reply ROLE"}},
		{"after a transaction", []turn{{0, cmdBytes("MULTI") + cmdBytes("EXEC") + cmdBytes("EVAL", "x", "0")}, {1, "+OK\r\n*0\r\n+QUEUED\r\n"}},
			[]string{"> resp MULTI", "> resp EXEC", "> resp EVAL", "< resp reply MULTI", "< resp reply EXEC", "< resp reply EVAL"}},
		{"errors", []turn{{0, cmdBytes("SET", "a", "b") + cmdBytes("FOO")}, {1, "-READONLY You can't write against a read only replica.\r\n-ERR unknown command 'FOO'\r\n"}},
			[]string{"> resp SET", "> resp FOO", "< resp error READONLY SET", "< resp error ERR FOO"}},
		{"no reply asked", []turn{{0, cmdBytes("CLIENT", "REPLY", "SKIP") + cmdBytes("SET", "a", "b") + cmdBytes("GET", "a") + cmdBytes("CLIENT", "REPLY", "OFF") + cmdBytes("DEL", "a") + cmdBytes("CLIENT", "REPLY", "ON") + cmdBytes("PING")}, {1, "$1\r\nb\r\n+OK\r\n+PONG\r\n"}},
			[]string{"> resp CLIENT REPLY", "> resp SET", "> resp GET", "> resp CLIENT REPLY", "> resp DEL", "> resp CLIENT REPLY", "> resp PING", "< resp reply GET", "< resp reply CLIENT REPLY", "< resp reply PING"}},
		{"subscriptions", []turn{{0, cmdBytes("SUBSCRIBE", "__sentinel__:hello", "mine") + cmdBytes("PING")},
			{1, "*3\r\n$9\r\nsubscribe\r\n$18\r\n__sentinel__:hello\r\n:1\r\n*3\r\n$9\r\nsubscribe\r\n$4\r\nmine\r\n:2\r\n*2\r\n$4\r\npong\r\n$0\r\n\r\n*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n$1\r\nx\r\n*3\r\n$7\r\nmessage\r\n$4\r\nmine\r\n$1\r\nx\r\n*4\r\n$8\r\npmessage\r\n$1\r\n*\r\n$5\r\n+sdow\r\n$1\r\nx\r\n"},
			{0, cmdBytes("UNSUBSCRIBE")}, {1, "*3\r\n$11\r\nunsubscribe\r\n$4\r\nmine\r\n:1\r\n*3\r\n$11\r\nunsubscribe\r\n$18\r\n__sentinel__:hello\r\n:0\r\n"}, {0, cmdBytes("GET", "k")}, {1, "$-1\r\n"}},
			[]string{"> resp SUBSCRIBE __sentinel__:hello", "> resp PING", "< resp reply SUBSCRIBE __sentinel__:hello", "< resp reply SUBSCRIBE", "< resp reply PING",
				"< resp push message +switch-master", "< resp push message", "< resp push pmessage +sdow", "> resp UNSUBSCRIBE", "< resp reply UNSUBSCRIBE", "< resp reply UNSUBSCRIBE __sentinel__:hello", "> resp GET", "< resp reply GET"}},
		{"RESP3", []turn{{0, cmdBytes("HELLO", "3") + cmdBytes("GET", "a") + cmdBytes("SMEMBERS", "s") + cmdBytes("GET", "n") + cmdBytes("INCR", "b") + cmdBytes("INFO")},
			{1, "%2\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:3\r\n>2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n|1\r\n+ttl\r\n:5\r\n,1.5\r\n~3\r\n#t\r\n_\r\n(123456789012345678901234567890\r\n$?\r\n;2\r\nab\r\n;1\r\nc\r\n;0\r\n*?\r\n:1\r\n.\r\n=7\r\ntxt:a\nb\r\n"}},
			[]string{"> resp HELLO", "> resp GET", "> resp SMEMBERS", "> resp GET", "> resp INCR", "> resp INFO", "< resp reply HELLO", "< resp push invalidate", "< resp reply GET", "< resp reply SMEMBERS", "< resp reply GET", "< resp reply INCR", "< resp reply INFO"}},
		{"replication with a file", []turn{{0, cmdBytes("PING")}, {1, "+PONG\r\n"}, {0, cmdBytes("REPLCONF", "listening-port", "6380") + cmdBytes("PSYNC", "?", "-1")},
			{1, "+OK\r\n+FULLRESYNC 8de1787ba490483314a4d30f1c628bc5025eb761 1\r\n\n\n$10\r\nREDIS\r\n*1\r" + cmdBytes("PING") + cmdBytes("SELECT", "0") + cmdBytes("set", "k", "v") + cmdBytes("REPLCONF", "GETACK", "*")},
			{0, "\n" + cmdBytes("REPLCONF", "ACK", "15")}, {1, "\n"}},
			[]string{"> resp PING", "< resp reply PING", "> resp REPLCONF LISTENING-PORT", "> resp PSYNC ?", "< resp reply REPLCONF LISTENING-PORT", "< resp reply PSYNC FULLRESYNC", "< resp newline", "< resp newline", "< resp rdb",
				"< resp repl PING", "< resp repl SELECT", "< resp repl SET", "< resp repl REPLCONF GETACK", "> resp newline", "> resp REPLCONF ACK", "< resp newline"}},
		{"replication without a file", []turn{{0, cmdBytes("PSYNC", "?", "-1")}, {1, "+FULLRESYNC 8de1787ba490483314a4d30f1c628bc5025eb761 1\r\n$EOF:" + mark + "\r\nREDIS" + mark[:39] + "x" + mark + cmdBytes("PING")}},
			[]string{"> resp PSYNC ?", "< resp reply PSYNC FULLRESYNC", "< resp rdb", "< resp repl PING"}},
		{"partial resynchronisation", []turn{{0, cmdBytes("PSYNC", "8de1787ba490483314a4d30f1c628bc5025eb761", "7")}, {1, "+CONTINUE\r\n" + cmdBytes("SET", "a", "b")}},
			[]string{"> resp PSYNC", "< resp reply PSYNC CONTINUE", "< resp repl SET"}},
		{"sync of old", []turn{{0, cmdBytes("PING") + "SYNC\r\n"}, {1, "+PONG\r\n\n$3\r\nabc" + cmdBytes("PING")}},
			[]string{"> resp PING", "> resp SYNC", "< resp reply PING", "< resp newline", "< resp rdb", "< resp repl PING"}},
		{"monitor", []turn{{0, cmdBytes("MONITOR")}, {1, "+OK\r\n+1700000000.5 [0 127.0.0.1:1] \"get\" \"k\"\r\n"}},
			[]string{"> resp MONITOR", "< resp reply MONITOR", "< resp push monitor"}},
		{"start in the middle", []turn{{0, "lue\r\n" + cmdBytes("GET", "k")}, {1, "rest of it\r\n+PONG\r\n"}, {0, cmdBytes("PING")}, {1, "+PONG\r\n"}},
			[]string{"> unknown", "> resp GET", "< unknown", "< resp reply unmatched", "> resp PING", "< resp reply PING"}},
		{"replication seen late", []turn{{1, cmdBytes("PING") + cmdBytes("SET", "a", "b")}, {0, cmdBytes("REPLCONF", "ACK", "9")}, {1, cmdBytes("FCALL", "x", "0")}},
			[]string{"< resp repl PING", "< resp repl SET", "> resp REPLCONF ACK", "< resp repl FCALL"}},
		{"opener unknown", []turn{{0, "+PONG\r\n"}, {1, cmdBytes("GET", "a")}, {0, "$1\r\nx\r\n"}},
			[]string{"> resp reply unmatched", "< resp GET", "> resp reply GET"}},
		{"opener unknown, replica", []turn{{0, cmdBytes("PING")}, {1, cmdBytes("REPLCONF", "ACK", "1")}, {0, cmdBytes("DEL", "a")}},
			[]string{"> resp PING", "< resp reply PING", "> resp DEL"}},
		{"not RESP", []turn{{0, "GET / HTTP/1.1\r\nHost: x\r\n\r\n\x00\x01"}, {1, "HTTP/1.1 400\r\n"}},
			[]string{"> resp GET", "> unknown", "< unknown"}},
		{"cut off", []turn{{0, cmdBytes("PING") + "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$10\r\nab"}, {1, "+PON"}},
			[]string{"> resp PING", "> resp SET", "< unknown"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := types(play(newRESP(), c.turns))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("types (-want +got):\n%s", diff)
			}
		})
	}
}
