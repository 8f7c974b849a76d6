package stream

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netsplit/model"
)

var (
	a = netip.MustParseAddrPort("10.0.0.1:40000")
	b = netip.MustParseAddrPort("10.0.0.2:6379")
)

const (
	isnA = 0xfffffff0 // wraps after 15 bytes
	isnB = 1000
)

// seg describes a packet: from a unless back; seq and ack count from the first
// payload byte of each direction.
type seg struct {
	back  bool
	flags model.TCPFlags
	seq   int
	ack   int // -1: no ACK
	data  string
}

func (s seg) packet() *model.Packet {
	p := &model.Packet{Proto: model.ProtoTCP, Src: a, Dst: b, Flags: s.flags, Payload: []byte(s.data)}
	seq, ack := uint32(isnA), uint32(isnB)
	if s.back {
		p.Src, p.Dst, seq, ack = b, a, ack, seq
	}
	p.Seq = seq + 1 + uint32(s.seq)
	if s.flags&model.FlagSYN != 0 {
		p.Seq--
	}
	if s.ack >= 0 {
		p.Flags |= model.FlagACK
		p.Ack = ack + 1 + uint32(s.ack)
	}
	return p
}

func format(events []Event) string {
	var out []string
	for _, e := range events {
		s := fmt.Sprintf("%s %d", e.Kind, e.Dir)
		switch e.Kind {
		case Open:
			s = "open " + e.Conn.Name(0)
		case Data:
			s += fmt.Sprintf(" @%d %q", e.Off, e.Bytes)
		case Gap, Again, Differs:
			s += fmt.Sprintf(" @%d+%d", e.Off, e.Len)
		case Ignored:
			s += " " + e.Why
		}
		if e.Repeated {
			s += " again"
		}
		out = append(out, s)
	}
	return strings.Join(out, "; ")
}

const (
	syn = model.FlagSYN
	fin = model.FlagFIN
	rst = model.FlagRST
)

var handshake = []seg{{flags: syn, ack: -1}, {back: true, flags: syn}, {}}

// step is a packet and the events it must bring.
type step struct {
	seg
	want string
}

func run(t *testing.T, table *Table, steps []step) {
	t.Helper()
	for i, s := range steps {
		if diff := cmp.Diff(s.want, format(table.Step(s.packet()))); diff != "" {
			t.Fatalf("packet %d %s (-want +got):\n%s", i, s.packet(), diff)
		}
	}
}

// opened makes a table with the connection established.
func opened(t *testing.T) *Table {
	t.Helper()
	table := NewTable(nil)
	run(t, table, []step{
		{handshake[0], "open tcp 10.0.0.1:40000>10.0.0.2:6379#1; syn 0"},
		{handshake[1], ""},
		{handshake[2], ""},
	})
	return table
}

// bounded is opened with other limits.
func bounded(t *testing.T, set func(*limits)) *Table {
	table := opened(t)
	set(&table.max)
	return table
}

