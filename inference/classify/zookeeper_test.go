package classify

import (
	"encoding/binary"
	"math/rand"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// jute writes records: int and long as such, a string or nil as a buffer,
// []byte as it stands.
func jute(values ...any) string {
	var b []byte
	for _, v := range values {
		switch v := v.(type) {
		case int:
			b = binary.BigEndian.AppendUint32(b, uint32(int32(v)))
		case int64:
			b = binary.BigEndian.AppendUint64(b, uint64(v))
		case bool:
			n := byte(0)
			if v {
				n = 1
			}
			b = append(b, n)
		case nil:
			b = binary.BigEndian.AppendUint32(b, 0xffffffff)
		case string:
			b = append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...)
		case []byte:
			b = append(b, v...)
		}
	}
	return string(b)
}

// zkFrame is a record behind its length.
func zkFrame(values ...any) string { return jute(jute(values...)) }

var zkStatBytes = []byte(jute(int64(0x100000002), int64(0x200000007), int64(1), int64(2), 5, 6, 7, int64(0), 3, 0, int64(0x100000002)))

func zkConnect() []turn {
	return []turn{
		{0, zkFrame(0, int64(0), 6000, int64(0), strings.Repeat("\x00", 16), false)},
		{1, zkFrame(0, 6000, int64(0x100000001), strings.Repeat("p", 16), false)},
	}
}

func TestZooKeeperVocabularyIsThatOfTheReleases(t *testing.T) {
	files, err := filepath.Glob("testdata/zookeeper/enums-*.tsv")
	if err != nil || len(files) != 3 {
		t.Fatalf("%v: %v", files, err)
	}
	seen := 0
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
			c := strings.Split(line, "\t")
			n64, err := strconv.ParseInt(c[2], 10, 64)
			if err != nil {
				t.Fatalf("%s: %q", name, line)
			}
			n, got, want := int32(n64), "", c[1]
			switch c[0] {
			case "opcode":
				got = zkOps[n]
				if n == 0 {
					got = "notification" // the type of no request
				}
			case "error":
				got = zkErrors[n]
				if n == 0 {
					got = "OK"
				}
			case "event":
				got = zkEvents[n]
			case "keeperstate":
				got = zkKeeperStates[n]
			case "zab":
				got = zkZab[n]
			case "serverstate":
				got = zkServerStates[n]
			case "4lw":
				if got = want; len(want) == 4 && !zkIsWord([]byte(want)) {
					got = "not a word"
				}
			case "cnx":
				got = map[int64]string{zkProtocolV1: "PROTOCOL_VERSION_V1", zkProtocolV2: "PROTOCOL_VERSION_V2", zkHelloMax: "maxBuffer"}[n64]
			case "notification":
				got = want
			}
			seen++
			if got != want {
				t.Errorf("%s: %s %d is %s, here %q", name, c[0], n64, want, got)
			}
		}
	}
	if seen < 300 {
		t.Errorf("only %d names", seen)
	}
}

