package of13

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netsplit/e2e/need"
)

// startSwitch runs a private Open vSwitch with a bridge that exists in its
// memory only (datapath of type dummy: no privileges, no kernel objects) and
// returns the socket on which the bridge can be managed, and vsctl, which
// configures it.
func startSwitch(t *testing.T) (socket string, vsctl func(args ...string)) {
	t.Helper()
	need.Program(t, "ovs-ofctl", "openvswitch-switch")
	dir, err := os.MkdirTemp("", "of13-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	env := append(os.Environ(), "OVS_RUNDIR="+dir, "OVS_LOGDIR="+dir, "OVS_DBDIR="+dir,
		"PATH="+os.Getenv("PATH")+":/usr/sbin:/usr/local/sbin")
	path := func(name string) string {
		for _, d := range filepath.SplitList(os.Getenv("PATH") + ":/usr/sbin:/usr/local/sbin") {
			if p := filepath.Join(d, name); exec.Command("test", "-x", p).Run() == nil {
				return p
			}
		}
		t.Fatalf("%s is missing: apt-get install openvswitch-switch", name)
		return ""
	}
	run := func(name string, args ...string) {
		t.Helper()
		cmd := exec.Command(path(name), args...)
		cmd.Env = env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s %v: %v: %s", name, args, err, out)
		}
	}
	daemon := func(name string, args ...string) {
		t.Helper()
		cmd := exec.Command(path(name), args...)
		cmd.Env = env
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	}
	wait := func(file string) {
		t.Helper()
		for range 500 {
			if _, err := os.Stat(file); err == nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Fatalf("%s did not appear within 10 s", file)
	}
	db := filepath.Join(dir, "db.sock")
	vsctl = func(args ...string) {
		t.Helper()
		run("ovs-vsctl", append([]string{"--timeout=20", "--db=unix:" + db}, args...)...)
	}
	run("ovsdb-tool", "create", filepath.Join(dir, "conf.db"), "/usr/share/openvswitch/vswitch.ovsschema")
	daemon("ovsdb-server", filepath.Join(dir, "conf.db"), "--remote=punix:"+db, "--unixctl="+filepath.Join(dir, "db.ctl"))
	wait(db)
	vsctl("--no-wait", "init")
	daemon("ovs-vswitchd", "unix:"+db, "--enable-dummy=override", "--disable-system",
		"--unixctl="+filepath.Join(dir, "vs.ctl"))
	vsctl("add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=dummy", "protocols=OpenFlow13",
		"fail-mode=secure", "other-config:datapath-id=4e53000000000001",
		"--", "add-port", "br0", "p1", "--", "set", "interface", "p1", "type=dummy", "ofport_request=1",
		"--", "add-port", "br0", "p2", "--", "set", "interface", "p2", "type=dummy", "ofport_request=2")
	socket = filepath.Join(dir, "br0.mgmt")
	wait(socket)
	return socket, vsctl
}

// live is a connection to a real switch. Every message that comes in must
// survive the round trip.
type live struct {
	t   *testing.T
	c   net.Conn
	xid uint32
}

func dialSwitch(t *testing.T, socket string) *live {
	t.Helper()
	c, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(30 * time.Second))
	l := &live{t: t, c: c}
	ours := NewHello(Version)
	l.send(ours)
	theirs, _ := l.recv()
	h, ok := theirs.(*Hello)
	if !ok {
		t.Fatalf("first message is %v", theirs)
	}
	if v, err := Negotiate(ours, h); v != Version || err != nil {
		t.Fatalf("version %d, error %v", v, err)
	}
	return l
}

func (l *live) send(m Message) (xid uint32) {
	l.t.Helper()
	l.xid++
	b, err := Append(nil, m, l.xid)
	if err != nil {
		l.t.Fatal(err)
	}
	if _, err := l.c.Write(b); err != nil {
		l.t.Fatal(err)
	}
	return l.xid
}

