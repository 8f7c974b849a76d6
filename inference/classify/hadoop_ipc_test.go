package classify

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netsplit/model"
)

// ipcName is UTF8.writeString, ipcLong WritableUtils.writeString.
func ipcName(s string) string { return string(binary.BigEndian.AppendUint16(nil, uint16(len(s)))) + s }

func ipcLong(s string) string { return ipcInt(int32(len(s))) + s }

func ipcInt(n int32) string { return string(binary.BigEndian.AppendUint32(nil, uint32(n))) }

// ipcCall is a request (RPC.Invocation), ipcAnswer what Server.setupResponse writes.
func ipcCall(id int32, method string, args ...string) string {
	b := ipcInt(id) + ipcName(method) + ipcInt(int32(len(args))) + strings.Join(args, "")
	return ipcInt(int32(len(b))) + b
}

func ipcAnswer(id int32, value string) string { return ipcInt(id) + ipcInt(0) + value }

func ipcFailure(id int32, class, message string) string {
	return ipcInt(id) + ipcInt(1) + ipcLong(class) + ipcLong(message)
}

func ipcString(s string) string { return ipcName("java.lang.String") + ipcName(s) }

func ipcObject(class, written string) string { return ipcName(class) + ipcName(class) + written }

var (
	ipcGreeting = "hrpc\x03"
	ipcContext  = "\x00\x00\x00\x19" + "\x06a.B.Cd" + "\x01" + "\x0aSTRING_UGI" + "\x04root" + "\x00"
	ipcNull     = ipcName("org.apache.hadoop.io.Writable") + ipcName("org.apache.hadoop.io.ObjectWritable$NullInstance") + ipcName("void")
	ipcBlock    = ipcObject("org.apache.hadoop.hdfs.protocol.Block", "\x00\x00\x00\x00\x00\x00\x00\x07"+"\x00\x00\x00\x00\x00\x00\x00\x05"+"\x00\x00\x00\x00\x00\x00\x00\x02")
	ipcOther    = ipcObject("org.example.Other", strings.Repeat("\xff", 40))
)