func TestZooKeeperClient(t *testing.T) {
	ok := func(xid int, zxid int64, rest ...any) string {
		return zkFrame(append([]any{xid, zxid, 0}, rest...)...)
	}
	acl := []byte(jute(1, 31, "world", "anyone"))
	for _, c := range []struct {
		name  string
		turns []turn
		typ   string // of the last unit
		want  map[string]string
	}{
		{"connect", zkConnect()[:1], "zk connect", map[string]string{"session": "0x0", "timeout": "6000", "readOnly": "false"}},
		{"connected", zkConnect(), "zk connect reply", map[string]string{"session": "0x100000001", "error": "(none)"}},
		{"session gone", append(zkConnect()[:1], turn{1, zkFrame(0, 0, int64(0), strings.Repeat("\x00", 16), false)}),
			"zk connect reply", map[string]string{"error": "SESSIONEXPIRED"}},
		{"create", append(zkConnect(), turn{0, zkFrame(1, 1, "/a", "v", acl, 3)}),
			"zk create", map[string]string{"xid": "1", "path": "/a", "value": "v", "flags": "ephemeral-sequential"}},
		{"created", append(zkConnect(), turn{0, zkFrame(1, 1, "/a-", "v", acl, 3)}, turn{1, ok(1, 0x200000005, "/a-01")}),
			"zk create reply", map[string]string{"path": "/a-01", "zxid": "0x200000005", "epoch": "2", "counter": "5"}},
		{"set", append(zkConnect(), turn{0, zkFrame(2, 5, "/a", "v2", 4)}), "zk setData", map[string]string{"version": "4", "value": "v2"}},
		{"bad version", append(zkConnect(), turn{0, zkFrame(2, 5, "/a", "v2", 4)}, turn{1, zkFrame(2, int64(9), -103)}),
			"zk setData reply", map[string]string{"error": "BADVERSION", "path": "/a"}},
		{"read", append(zkConnect(), turn{0, zkFrame(3, 4, "/a", true)}, turn{1, ok(3, 9, "v", zkStatBytes)}),
			"zk getData reply", map[string]string{"value": "v", "version": "5", "mzxid": "0x200000007",
				"stat": "path=/a version=5 cversion=6 mzxid=0x200000007 czxid=0x100000002 owner=0x0 children=0"}},
		{"children", append(zkConnect(), turn{0, zkFrame(3, 8, "/l", false)}, turn{1, ok(3, 9, 2, "l-2", "l-1")}),
			"zk getChildren reply", map[string]string{"children": "l-2,l-1", "first": "l-1", "list": "path=/l first=l-1 count=2"}},
		{"two requests, answers in order", append(zkConnect(), turn{0, zkFrame(3, 4, "/a", false) + zkFrame(4, 9, "/b")}, turn{1, zkFrame(3, int64(9), -101) + ok(4, 9, "/b")}),
			"zk sync reply", map[string]string{"path": "/b"}},
		{"answered twice", append(zkConnect(), turn{0, zkFrame(3, 9, "/b")}, turn{1, ok(3, 9, "/b") + ok(3, 9, "/b")}), "zk reply unmatched", nil},
		{"unmatched", append(zkConnect(), turn{1, ok(7, 9)}), "zk reply unmatched", map[string]string{"xid": "7"}},
		{"event", append(zkConnect(), turn{1, zkFrame(-1, int64(-1), 0, 4, 3, "/l")}),
			"zk event NodeChildrenChanged", map[string]string{"path": "/l", "state": "SyncConnected"}},
		{"ping", append(zkConnect(), turn{0, zkFrame(-2, 11)}, turn{1, ok(-2, 9)}), "zk ping reply", nil},
		{"multi", append(zkConnect(), turn{0, zkFrame(3, 14, []byte(jute(13, false, -1, "/a", 2)), []byte(jute(5, false, -1, "/a", "x", 2)), []byte(jute(2, false, -1, "/b", -1)), []byte(jute(-1, true, -1)))}),
			"zk multi", map[string]string{"ops": "check,setData,delete"}},
		{"close", append(zkConnect(), turn{0, zkFrame(9, -11)}), "zk closeSession", nil},
		{"four letters", []turn{{0, "mntr"}, {1, "zk_version\t3.9.3\nzk_server_state\tleader\n"}}, "zk 4lw mntr reply",
			map[string]string{"text": "zk_version\t3.9.3\nzk_server_state\tleader\n"}},
		{"unknown operation", append(zkConnect(), turn{0, zkFrame(9, 77, "/a")}), "unknown", nil},
		{"not ZooKeeper", []turn{{0, "GET / HTTP/1.1\r\n\r\n"}}, "unknown", nil},
		{"cut off", append(zkConnect(), turn{0, zkFrame(1, 1, "/a", "v", acl, 3)[:20]}), "zk create", map[string]string{"incomplete": "true"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			us := play(newZooKeeper(), c.turns)
			last := us[len(us)-1]
			if last.Type != c.typ {
				t.Errorf("type %q, want %q (%v)", last.Type, c.typ, types(us))
			}
			for name, want := range c.want {
				if got := field(last, name); got != want {
					t.Errorf("field %s is %q, want %q (%+v)", name, got, want, last.Fields)
				}
			}
		})
	}
}