func TestOrder(t *testing.T) {
	long := strings.Repeat("x", 100)
	tests := []struct {
		name  string
		steps []step
	}{
		{"in order over the wrap of the sequence number", []step{
			{seg{data: "0123456789"}, `data 0 @0 "0123456789"`},
			{seg{seq: 10, data: "abcdefghij"}, `data 0 @10 "abcdefghij"`}, // byte 15 has sequence number 0
			{seg{back: true, ack: 20}, ""},
			{seg{seq: 20, data: "!"}, `data 0 @20 "!"`},
		}},
		{"out of order, over the wrap", []step{
			{seg{seq: 20, data: "kl"}, ""},
			{seg{seq: 10, data: "abcdefghij"}, ""},
			{seg{data: "0123456789"}, `data 0 @0 "0123456789"; data 0 @10 "abcdefghij"; data 0 @20 "kl"`},
		}},
		{"retransmission is not new", []step{
			{seg{data: "abc"}, `data 0 @0 "abc"`},
			{seg{data: "abc"}, "again 0 @0+3"},
			{seg{data: "abcdef"}, `again 0 @0+3; data 0 @3 "def"`},
			{seg{seq: 1, data: "bc"}, "again 0 @1+2"},
		}},
		{"retransmission over the wrap", []step{
			{seg{data: "0123456789abcdefghij"}, `data 0 @0 "0123456789abcdefghij"`},
			{seg{seq: 12, data: "cdefghij"}, "again 0 @12+8"},
		}},
		{"a waiting segment comes again", []step{
			{seg{seq: 3, data: "def"}, ""},
			{seg{seq: 2, data: "cde"}, "again 0 @3+2"},
			{seg{data: "ab"}, `data 0 @0 "ab"; data 0 @2 "c"; data 0 @3 "def"`},
		}},
		{"one segment over several that wait", []step{
			{seg{seq: 2, data: "c"}, ""},
			{seg{seq: 4, data: "e"}, ""},
			{seg{seq: 5, data: "f"}, ""},
			{seg{data: "abcdefg"}, `data 0 @0 "ab"; data 0 @2 "c"; again 0 @2+1; data 0 @3 "d"; data 0 @4 "e"; data 0 @5 "f"; again 0 @4+2; data 0 @6 "g"`},
		}},
		{"the first copy wins over a different one", []step{
			{seg{data: "abc"}, `data 0 @0 "abc"`},
			{seg{data: "aXXd"}, `again 0 @0+3; differs 0 @1+2; data 0 @3 "d"`},
			{seg{seq: 6, data: "ghi"}, ""},
			{seg{seq: 4, data: "efgHij"}, `data 0 @4 "ef"; data 0 @6 "ghi"; again 0 @6+3; differs 0 @7+1; data 0 @9 "j"`},
		}},
		{"acknowledged bytes are not compared any more", []step{
			{seg{data: "abc"}, `data 0 @0 "abc"`},
			{seg{back: true, ack: 3}, ""},
			{seg{data: "xyz"}, "again 0 @0+3"},
		}},
		{"a gap needs the receiver's word", []step{
			{seg{seq: 5, data: "fgh"}, ""},
			{seg{back: true, ack: 0}, ""},
			{seg{back: true, ack: 2}, "gap 0 @0+2"},
			{seg{back: true, ack: 8}, `gap 0 @2+3; data 0 @5 "fgh"`},
			{seg{seq: 8, data: "i"}, `data 0 @8 "i"`},
		}},
		{"an acknowledgement alone makes no gap", []step{
			{seg{back: true, ack: 7}, ""},
			{seg{data: "abcdefg"}, `data 0 @0 "abcdefg"`},
			{seg{back: true, ack: 12}, ""},
			{seg{seq: 12, data: "m"}, `gap 0 @7+5; data 0 @12 "m"`},
		}},
		{"fin in order, retransmitted, with bytes behind", []step{
			{seg{flags: fin, data: "abc"}, `data 0 @0 "abc"; fin 0; closed 0`},
			{seg{flags: fin, seq: 3}, "fin 0 again"},
			{seg{flags: fin, seq: 1, data: "bc"}, "again 0 @1+2; fin 0 again"},
			{seg{seq: 2, data: "cde"}, "ignored 0 bytes behind the fin; again 0 @2+1"},
			{seg{flags: fin, seq: 9}, "ignored 0 fin at another place than the first"},
			{seg{back: true, flags: fin, ack: 4}, "fin 1; closed 1"},
		}},
		{"fin ahead of its bytes", []step{
			{seg{flags: fin, seq: 3}, ""},
			{seg{data: "abc"}, `data 0 @0 "abc"; fin 0; closed 0`},
		}},
		{"fin behind bytes that were missed", []step{
			{seg{flags: fin, seq: 3}, ""},
			{seg{back: true, ack: 4}, "gap 0 @0+3; fin 0; closed 0"},
		}},
		{"rst at the next byte", []step{
			{seg{data: "abc"}, `data 0 @0 "abc"`},
			{seg{flags: rst, seq: 3, ack: -1}, "rst 0; closed 0"},
			{seg{flags: rst, seq: 3, ack: -1}, "rst 0 again"},
			{seg{seq: 3, data: "d"}, "ignored 0 bytes behind the rst"},
			{seg{back: true, data: "late"}, `data 1 @0 "late"`},
		}},
		{"rst at the byte acknowledged last", []step{
			{seg{data: "abc"}, `data 0 @0 "abc"`},
			{seg{back: true, ack: 1}, ""},
			{seg{flags: rst, seq: 1, ack: -1}, "rst 0; closed 0"},
		}},
		{"rst elsewhere ends nothing", []step{
			{seg{flags: rst, seq: 1, ack: -1}, "rst 0; ignored 0 rst not at the next byte: receivers challenge it"},
			{seg{flags: rst, seq: 1 << 30, ack: -1}, "rst 0 again; ignored 0 rst outside the window: receivers ignore it"},
			{seg{data: "abc"}, `data 0 @0 "abc"`},
		}},
		{"keep-alive of one byte", []step{
			{seg{data: "abc"}, `data 0 @0 "abc"`},
			{seg{back: true, ack: 3}, ""},
			{seg{seq: 2, data: "\x00"}, "again 0 @2+1"},
		}},
		{"keep-alive before the first byte", []step{
			{seg{seq: -1, data: "\x00"}, "ignored 0 bytes before the first one seen"},
			{seg{data: "abc"}, `data 0 @0 "abc"`},
		}},
		{"far outside the window", []step{
			{seg{seq: 1 << 29, data: "abc"}, "ignored 0 sequence number far outside the window"},
			{seg{data: "abc"}, `data 0 @0 "abc"`},
		}},
		{"retransmitted syn and syn-ack", []step{
			{handshake[0], "syn 0 again"},
			{handshake[1], ""},
			{seg{data: long}, fmt.Sprintf("data 0 @0 %q", long)},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { run(t, opened(t), tt.steps) })
	}
}

func TestTooMuchWaiting(t *testing.T) {
	run(t, bounded(t, func(l *limits) { l.waiting = 4 }), []step{
		{seg{seq: 2, data: "cd"}, ""},
		{seg{seq: 6, data: "gh"}, ""},
		{seg{seq: 10, data: "k"}, `gap 0 @0+2; data 0 @2 "cd"`},
		{seg{seq: 4, data: "ef"}, `data 0 @4 "ef"; data 0 @6 "gh"`},
	})
	run(t, bounded(t, func(l *limits) { l.segments = 1 }), []step{
		{seg{seq: 2, data: "c"}, ""},
		{seg{seq: 4, data: "e"}, `gap 0 @0+2; data 0 @2 "c"`},
	})
}

func TestTheLastUnacknowledgedBytesAreCompared(t *testing.T) {
	steps := []step{
		{seg{data: "abcdef"}, `data 0 @0 "abcdef"`},
		{seg{seq: 6, data: "ghij"}, `data 0 @6 "ghij"`},
		{seg{data: "ABCDEFGHIJ"}, "again 0 @0+10; differs 0 @2+8"},
	}
	run(t, bounded(t, func(l *limits) { l.past = 8 }), steps)
	steps[2].want = "again 0 @0+10; differs 0 @7+3"
	run(t, bounded(t, func(l *limits) { l.past = 3 }), steps)
}

func TestAStreamThatGoesOnFarAwayIsFollowed(t *testing.T) {
	table := opened(t)
	far := 1 << 28
	for i := range strayLimit {
		run(t, table, []step{{seg{seq: far + i, data: "x"}, "ignored 0 " + WhyWindow}})
	}
	run(t, table, []step{
		{seg{seq: far + strayLimit, data: "y"}, fmt.Sprintf(`gap 0 @0+%d; data 0 @%d "y"`, far+strayLimit, far+strayLimit)},
		{seg{seq: far + strayLimit + 1, data: "z"}, fmt.Sprintf(`data 0 @%d "z"`, far+strayLimit+1)},
	})
}

func TestStartNotSeen(t *testing.T) {
	table := NewTable(func(p uint16) bool { return p == 6379 })
	run(t, table, []step{
		{seg{back: true, seq: 500, ack: 77, data: "abc"}, `open tcp 10.0.0.1:40000>10.0.0.2:6379#1; data 1 @0 "abc"`},
		{seg{back: true, seq: 490, ack: 77, data: "0123456789abc"}, "ignored 1 bytes before the first one seen; again 1 @0+3"},
		{seg{seq: 80, ack: 503, data: "q"}, `data 0 @0 "q"`},
		{seg{seq: 81, ack: 503, data: "r"}, `data 0 @1 "r"`},
	})
	table = NewTable(nil) // no port declared: the lower port was connected to
	run(t, table, []step{{seg{back: true, data: "abc"}, `open tcp 10.0.0.1:40000>10.0.0.2:6379#1; data 1 @0 "abc"`}})
}

func TestHandshakeInPart(t *testing.T) {
	t.Run("syn missed", func(t *testing.T) {
		run(t, NewTable(nil), []step{
			{handshake[1], "open tcp 10.0.0.1:40000>10.0.0.2:6379#1"},
			{seg{data: "abc"}, `data 0 @0 "abc"`},
			{seg{back: true, data: "d"}, `data 1 @0 "d"`},
		})
	})
	t.Run("syn-ack missed", func(t *testing.T) {
		run(t, NewTable(nil), []step{
			{handshake[0], "open tcp 10.0.0.1:40000>10.0.0.2:6379#1; syn 0"},
			{seg{data: "abc"}, `data 0 @0 "abc"`},
			{seg{back: true, seq: 2, ack: 3, data: "c"}, ""}, // the acknowledgement told where direction 1 starts
			{seg{back: true, ack: 3, data: "ab"}, `data 1 @0 "ab"; data 1 @2 "c"`},
		})
	})
	t.Run("refused", func(t *testing.T) {
		table := NewTable(nil)
		run(t, table, []step{
			{handshake[0], "open tcp 10.0.0.1:40000>10.0.0.2:6379#1; syn 0"},
			{seg{back: true, flags: rst, seq: -isnB - 1, ack: 0}, "rst 1; closed 1"},
		})
		table.Each(func(c *Conn) {
			if c.Live() {
				t.Error("a refused connection is live")
			}
		})
	})
	t.Run("stale rst", func(t *testing.T) {
		run(t, NewTable(nil), []step{
			{handshake[0], "open tcp 10.0.0.1:40000>10.0.0.2:6379#1; syn 0"},
			{seg{back: true, flags: rst, ack: 5}, "rst 1; ignored 1 " + WhyRSTWindow},
		})
	})
	t.Run("stale syn-ack", func(t *testing.T) {
		run(t, NewTable(nil), []step{
			{handshake[0], "open tcp 10.0.0.1:40000>10.0.0.2:6379#1; syn 0"},
			{seg{back: true, flags: syn, seq: 9000, ack: 5}, "ignored 1 " + WhyStale},
			{handshake[1], ""},
			{seg{back: true, data: "d"}, `data 1 @0 "d"`},
		})
	})
	// A server that gave a half-open connection up, or was started again, or keeps
	// none (SYN cookies), answers a SYN that comes again with another number.
	again := seg{back: true, flags: syn, seq: 70000}
	t.Run("another answer", func(t *testing.T) {
		table := NewTable(nil)
		run(t, table, []step{
			{handshake[0], "open tcp 10.0.0.1:40000>10.0.0.2:6379#1; syn 0"},
			{handshake[1], ""},
			{handshake[0], "syn 0 again"},
			{again, ""},
			{again, ""},
			{seg{ack: 70000}, ""},
			{seg{back: true, seq: 70000, data: "abc"}, `data 1 @0 "abc"`},
			{seg{back: true, flags: syn}, "ignored 1 " + WhyStale},
		})
		table.Each(func(c *Conn) {
			if n, _ := c.NextSeq(1); n != isnB+1+70003 {
				t.Errorf("next of direction 1 is %d, want %d", n, isnB+1+70003)
			}
		})
	})
	t.Run("another answer, the first is taken", func(t *testing.T) {
		run(t, NewTable(nil), []step{
			{handshake[0], "open tcp 10.0.0.1:40000>10.0.0.2:6379#1; syn 0"},
			{handshake[1], ""},
			{again, ""},
			{handshake[2], ""},
			{seg{back: true, data: "abc"}, `data 1 @0 "abc"`},
		})
	})
	t.Run("another answer, the first is taken, unseen", func(t *testing.T) {
		run(t, NewTable(nil), []step{
			{handshake[0], "open tcp 10.0.0.1:40000>10.0.0.2:6379#1; syn 0"},
			{handshake[1], ""},
			{again, ""},
			{seg{back: true, data: "abc"}, `data 1 @0 "abc"`},
			{seg{ack: 3}, ""},
			{seg{back: true, seq: 3, data: "def"}, `data 1 @3 "def"`},
		})
	})
	t.Run("another answer after the first was taken", func(t *testing.T) {
		run(t, opened(t), []step{
			{again, "ignored 1 " + WhyStale},
			{seg{back: true, data: "abc"}, `data 1 @0 "abc"`},
		})
	})
	t.Run("another answer, syn missed", func(t *testing.T) {
		run(t, NewTable(nil), []step{
			{handshake[1], "open tcp 10.0.0.1:40000>10.0.0.2:6379#1"},
			{again, ""},
			{seg{ack: 70000, data: "ab"}, `data 0 @0 "ab"`},
			{seg{back: true, seq: 70000, ack: 2, data: "c"}, `data 1 @0 "c"`},
		})
	})
	t.Run("another answer, data on the syn refused", func(t *testing.T) {
		run(t, NewTable(nil), []step{
			{seg{flags: syn, ack: -1, data: "early"}, `open tcp 10.0.0.1:40000>10.0.0.2:6379#1; syn 0; data 0 @0 "early"`},
			{handshake[1], ""},
			{handshake[0], "syn 0 again"},
			{again, ""},
			{seg{ack: 70000, data: "early"}, "again 0 @0+5"},
			{seg{back: true, seq: 70000, ack: 5, data: "d"}, `data 1 @0 "d"`},
		})
	})
	t.Run("challenge of an old connection", func(t *testing.T) {
		run(t, NewTable(nil), []step{
			{handshake[0], "open tcp 10.0.0.1:40000>10.0.0.2:6379#1; syn 0"},
			{seg{back: true, seq: 70000, ack: 5000, data: "old"}, "ignored 1 " + WhyStale},
		})
	})
	t.Run("both ends open at once", func(t *testing.T) {
		run(t, NewTable(nil), []step{
			{handshake[0], "open tcp 10.0.0.1:40000>10.0.0.2:6379#1; syn 0"},
			{seg{back: true, flags: syn, ack: -1}, "syn 1"},
			{seg{data: "a"}, `data 0 @0 "a"`},
			{seg{back: true, data: "b"}, `data 1 @0 "b"`},
		})
	})
	t.Run("data on the syn", func(t *testing.T) {
		run(t, NewTable(nil), []step{
			{seg{flags: syn, ack: -1, data: "early"}, `open tcp 10.0.0.1:40000>10.0.0.2:6379#1; syn 0; data 0 @0 "early"`},
			{seg{flags: syn, ack: -1, data: "early"}, "syn 0 again; again 0 @0+5"},
			{seg{back: true, flags: syn, ack: 5}, ""},
			{seg{back: true, ack: 5, data: "d"}, `data 1 @0 "d"`},
		})
	})
	t.Run("data on the syn, refused", func(t *testing.T) {
		run(t, NewTable(nil), []step{
			{seg{flags: syn, ack: -1, data: "early"}, `open tcp 10.0.0.1:40000>10.0.0.2:6379#1; syn 0; data 0 @0 "early"`},
			{seg{back: true, flags: rst, seq: -isnB - 1, ack: 5}, "rst 1; closed 1"},
		})
	})
}

func TestPortsUsedAgain(t *testing.T) {
	table := opened(t)
	run(t, table, []step{
		{seg{data: "abc"}, `data 0 @0 "abc"`},
		{seg{seq: 5, data: "f"}, ""},
		{seg{flags: syn, seq: 50000, ack: -1}, `gap 0 @3+2; data 0 @5 "f"; closed 0; closed 1; open tcp 10.0.0.1:40000>10.0.0.2:6379#2; syn 0`},
		{handshake[0], "ignored 0 " + WhyStaleSYN},
		{seg{back: true, flags: syn, seq: 90000, ack: 50000}, ""},
		{seg{seq: 50000, ack: 90000, data: "new"}, `data 0 @0 "new"`},
		{seg{seq: 5 - 1<<30, data: "old"}, "ignored 0 " + WhyWindow},
	})
}

// A SYN behind the end of a connection opens the next, also where it has the
// number of one before: of a host that draws none, or that asks again after it
// was refused.
func TestPortsUsedAgainWithTheSameNumbers(t *testing.T) {
	table := NewTable(nil)
	for gen := 1; gen <= 3; gen++ {
		start := "open tcp 10.0.0.1:40000>10.0.0.2:6379#" + strconv.Itoa(gen) + "; syn 0"
		run(t, table, []step{
			{handshake[0], start},
			{handshake[0], "syn 0 again"},
			{handshake[1], ""},
			{seg{data: "abc"}, `data 0 @0 "abc"`},
			{seg{back: true, ack: 3, data: "d"}, `data 1 @0 "d"`},
			{seg{flags: fin, seq: 3, ack: 1}, "fin 0; closed 0"},
			{seg{back: true, flags: fin, seq: 1, ack: 4}, "fin 1; closed 1"},
		})
	}
	run(t, table, []step{
		{handshake[0], "open tcp 10.0.0.1:40000>10.0.0.2:6379#4; syn 0"},
		{seg{back: true, flags: rst, seq: -isnB - 1, ack: 0}, "rst 1; closed 1"},
		{handshake[0], "closed 0; open tcp 10.0.0.1:40000>10.0.0.2:6379#5; syn 0"},
		{handshake[1], ""},
		{seg{back: true, data: "d"}, `data 1 @0 "d"`},
	})
}

func TestTheLongestIdleGivesWay(t *testing.T) {
	table := NewTable(nil)
	table.max.conns = 2
	from := func(port uint16, data string) string {
		p := seg{data: data}.packet()
		p.Src = netip.AddrPortFrom(a.Addr(), port)
		return format(table.Step(p))
	}
	from(50001, "a")
	from(50002, "b")
	from(50001, "c")
	want := `closed 0; closed 1; open tcp 10.0.0.1:50003>10.0.0.2:6379#2; data 0 @0 "d"`
	if got := from(50003, "d"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	// The name of the connection that gave way is never used again.
	if got := from(50002, "e"); !strings.Contains(got, "50002>10.0.0.2:6379#2") {
		t.Errorf("got %s, want generation 2", got)
	}
	if table.Len() != 2 {
		t.Errorf("%d connections, want 2", table.Len())
	}
	if got := format(table.Flush()); got != "closed 0; closed 1; closed 0; closed 1" || table.Len() != 0 {
		t.Errorf("flush: %s, %d left", got, table.Len())
	}
}

func TestNextSequenceNumbers(t *testing.T) {
	table := opened(t)
	var c *Conn
	table.Each(func(x *Conn) { c = x })
	check := func(what string, next, before, acked uint32) {
		t.Helper()
		n, _ := c.NextSeq(0)
		k, _ := c.AckedSeq(0)
		if n != next || c.SeqBefore(0) != before || k != acked {
			t.Errorf("%s: next %d before %d acked %d, want %d %d %d", what, n, c.SeqBefore(0), k, next, before, acked)
		}
	}
	var base uint32 = isnA
	base++
	check("opened", base, base, base)
	table.Step(seg{data: strings.Repeat("x", 20)}.packet())
	check("after 20 bytes", base+20, base, base)
	table.Step(seg{back: true, ack: 7}.packet())
	check("after the ack", base+20, base+20, base+7)
	table.Step(seg{seq: 22, data: "waits"}.packet())
	check("with a hole", base+20, base+20, base+7)
	table.Step(seg{seq: 20, data: "filled!"}.packet())
	check("with the hole filled", base+27, base+20, base+7)
	table.Step(seg{seq: 27, flags: fin}.packet())
	check("after the fin", base+28, base+27, base+7)
	if !c.Live() || !c.Established() {
		t.Error("half closed: want live and established")
	}
	table.Step(seg{back: true, flags: fin, ack: 28}.packet())
	if c.Live() {
		t.Error("closed both ways: want not live")
	}
}

// BenchmarkSegments reads small segments that are acknowledged at once, and such
// as are never seen acknowledged: of a capture with one direction.
func BenchmarkSegments(b *testing.B) {
	for _, acked := range []bool{true, false} {
		b.Run(fmt.Sprintf("acked=%v", acked), func(b *testing.B) {
			table := NewTable(nil)
			for _, s := range handshake[:1] {
				table.Step(s.packet())
			}
			data, seq := strings.Repeat("x", 14), 0
			for b.Loop() {
				table.Step(seg{seq: seq, ack: -1, data: data}.packet())
				seq += len(data)
				if acked {
					table.Step(seg{back: true, ack: seq}.packet())
				}
			}
		})
	}
}