func TestHadoopIPC(t *testing.T) {
	open := []step{{b: []byte(ipcGreeting + ipcContext)}}
	for _, c := range []struct {
		name string
		in   []step
		want []string // types and fields
	}{
		{"a connection opens", open, []string{"> rpc greeting rpc.version=3", "> rpc context protocol=a.B.Cd userInfo.effectiveUser=root"}},
		{"a greeting in pieces", []step{{b: []byte("h")}, {b: []byte("rpc")}, {b: []byte("\x03" + ipcContext)}}, []string{"> rpc greeting rpc.version=3", "> rpc context protocol=a.B.Cd userInfo.effectiveUser=root"}},
		{"a call that is answered twice", []step{{b: []byte(ipcCall(1, "a"))}, {dir: 1, b: []byte(ipcAnswer(1, ipcNull) + ipcAnswer(1, ipcNull))}},
			[]string{"> rpc a rpc.call=1", "< rpc a reply rpc.call=1 rpc.method=a", "< rpc reply unmatched rpc.call=1"}},
		{"an absurd length", []step{{b: []byte("\x7f\xff\xff\xff" + ipcCall(1, "a")[4:] + ipcCall(2, "b"))}}, []string{"> unknown", "> rpc b rpc.call=2"}},
		{"version 4", []step{{b: []byte("hrpc\x04\x50" + ipcLong("\x06a.B.Cd\x01\x00\x04root\x00") + ipcInt(-1) + ipcCall(1, "a"))}},
			[]string{"> rpc greeting rpc.version=4 rpc.auth=SIMPLE", "> rpc context protocol=a.B.Cd userInfo.effectiveUser=root", "> rpc keepalive", "> rpc a rpc.call=1"}},
		{"version 4, in another's name", []step{{b: []byte("hrpc\x04\x50" + ipcLong("\x06a.B.Cd\x01\x00\x03joe\x01\x00\x04root") + ipcCall(1, "a"))}},
			[]string{"> rpc greeting rpc.version=4 rpc.auth=SIMPLE", "> rpc context protocol=a.B.Cd userInfo.effectiveUser=joe userInfo.realUser=root", "> rpc a rpc.call=1"}},
		{"version 4, in nobody's name", []step{{b: []byte("hrpc\x04\x50" + ipcLong("\x06a.B.Cd\x00") + ipcCall(1, "a"))}},
			[]string{"> rpc greeting rpc.version=4 rpc.auth=SIMPLE", "> rpc context protocol=a.B.Cd", "> rpc a rpc.call=1"}},
		{"version 4, SASL", []step{{b: []byte("hrpc\x04\x52" + ipcLong("") + ipcLong("charset=utf-8") + ipcLong("\x06a.B.Cd\x00") + ipcCall(1, "a"))}, {dir: 1, b: []byte(ipcInt(0) + ipcLong("realm=default") + ipcAnswer(1, ipcNull))}},
			[]string{"> rpc greeting rpc.version=4 rpc.auth=DIGEST", "> unknown", "> rpc a rpc.call=1", "< unknown", "< rpc a reply rpc.call=1 rpc.method=a"}},
		{"version 4 in pieces", []step{{b: []byte("hrpc\x04")}, {b: []byte("\x51")}}, []string{"> rpc greeting rpc.version=4 rpc.auth=KERBEROS"}},
		{"a namespace of 1.0", []step{{b: []byte("hrpc\x04\x50")}, {dir: 1, b: []byte(ipcAnswer(1, ipcObject("a.NamespaceInfo", ipcName("1.0.4")+ipcInt(-32)+ipcInt(7)+strings.Repeat("\x00", 12))) + ipcAnswer(2, ipcString("y")))}},
			[]string{"> rpc greeting rpc.version=4 rpc.auth=SIMPLE", "< rpc reply unmatched rpc.call=1 value=7", "< rpc reply unmatched rpc.call=2 value=y"}},
		{"an unknown way to say who one is", []step{{b: []byte("hrpc\x04\x53" + ipcContext)}}, []string{"> unknown"}},
		{"another version", []step{{b: []byte("hrpc\x05\x50" + ipcContext)}}, []string{"> unknown"}},
		{"a call", append(open[:1:1], step{b: []byte(ipcCall(3, "create", ipcString("/a"), ipcName("boolean")+"\x01"))}, step{dir: 1, b: []byte(ipcAnswer(3, ipcNull))}),
			[]string{"> rpc greeting rpc.version=3", "> rpc context protocol=a.B.Cd userInfo.effectiveUser=root", "> rpc create rpc.call=3 arg0=/a arg1=true", "< rpc create reply rpc.call=3 rpc.method=create"}},
		{"answers in another order", []step{{b: []byte(ipcCall(1, "a") + ipcCall(2, "b"))}, {dir: 1, b: []byte(ipcAnswer(2, ipcName("long")+"\x00\x00\x00\x00\x00\x00\x00\x09") + ipcAnswer(1, ipcName("void")))}},
			[]string{"> rpc a rpc.call=1", "> rpc b rpc.call=2", "< rpc b reply rpc.call=2 rpc.method=b value=9", "< rpc a reply rpc.call=1 rpc.method=a"}},
		{"an error", []step{{b: []byte(ipcCall(1, "addBlock"))}, {dir: 1, b: []byte(ipcFailure(1, "java.io.IOException", "no nodes\n\tat x"))}},
			[]string{"> rpc addBlock rpc.call=1", "< rpc addBlock error rpc.call=1 rpc.method=addBlock rpc.exception=java.io.IOException rpc.message=no nodes"}},
		{"nobody asked", []step{{dir: 1, b: []byte(ipcAnswer(9, ipcString("x")) + ipcFailure(8, "a.B", ""))}}, []string{"< rpc reply unmatched rpc.call=9 value=x", "< rpc error unmatched rpc.call=8 rpc.exception=a.B rpc.message="}},
		{"a ping", []step{{b: []byte(ipcInt(-1) + ipcCall(1, "a"))}}, []string{"> rpc keepalive", "> rpc a rpc.call=1"}},
		{"lists", []step{{b: []byte(ipcCall(1, "blockReceived", ipcName("[Lorg.apache.hadoop.hdfs.protocol.Block;")+ipcInt(2)+ipcBlock+ipcBlock, ipcName("[J")+ipcInt(1)+ipcName("long")+"\x00\x00\x00\x00\x00\x00\x00\x09"))}},
			[]string{"> rpc blockReceived rpc.call=1 arg0=blk_7_2,blk_7_2 arg1=9"}},
		{"an unknown object in a request", []step{{b: []byte(ipcCall(1, "submit", ipcString("x"), ipcOther, ipcString("y")) + ipcCall(2, "b"))}},
			[]string{"> rpc submit rpc.call=1 arg0=x arg1.class=Other", "> rpc b rpc.call=2"}},
		{"an unknown object in an answer", []step{{b: []byte(ipcCall(1, "a") + ipcCall(2, "b"))}, {dir: 1, b: []byte(ipcAnswer(1, ipcOther) + ipcAnswer(2, ipcString("y")))}},
			[]string{"> rpc a rpc.call=1", "> rpc b rpc.call=2", "< rpc a reply rpc.call=1 rpc.method=a value.class=Other", "< unknown", "< rpc b reply rpc.call=2 rpc.method=b value=y"}},
		{"what a DataNode is told to finalize has nothing behind it", []step{{dir: 1, b: []byte(ipcAnswer(1, ipcObject("org.apache.hadoop.hdfs.server.protocol.DatanodeCommand$Finalize", "")) + ipcAnswer(2, ipcName("void")))}},
			[]string{"< rpc reply unmatched rpc.call=1 value=finalize", "< rpc reply unmatched rpc.call=2"}},
		{"begun in the middle", []step{{b: []byte("\x00\x00\x00\x0eaaaa" + ipcCall(5, "renewLease", ipcString("c")))}, {dir: 1, b: []byte("ode;" + ipcAnswer(5, ipcNull))}},
			[]string{"> unknown", "> rpc renewLease rpc.call=5 arg0=c", "< unknown", "< rpc renewLease reply rpc.call=5 rpc.method=renewLease"}},
		{"a gap between calls", []step{{b: []byte(ipcCall(5, "a"))}, {gap: 30}, {b: []byte(ipcCall(6, "b"))}}, []string{"> rpc a rpc.call=5", "> rpc b rpc.call=6"}},
		{"a gap in a call", []step{{b: []byte(ipcCall(5, "a", ipcString(strings.Repeat("x", 50))))[:40]}, {gap: 20}, {b: []byte(ipcCall(5, "a", ipcString(strings.Repeat("x", 50)))[60:] + ipcCall(6, "b"))}},
			[]string{"> rpc a rpc.call=5 incomplete=true", "> rpc b rpc.call=6"}},
		{"the context is lost", []step{{b: []byte(ipcGreeting)}, {gap: len(ipcContext)}, {b: []byte(ipcCall(1, "a", ipcString("x")))}},
			[]string{"> rpc greeting rpc.version=3", "> rpc a rpc.call=1 arg0=x"}},
		{"numbers", []step{{b: []byte(ipcCall(1, "a", ipcName("float")+"\x3f\xc0\x00\x00", ipcName("double")+"\xbf\xe0\x00\x00\x00\x00\x00\x00", ipcName("char")+"\xff\xff", ipcName("short")+"\xff\xff", ipcName("byte")+"\xff"))}},
			[]string{"> rpc a rpc.call=1 arg0=1.5 arg1=-0.5 arg2=65535 arg3=-1 arg4=-1"}},
		{"a list of less than none", []step{{dir: 1, b: []byte(ipcAnswer(1, ipcName("[I")+ipcInt(-1)) + ipcAnswer(2, ipcString("y")))}},
			[]string{"< rpc reply unmatched rpc.call=1", "< rpc reply unmatched rpc.call=2 value=y"}},
		{"more blocks than are kept", []step{{dir: 1, b: []byte(ipcAnswer(1, ipcObject("a.LocatedBlocks", strings.Repeat("\x00", 9)+ipcInt(hipcKeep+1))+"\xff") + ipcAnswer(2, ipcString("y")))}},
			[]string{"< rpc reply unmatched rpc.call=1", "< unknown", "< rpc reply unmatched rpc.call=2 value=y"}},
		{"a text longer than is kept", []step{{dir: 1, b: []byte(ipcAnswer(1, ipcObject("a.FileStatus", "\x8d\x04\x00\x01")+"\xff") + ipcAnswer(2, ipcString("y")))}},
			[]string{"< rpc reply unmatched rpc.call=1", "< unknown", "< rpc reply unmatched rpc.call=2 value=y"}},
		{"a message longer than is kept", []step{{dir: 1, b: []byte(ipcInt(1) + ipcInt(1) + ipcLong("a.B") + ipcInt(hipcKeep+1) + "\xff" + ipcAnswer(2, ipcString("y")))}},
			[]string{"< rpc error unmatched rpc.call=1 rpc.exception=a.B", "< unknown", "< rpc reply unmatched rpc.call=2 value=y"}},
		{"no message", []step{{dir: 1, b: []byte(ipcInt(1) + ipcInt(1) + ipcLong("a.B") + ipcInt(-1) + ipcAnswer(2, ipcString("y")))}},
			[]string{"< rpc error unmatched rpc.call=1 rpc.exception=a.B rpc.message=", "< rpc reply unmatched rpc.call=2 value=y"}},
		{"refused", []step{{dir: 1, b: []byte(ipcInt(-1) + ipcInt(-1) + ipcLong("a.B") + ipcLong("no"))}},
			[]string{"< rpc error unmatched rpc.call=-1 rpc.exception=a.B rpc.message=no"}},
		{"a word that is no class", []step{{dir: 1, b: []byte("\xff" + ipcAnswer(1, ipcName("abc")) + ipcAnswer(2, ipcName("void")))}},
			[]string{"< unknown", "< rpc reply unmatched rpc.call=2"}},
		{"a status that is none", []step{{dir: 1, b: []byte(ipcInt(1) + ipcInt(7) + ipcAnswer(1, ipcNull))}}, []string{"< unknown", "< rpc reply unmatched rpc.call=1"}},
		{"no call of a type", []step{{b: []byte("\xff" + ipcInt(15) + ipcInt(1) + ipcName("int") + ipcInt(0) + "\xff\xff" + ipcCall(2, "b"))}}, []string{"> unknown", "> rpc b rpc.call=2"}},
		{"more in a call than its arguments", []step{{b: []byte("\xff" + ipcInt(13) + ipcCall(1, "a")[4:] + "\xff" + ipcCall(2, "b"))}}, []string{"> unknown", "> rpc b rpc.call=2"}},
		{"an argument of no class", []step{{b: []byte(ipcCall(1, "a", ipcName("no.class?")) + ipcCall(2, "b"))}}, []string{"> unknown", "> rpc b rpc.call=2"}},
		{"a ping at the end", []step{{b: []byte(ipcCall(1, "a0_9$") + ipcInt(-1))}}, []string{"> rpc a0_9$ rpc.call=1", "> rpc keepalive"}},
		{"what begins like a greeting", []step{{b: []byte("\xffhrpx" + ipcCall(2, "b"))}}, []string{"> unknown", "> rpc b rpc.call=2"}},
		{"as many arguments as are read", []step{{b: []byte("\xff" + ipcCall(1, "a", slices.Repeat([]string{ipcName("void")}, hrpcArgs)...) + ipcCall(2, "b", slices.Repeat([]string{ipcName("void")}, hrpcArgs+1)...))}},
			[]string{"> unknown", "> rpc a rpc.call=1", "> unknown"}},
		{"a namespace in pieces", []step{{b: []byte("hrpc\x04\x50")}, {dir: 1, b: []byte(ipcAnswer(1, ipcObject("a.NamespaceInfo", ipcName("1.0.4"))))}, {dir: 1, b: []byte("\xff")}, {dir: 1, b: []byte("\xff\xff\xe0" + ipcInt(7) + strings.Repeat("\x00", 12))}},
			[]string{"> rpc greeting rpc.version=4 rpc.auth=SIMPLE", "< rpc reply unmatched rpc.call=1 value=7"}},
		{"a method that begins with a digit", []step{{b: []byte(ipcCall(1, "1a") + ipcCall(2, "b"))}}, []string{"> unknown", "> rpc b rpc.call=2"}},
		{"a method with no name", []step{{b: []byte(ipcCall(1, "no name") + ipcCall(2, "b"))}}, []string{"> unknown", "> rpc b rpc.call=2"}},
		{"objects within one another for ever", []step{{dir: 1, b: []byte(ipcAnswer(1, strings.Repeat(ipcName("[[I")+ipcInt(1), 40)) + ipcAnswer(2, ipcString("y")))}},
			[]string{"< rpc reply unmatched rpc.call=1", "< unknown", "< rpc reply unmatched rpc.call=2 value=y"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for dir, us := range run(t, newHadoopWritable(), c.in, nil) {
				for _, u := range us {
					line := string("><"[dir]) + " " + u.Type
					for _, f := range u.Fields {
						line += " " + f.Name + "=" + f.Value
					}
					got = append(got, line)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for seed := range 20 {
				a := run(t, newHadoopWritable(), c.in, nil)
				b := run(t, newHadoopWritable(), c.in, rand.New(rand.NewSource(int64(seed))))
				if diff := cmp.Diff(a, b); diff != "" {
					t.Fatalf("other segments (-whole +cut):\n%s", diff)
				}
			}
		})
	}
}

// TestAnAbsurdListEndsTheReading, and takes neither time nor memory.
func TestAnAbsurdListEndsTheReading(t *testing.T) {
	head := ipcAnswer(1, ipcName("[I")+ipcInt(1<<30))
	var us []Unit
	newHadoopWritable().Data(1, 0, []byte(head), func(u Unit) { us = append(us, u) })
	if len(us) != 1 || us[0].Type != "rpc reply unmatched" || us[0].Bytes != len(head) {
		t.Errorf("before its items: %+v", us)
	}
}

// TestHadoopWritableKeepsLittle of calls that are not answered, and of methods that are not of a protocol.
func TestHadoopWritableKeepsLittle(t *testing.T) {
	h := &hadoopWritable{pending: map[int32]string{}, names: map[string]bool{}}
	seen := map[string]bool{}
	for i := range 3 * hrpcPending {
		seen[h.request([]byte(ipcCall(int32(i), "m"+strconv.Itoa(i)))).Type] = true
	}
	if len(h.pending) != hrpcPending || len(h.order) > 2*hrpcPending {
		t.Errorf("%d calls, %d in order", len(h.pending), len(h.order))
	}
	if len(seen) != hrpcNames+1 || !seen["rpc other"] {
		t.Errorf("%d types", len(seen))
	}
	for i := range 3 * hrpcPending { // the same few are asked and answered, but for one
		h.request([]byte(ipcCall(int32(i%7), "a")))
		h.answer([]byte(ipcAnswer(int32(i%7), ipcName("void"))))
	}
	if len(h.order) > 2*hrpcPending {
		t.Errorf("%d in order", len(h.order))
	}
}

// TestAnAnswerLongerThanIsKept has its type, and is behind it what no message is.
func TestAnAnswerLongerThanIsKept(t *testing.T) {
	const n = 12 << 10
	item := ipcName("java.lang.String") + ipcName("a name that is there often")
	in := []step{{b: []byte(ipcCall(1, "list"))}, {dir: 1, b: []byte(ipcAnswer(1, ipcName("[Ljava.lang.String;")+ipcInt(n)+strings.Repeat(item, n)) + ipcAnswer(2, ipcString("y")))}}
	us := rules(t, model.Protocol{Dissector: NameHadoopWritable}, in, 1, 3)[1]
	if us[0].Type != "rpc list reply" || us[0].Bytes != hipcKeep || !slices.Contains(us[0].Fields, incomplete) {
		t.Errorf("it is %s, %d bytes, %v", us[0].Type, us[0].Bytes, us[0].Fields)
	}
	for _, u := range us[1 : len(us)-1] {
		if u.Type != model.TypeUnknown {
			t.Errorf("in it is %+v", u)
		}
	}
	if last := us[len(us)-1]; last.Type != "rpc reply unmatched" || last.Fields[0].Value != "2" {
		t.Errorf("behind it is %+v", last)
	}
}

// TestHadoopObjects: objects of every class that HDFS's protocols answer with, as Hadoop itself wrote them
// (testdata/hdfs020/README.md), are read to their end and no further.
func TestHadoopObjects(t *testing.T) {
	for _, release := range []string{"0.20.2", "1.2.1"} {
		b, err := os.ReadFile(filepath.Join("testdata", "hdfs020", "objects-"+release+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			words := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
			class, want := words[0], words[2:]
			object, err := hex.DecodeString(words[1])
			if err != nil {
				t.Fatal(err)
			}
			greeting := ipcGreeting
			if release == "1.2.1" {
				greeting = "hrpc\x04\x50"
			}
			in := []step{{b: []byte(greeting)}, {dir: 1, b: []byte(ipcAnswer(1, string(object)) + ipcAnswer(2, ipcString("behind")))}}
			us := rules(t, model.Protocol{Dissector: NameHadoopWritable}, in, 1, 3)[1]
			if len(us) != 2 || us[0].Bytes != len(object)+8 || us[1].Fields[len(us[1].Fields)-1].Value != "behind" {
				t.Errorf("%s, %s: %+v", release, class, us)
				continue
			}
			var got []string
			for _, f := range us[0].Fields[1:] {
				got = append(got, f.Name+"="+f.Value)
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("%s, %s: %s, want %s", release, class, got, want)
			}
		}
	}
}

func FuzzHadoopWritable(f *testing.F) {
	for _, name := range []string{"append", "failed", "read"} { // of the data port: nothing of ours
		b, err := os.ReadFile(filepath.Join("testdata", "hdfs020", "seed", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, int64(1))
	}
	seed := func(dir byte, s string) []byte {
		return append(append([]byte{dir}, binary.BigEndian.AppendUint16(nil, uint16(len(s)))...), s...)
	}
	talk := append(seed(0, ipcGreeting+ipcContext+ipcCall(1, "blockReceived", ipcName("[Lorg.apache.hadoop.hdfs.protocol.Block;")+ipcInt(1)+ipcBlock)), seed(1, ipcAnswer(1, ipcOther)+ipcFailure(2, "a.B", "x"))...)
	f.Add(talk, int64(2))
	f.Add(talk[20:], int64(3))
	for _, c := range append(ipcConnections(f, "0.20.2")[:2], ipcConnections(f, "1.2.1")[1:]...) {
		f.Add(append(seed(0, string(c.said[0])), seed(1, string(c.said[1]))...), int64(4))
	}
	f.Fuzz(func(t *testing.T, in []byte, seed int64) {
		rules(t, model.Protocol{Dissector: NameHadoopWritable}, hadoopSteps(in), seed, fuzzCuts)
	})
}