func TestZooKeeperElectionOfEveryRelease(t *testing.T) {
	vote := func(size int) string {
		b := jute(0, int64(3), int64(0x100000004), int64(2), int64(1), 2, "server.1=a:1:2\nversion=0")
		return jute(b[:min(size, len(b))])
	}
	for _, c := range []struct {
		name, hello string
		size        int
		want        string
	}{
		{"3.4.0", jute(int64(2)), 28, "(none)"},
		{"3.4.5", jute(int64(2)), 36, "1"},
		{"3.4.14", jute(int64(2)), 40, "1"},
		{"3.5", jute(int64(-65536), int64(2), "10.0.0.2:3888"), 999, "1"},
		{"3.6 with several addresses", jute(int64(-65535), int64(2), "10.0.0.2:3888|10.1.0.2:3888"), 999, "1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			us := play(newZooKeeperFLE(), []turn{{0, c.hello + vote(c.size)}, {1, vote(c.size)}})
			if diff := cmp.Diff([]string{"> zk fle hello", "> zk fle LOOKING", "< zk fle LOOKING"}, types(us)); diff != "" {
				t.Fatal(diff)
			}
			for name, want := range map[string]string{"sid": "2", "leader": "3", "zxid": "0x100000004", "epoch": "1", "electionEpoch": "2", "peerEpoch": c.want} {
				if got := field(us[1], name); got != want {
					t.Errorf("%s is %q, want %q: %+v", name, got, want, us[1].Fields)
				}
			}
			if got := field(us[2], "sid"); got != "(none)" {
				t.Errorf("nobody said that the sender is %s", got)
			}
		})
	}
}

func TestZooKeeperQuorum(t *testing.T) {
	packet := func(typ int, zxid int64, data any) string { return jute(typ, zxid, data, nil) }
	txn := jute(int64(0x51), 7, int64(0x200000003), int64(99), 5) + jute("/a", "value", 4)
	us := play(newZooKeeperZAB(), []turn{
		{0, packet(11, 0x100000000, jute(int64(2), 0x10000, int64(0)))},
		{1, packet(17, 0x200000000, "\x00\x01\x00\x00")},
		{0, packet(18, 0x100000009, "\x00\x00\x00\x01")},
		{1, packet(15, 0x100000009, nil)},
		{1, strings.Repeat("tree\x00\x00\x00\x0aBenWas", 9000) + zkSignature},
		{1, packet(10, 0x200000000, "server.1=a")},
		{0, packet(3, 0x200000000, nil)},
		{1, packet(12, -1, nil)},
		{0, packet(1, -1, jute(int64(0x51), 7, 5)+jute("/a", "value", -1))},
		{1, jute(2, int64(0x200000003), txn, 1, "ip", "10.0.0.9") + packet(4, 0x200000003, nil)},
		{1, packet(5, 0x200000003, nil)},
		{0, packet(5, 0x200000003, jute(int64(0x51), 6000))},
		{0, packet(6, -1, jute(int64(0x51), 6000))},
		{1, packet(6, -1, jute(int64(0x51), true))},
	})
	want := []string{"> zk zab FOLLOWERINFO", "< zk zab LEADERINFO", "> zk zab ACKEPOCH", "< zk zab SNAP", "< zk zab snapshot", "< zk zab snapshot end",
		"< zk zab NEWLEADER", "> zk zab ACK", "< zk zab UPTODATE", "> zk zab REQUEST setData", "< zk zab PROPOSAL setData", "< zk zab COMMIT",
		"< zk zab PING", "> zk zab PING reply", "> zk zab REVALIDATE", "< zk zab REVALIDATE reply"}
	if diff := cmp.Diff(want, types(us)); diff != "" {
		t.Fatal(diff)
	}
	for i, fields := range map[int]map[string]string{
		0:  {"sid": "2", "epoch": "1"},
		1:  {"epoch": "2"},
		2:  {"currentEpoch": "1", "counter": "9"},
		9:  {"path": "/a", "session": "0x51"},
		10: {"path": "/a", "value": "value", "version": "4", "counter": "3"},
		13: {"sessions": "1"},
		15: {"valid": "true"},
	} {
		for name, want := range fields {
			if got := field(us[i], name); got != want {
				t.Errorf("%s: field %s is %q, want %q", us[i].Type, name, got, want)
			}
		}
	}
}