func (l *live) recv() (Message, uint32) {
	l.t.Helper()
	b, err := ReadFrame(l.c, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	m := roundTrip(l.t, b)
	if m == nil {
		l.t.Fatalf("Open vSwitch sent what does not parse: %x", b)
	}
	if !bytes.Equal(b, mustAppend(l.t, m, be.Uint32(b[4:]))) {
		l.t.Fatalf("Open vSwitch sent padding that is not zero: %x", b)
	}
	return m, be.Uint32(b[4:])
}

func mustAppend(t *testing.T, m Message, xid uint32) []byte {
	t.Helper()
	b, err := Append(nil, m, xid)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// do sends the messages and returns everything that comes back up to a barrier
// behind them.
func (l *live) do(ms ...Message) (got []Message) {
	l.t.Helper()
	for _, m := range ms {
		l.send(m)
	}
	end := l.send(&BarrierRequest{})
	for {
		m, xid := l.recv()
		if _, ok := m.(*BarrierReply); ok && xid == end {
			return got
		}
		got = append(got, m)
	}
}

// until receives until a message of type T arrives.
func until[T Message](l *live) T {
	l.t.Helper()
	for {
		if m, _ := l.recv(); m != nil {
			if m, ok := m.(T); ok {
				return m
			}
		}
	}
}

func TestLiveRequests(t *testing.T) {
	socket, vsctl := startSwitch(t)
	l := dialSwitch(t, socket)

	l.send(&FeaturesRequest{})
	if m := until[*FeaturesReply](l); m.DatapathID != 0x4e53000000000001 || m.Tables != 254 {
		t.Errorf("%v", m)
	}
	l.do(&SetConfig{SwitchConfig{FragNXMatch, MaxLenNoBuffer}})
	l.send(&GetConfigRequest{})
	if m := until[*GetConfigReply](l); m.SwitchConfig != (SwitchConfig{FragNXMatch, MaxLenNoBuffer}) {
		t.Errorf("%v", m)
	}
	l.send(&EchoRequest{[]byte("hello")})
	if m := until[*EchoReply](l); string(m.Data) != "hello" {
		t.Errorf("%v", m)
	}
	l.send(&RoleRequest{RoleState{RoleMaster, 1}})
	if m := until[*RoleReply](l); m.RoleState != (RoleState{RoleMaster, 1}) {
		t.Errorf("%v", m)
	}
	l.send(&RoleRequest{RoleState{RoleMaster, 0}})
	if m := until[*Error](l); m.Type != ErrTypeRoleRequestFailed || m.Code != RoleRequestFailedStale {
		t.Errorf("%v", m)
	}
	for _, typ := range []MultipartType{MultipartDesc, MultipartTable, MultipartPortDesc, MultipartGroupDesc,
		MultipartGroupFeatures, MultipartMeterFeatures, MultipartTableFeatures} {
		parts := l.do(NewMultipartRequest(typ))
		for i, m := range parts {
			r, ok := m.(*MultipartReply)
			if !ok || r.Type != typ || r.More() != (i < len(parts)-1) {
				t.Errorf("%v: part %d of %d is %v", typ, i, len(parts), m)
			}
		}
		if len(parts) == 0 {
			t.Errorf("%v: no reply", typ)
		}
	}
	ports := l.do(NewMultipartRequest(MultipartPortDesc))[0].(*MultipartReply).Body.(PortDescReply)
	if len(ports) != 3 || !slices.ContainsFunc(ports, func(p Port) bool { return p.No == 1 && p.Name == "p1" }) {
		t.Errorf("%v", ports)
	}
	stats := l.do(NewPortStatsRequest(2))[0].(*MultipartReply).Body.(PortStatsReply)
	if len(stats) != 1 || stats[0].Port != 2 {
		t.Errorf("%v", stats)
	}
	l.do(NewPortStatsRequest(PortAny))

	// A packet out to ourselves, and port status.
	l.send(NewPacketOut(1, frame, ToController()))
	in := until[*PacketIn](l)
	if port, ok := in.InPort(); !ok || port != 1 || !bytes.Equal(in.Data, frame) || in.Reason != ReasonAction {
		t.Errorf("%v", in)
	}
	vsctl("add-port", "br0", "p3", "--", "set", "interface", "p3", "type=dummy", "ofport_request=3")
	for m := until[*PortStatus](l); m.Reason != PortAdded || m.Port.No != 3 || m.Port.Name != "p3"; {
		m = until[*PortStatus](l)
	}
	vsctl("del-port", "br0", "p3")
	for m := until[*PortStatus](l); m.Reason != PortDeleted || m.Port.No != 3; {
		m = until[*PortStatus](l)
	}

	// A rule that goes.
	f := rule(Match{InPort(1)}, Apply(Output{Port: 2}))
	f.Cookie, f.Flags, f.HardTimeout = 77, FlowSendRemoved, 100*time.Second
	del := NewFlowMod(FlowDelete)
	del.TableID, del.Cookie, del.CookieMask = TableAll, 77, ^uint64(0)
	l.do(f)
	l.send(del)
	if m := until[*FlowRemoved](l); m.Cookie != 77 || m.Reason != RemovedDelete || m.Priority != f.Priority ||
		m.HardTimeout != f.HardTimeout || !m.Match.Equal(f.Match) {
		t.Errorf("%v", m)
	}
	if got := l.do(&MultipartRequest{Type: MultipartAggregate, Body: &FlowStatsRequest{TableID: TableAll,
		OutPort: PortAny, OutGroup: GroupAny}}); got[0].(*MultipartReply).Body.(*AggregateReply).Flows != 0 {
		t.Errorf("%v", got)
	}
}

// TestLiveRulesComeBack installs every sample rule and every rule of flowTexts
// that the switch takes, and reads it back: the same after normalizing.
func TestLiveRulesComeBack(t *testing.T) {
	socket, _ := startSwitch(t)
	l := dialSwitch(t, socket)
	l.do(&MeterMod{MeterAdd, MeterPktps, 1, []MeterBand{{Type: BandDrop, Rate: 1}}},
		&Raw{Type: TypeGroupMod, Body: []byte("\x00\x00\x00\x00\x00\x00\x00\x05")})
	installed := 0
	for _, s := range samples() {
		f, ok := s.msg.(*FlowMod)
		if !ok || f.Command != FlowAdd {
			continue
		}
		del := NewFlowMod(FlowDelete)
		del.TableID = TableAll
		f.Cookie, f.Flags = 0x4e53, 0
		var rules FlowStatsReply
		var refused error
		for _, m := range l.do(del, f, NewFlowStatsRequest(TableAll, 0x4e53, ^uint64(0))) {
			switch m := m.(type) {
			case *Error:
				refused = m
			case *MultipartReply:
				rules = append(rules, m.Body.(FlowStatsReply)...)
			}
		}
		if refused != nil {
			if s.refused == "" && !refusedLive[s.name] {
				t.Errorf("%s: %v", s.name, refused)
			}
			continue
		}
		if s.refused != "" || refusedLive[s.name] {
			t.Errorf("%s: accepted", s.name)
		}
		if len(rules) != 1 {
			t.Errorf("%s: %d rules came back", s.name, len(rules))
			continue
		}
		r := rules[0]
		if !r.Match.Equal(f.Match) || !EqualInstructions(r.Instructions, f.Instructions) || r.Priority != f.Priority ||
			r.TableID != f.TableID || r.HardTimeout != f.HardTimeout || r.IdleTimeout != f.IdleTimeout {
			t.Errorf("%s:\nsent %v\ngot  %v", s.name, f, r)
		}
		installed++
	}
	if installed < 30 {
		t.Errorf("only %d rules installed", installed)
	}
}

// refusedLive are samples that name a meter or group which the switch lacks.
var refusedLive = map[string]bool{"do-all": true}

// TestLiveMeters sets up meters on a real switch and reads them back: what was
// asked for, and counters that fit.
func TestLiveMeters(t *testing.T) {
	socket, _ := startSwitch(t)
	l := dialSwitch(t, socket)
	body := func(req *MultipartRequest) MultipartBody {
		t.Helper()
		for _, m := range l.do(req) {
			if r, ok := m.(*MultipartReply); ok {
				return r.Body
			}
			t.Fatalf("%v answered by %v", req, m)
		}
		t.Fatalf("%v: no reply", req)
		return nil
	}
	f, ok := body(NewMultipartRequest(MultipartMeterFeatures)).(*MeterFeatures)
	if want := uint32(MeterKbps | MeterPktps); !ok || f.MaxMeter == 0 || f.BandTypes != 1<<BandDrop || f.Capabilities&want != want || f.MaxBands == 0 {
		t.Errorf("%+v", f)
	}
	want := MeterConfigReply{
		{Meter: 1, Flags: MeterPktps | MeterStat, Bands: []MeterBand{{Type: BandDrop, Rate: 1}}},
		{Meter: 2, Flags: MeterKbps | MeterBurst, Bands: []MeterBand{{Type: BandDrop, Rate: 1_000_000, Burst: 5}}},
	}
	for _, c := range want {
		if got := l.do(&MeterMod{MeterAdd, c.Flags, c.Meter, c.Bands}); len(got) > 0 {
			t.Fatalf("%v", got)
		}
	}
	if got := l.do(&MeterMod{Command: MeterModify, Flags: MeterPktps, Meter: 1, Bands: []MeterBand{{Type: BandDrop}}}); len(got) != 1 ||
		!errors.Is(got[0].(*Error), &Error{Type: ErrTypeMeterModFailed, Code: MeterModFailedBadRate}) {
		t.Errorf("a rate of 0: %v", got)
	}
	got := body(NewMeterRequest(MultipartMeterConfig, MeterAll)).(MeterConfigReply)
	want[0].Bands[0].Burst = 1 // what it tells without MeterBurst: the rate
	slices.SortFunc(got, func(a, b MeterConfig) int { return int(a.Meter) - int(b.Meter) })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("meters came back different (-want +got):\n%s", diff)
	}
	l.do(rule(Match{InPort(1)}, Meter{1}, Apply(Output{Port: 2})))
	stats := body(NewMeterRequest(MultipartMeter, 1)).(MeterStatsReply)
	if len(stats) != 1 || stats[0].Meter != 1 || stats[0].Flows != 1 || len(stats[0].Bands) != 1 {
		t.Errorf("%+v", stats)
	}
	// Deleting a meter deletes the rules that name it.
	l.do(&MeterMod{Command: MeterDelete, Meter: MeterAll})
	if got := body(NewFlowStatsRequest(TableAll, 0, 0)).(FlowStatsReply); len(got) != 0 {
		t.Errorf("rules left: %v", got)
	}
	if got := body(NewMeterRequest(MultipartMeterConfig, MeterAll)); len(got.(MeterConfigReply)) != 0 {
		t.Errorf("meters left: %v", got)
	}
}

func TestLiveAsyncConfig(t *testing.T) {
	socket, _ := startSwitch(t)
	l := dialSwitch(t, socket)
	for _, want := range []AsyncConfig{
		{PacketIn: AsyncMasks{3, 0}, PortStatus: AsyncMasks{7, 7}, FlowRemoved: AsyncMasks{15, 0}}, // as it begins
		{PacketIn: AsyncMasks{2, 1}, PortStatus: AsyncMasks{4, 3}, FlowRemoved: AsyncMasks{8, 7}},
	} {
		l.do(&SetAsync{want})
		l.send(&GetAsyncRequest{})
		if m := until[*GetAsyncReply](l); m.AsyncConfig != want {
			t.Errorf("filter %v, want %v", m.AsyncConfig, want)
		}
	}
}

// TestLiveRawMessages: what is handed on as raw bytes does what it says.
func TestLiveRawMessages(t *testing.T) {
	socket, _ := startSwitch(t)
	l := dialSwitch(t, socket)
	for _, s := range samples() {
		r, ok := s.msg.(*Raw)
		if !ok || s.refused != "" || r.Type == TypeQueueGetConfigReply || r.Type == TypePortMod {
			continue // a reply; a hardware address that this switch's port 3 has not
		}
		for _, m := range l.do(r) {
			if e, ok := m.(*Error); ok {
				// The dummy ports have no queues to tell of, and no port 3.
				if r.Type != TypeQueueGetConfigRequest {
					t.Errorf("%s: %v", s.name, e)
				}
			}
		}
	}
	groups := l.do(NewMultipartRequest(MultipartGroupDesc))
	if b, ok := groups[0].(*MultipartReply).Body.(RawBody); !ok || len(b) != 40 {
		t.Errorf("groups after the group-mod: %v", groups)
	}
}