// A tap that begins within a connection, and bytes that were never seen.
func TestZooKeeperFindsItsWayBack(t *testing.T) {
	get := func(xid int) string { return zkFrame(xid, 4, "/a", false) }
	answer := func(xid int) string { return zkFrame(xid, int64(9), 0, "v", zkStatBytes) }
	d := newZooKeeper()
	var us []Unit
	add := func(u Unit) { us = append(us, u) }
	d.Data(0, 0, []byte(get(1)[5:]+get(2)+get(3)), add)
	d.Data(1, 0, []byte(answer(1)[9:]+answer(2)), add)
	d.Gap(1, uint64(len(answer(1))-9+len(answer(2))), 30, add)
	d.Data(1, uint64(len(answer(1))-9+len(answer(2))+30), []byte(answer(3)[30:]+zkFrame(-2, int64(9), 0)), add)
	d.Data(0, uint64(3*len(get(1))-5), []byte(get(4)), add)
	if diff := cmp.Diff([]string{"> unknown", "> zk getData", "> zk getData", "< unknown", "< zk getData reply", "< unknown", "< zk reply unmatched", "> zk getData"}, types(us)); diff != "" {
		t.Error(diff)
	}
}

func TestZooKeeperKeepsLittle(t *testing.T) {
	s := newZKStream(&zkClient{pending: map[int32]zkRequest{}})
	var us []Unit
	add := func(u Unit) { us = append(us, u) }
	turns := zkConnect()
	s.Data(0, 0, []byte(turns[0].b), add)
	big := zkFrame(1, 5, "/a", strings.Repeat("x", 10<<20), -1) + zkFrame(-2, 11)
	for i := 0; i < len(big); i += 1460 {
		s.Data(0, uint64(len(turns[0].b)+i), []byte(big[i:min(i+1460, len(big))]), add)
		if n := cap(s.d[0].head) + cap(s.d[0].item) + cap(s.d[0].win); n > 64<<10 {
			t.Fatalf("keeps %d bytes", n)
		}
	}
	if diff := cmp.Diff([]string{"> zk connect", "> zk setData", "> zk setData end", "> zk ping"}, types(us)); diff != "" {
		t.Fatal(diff)
	}
	if us[1].Bytes != zkLong || field(us[1], "path") != "/a" || !strings.HasSuffix(field(us[1], "value"), "…") {
		t.Errorf("%+v", us[1])
	}
}

// zkSeeds makes conversations for the fuzz tests: as in steps, "<" and ">"
// switch the direction; their own bytes are kept by an escape.
func zkSeeds(f *testing.F) {
	escape := strings.NewReplacer(">", "\x01", "%", "\x02", "<", ";")
	conversation := func(turns []turn) string {
		s := ""
		for _, t := range turns {
			s += string("><"[t.dir]) + escape.Replace(t.b)
		}
		return s
	}
	f.Add(conversation(append(zkConnect(), turn{0, zkFrame(3, 4, "/a", false)}, turn{1, zkFrame(3, int64(9), 0, "v", zkStatBytes)})), int64(1))
	f.Add(conversation(append(zkConnect(), turn{0, zkFrame(3, 5, "/a", "\x03", -1) + zkFrame(-2, 11)})), int64(2))
	f.Add(conversation([]turn{{0, "srvr\n"}, {1, "Zookeeper version: 3.9.3\n"}}), int64(3))
	f.Add(conversation([]turn{{0, jute(int64(2)) + jute(jute(0, int64(3), int64(4), int64(2), int64(1), 2))}}), int64(4))
	f.Add(conversation([]turn{{0, jute(11, int64(1), jute(int64(2), 0x10000), nil)}, {1, jute(15, int64(1), nil, nil) + "\x03" + zkSignature + jute(12, int64(-1), nil, nil)}}), int64(5))
	f.Add(conversation([]turn{{1, jute(2, int64(9), "x", 1, "ip", "1") + "junk" + jute(4, int64(9), nil, nil)}}), int64(6))
	f.Add(">\x00\x00\x00\x20\x00\x00%\x0511111111111111111111111111<\x00\x00\x00", int64(7))
	seeds(f)
}

func FuzzZooKeeper(f *testing.F) {
	zkSeeds(f)
	f.Fuzz(func(t *testing.T, in string, seed int64) { check(t, NameZooKeeper, in, seed) })
}

func FuzzZooKeeperFLE(f *testing.F) {
	zkSeeds(f)
	f.Fuzz(func(t *testing.T, in string, seed int64) { check(t, NameZooKeeperFLE, in, seed) })
}

func FuzzZooKeeperZAB(f *testing.F) {
	zkSeeds(f)
	f.Fuzz(func(t *testing.T, in string, seed int64) { check(t, NameZooKeeperZAB, in, seed) })
}

// TestZooKeeperSegments plays random mutations of real conversations, cut at
// random, with the rules of the fuzz tests; it runs in every test run.
func TestZooKeeperSegments(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	txn := jute(int64(0x51), 7, int64(3), int64(9), 5) + jute("/a", "value", 4)
	parts := map[string][]string{
		NameZooKeeper: {zkConnect()[0].b, zkConnect()[1].b, zkFrame(1, 1, "/a", "v", 0, 0), zkFrame(1, int64(3), 0, "/a"), "srvr\n", "mntr",
			zkFrame(-1, int64(-1), 0, 4, 3, "/l"), zkFrame(2, 5, "/a", strings.Repeat("v", 66<<10), 1)},
		NameZooKeeperFLE: {jute(int64(1)), jute(int64(-65535), int64(2), "10.0.0.2:3888"), jute(jute(0, int64(3), int64(4), int64(2), int64(1), 2)),
			jute(zkAuthMagic, 0x13501, 1, "token")},
		NameZooKeeperZAB: {jute(11, int64(1), jute(int64(2), 0x10000), nil), jute(15, int64(1), nil, nil), "tree" + zkSignature, jute(2, int64(3), txn, 2, "a", "b", nil, "c"),
			jute(5, int64(3), nil, nil)},
	}
	for _, name := range []string{NameZooKeeper, NameZooKeeperFLE, NameZooKeeperZAB} {
		for i := range 60 {
			var in strings.Builder
			for range 1 + rng.Intn(8) {
				in.WriteByte("><"[rng.Intn(2)])
				b := []byte(parts[name][rng.Intn(len(parts[name]))])
				if rng.Intn(3) == 0 {
					b = b[rng.Intn(len(b)):]
				}
				if rng.Intn(3) == 0 {
					b[rng.Intn(len(b))] = byte(rng.Intn(256))
				}
				in.WriteString(strings.NewReplacer(">", "\x01", "%", "\x02", "<", ";").Replace(string(b)))
				if rng.Intn(4) == 0 {
					in.WriteString("%" + string(rune(rng.Intn(100))))
				}
			}
			check(t, name, in.String(), int64(i))
		}
	}
}
