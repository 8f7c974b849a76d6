package of13

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"netsplit/e2e/need"
)

// fakeSwitch answers ovs-ofctl as a switch would, as far as it needs to be
// answered, and keeps the messages it sent.
type fakeSwitch struct {
	ln   net.Listener
	sent chan []byte
}

func newFakeSwitch(t *testing.T) *fakeSwitch {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &fakeSwitch{ln: ln, sent: make(chan []byte, 4096)}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { s.serve(t, c) })
		}
	})
	t.Cleanup(func() { ln.Close(); wg.Wait() })
	return s
}

// serve answers one connection until the peer closes it.
func (s *fakeSwitch) serve(t *testing.T, c net.Conn) {
	defer c.Close()
	var buf []byte
	for {
		frame, err := ReadFrame(c, buf)
		if err != nil {
			return // the peer is done
		}
		buf = frame
		s.sent <- bytes.Clone(frame)
		m, xid, err := Parse(frame)
		if err != nil {
			t.Errorf("fake switch: %v in %x", err, frame)
			continue
		}
		var reply Message
		switch m := m.(type) {
		case *Hello:
			reply = NewHello(Version)
		case *EchoRequest:
			reply = &EchoReply{m.Data}
		case *BarrierRequest:
			reply = &BarrierReply{}
		case *FeaturesRequest:
			reply = &FeaturesReply{DatapathID: 1, Tables: 254}
		case *GetConfigRequest:
			reply = &GetConfigReply{}
		case *Raw:
			if m.Type == TypeQueueGetConfigRequest { // no queues
				reply = &Raw{Type: TypeQueueGetConfigReply, Body: m.Body}
			}
		case *RoleRequest:
			reply = &RoleReply{m.RoleState}
		case *MultipartRequest:
			switch m.Type {
			case MultipartDesc:
				reply = &MultipartReply{Type: m.Type, Body: &DescReply{Manufacturer: "fake"}}
			case MultipartAggregate:
				reply = &MultipartReply{Type: m.Type, Body: &AggregateReply{}}
			case MultipartPortDesc:
				reply = &MultipartReply{Type: m.Type, Body: PortDescReply{{No: 1, Name: "p1"}}}
			case MultipartMeterFeatures:
				reply = &MultipartReply{Type: m.Type, Body: &MeterFeatures{}}
			case MultipartGroupFeatures:
				reply = &MultipartReply{Type: m.Type, Body: RawBody(make([]byte, 40))}
			default:
				reply = &MultipartReply{Type: m.Type}
			}
		}
		if reply == nil {
			continue
		}
		b, err := Append(nil, reply, xid)
		if err != nil {
			t.Errorf("fake switch: %v", err)
		}
		if _, err := c.Write(b); err != nil {
			return
		}
	}
}

// run has ovs-ofctl carry out a command on the fake switch and returns the
// messages it sent, hello, echo and barrier left out.
func (s *fakeSwitch) run(t *testing.T, ofctl, command string, args ...string) [][]byte {
	t.Helper()
	for len(s.sent) > 0 {
		<-s.sent // left over from a command that failed
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	argv := append([]string{"-O", "OpenFlow13", "--no-names", command, "tcp:" + s.ln.Addr().String()}, args...)
	out, err := exec.CommandContext(ctx, ofctl, argv...).CombinedOutput()
	if err != nil {
		t.Fatalf("ovs-ofctl %v: %v: %s", argv, err, out)
	}
	var got [][]byte
	for {
		select {
		case m := <-s.sent:
			switch MsgType(m[1]) {
			case TypeHello, TypeEchoRequest, TypeBarrierRequest:
				roundTrip(t, m)
			default:
				got = append(got, m)
			}
		default:
			return got
		}
	}
}

// flowTexts are rules in ovs-ofctl's language: every match field of the table
// in 7.2.3.7 that Open vSwitch has, with masks where it takes them, and every
// action and instruction it has over 1.3.
var flowTexts = strings.Fields(`
actions=drop
in_port=1,actions=2
in_port=LOCAL,actions=in_port
in_port=CONTROLLER,actions=1
metadata=0x1234,actions=drop
metadata=0x1200/0xff00,actions=drop
dl_src=02:00:00:00:00:01,actions=1
dl_dst=02:00:00:00:00:01,actions=1
dl_src=02:00:00:00:00:00/ff:ff:ff:00:00:00,actions=1
dl_dst=01:00:00:00:00:00/01:00:00:00:00:00,actions=flood
eth_type=0x88cc,actions=controller
dl_vlan=5,actions=pop_vlan,1
dl_vlan=5,dl_vlan_pcp=3,actions=1
dl_vlan_pcp=3,actions=1
vlan_tci=0,actions=1
vlan_tci=0x1000/0x1000,actions=1
vlan_vid=0x1004/0x1ffc,actions=1
ip,actions=normal
ip,nw_src=10.0.0.1,nw_dst=10.0.0.2,actions=1
ip,nw_src=10.0.0.0/8,nw_dst=10.1.0.0/16,actions=1
ip,nw_src=10.0.0.1/255.0.0.255,actions=1
ip,ip_dscp=10,ip_ecn=2,actions=1
ip,nw_tos=184,actions=1
ip,nw_ttl=64,actions=1
ip,nw_frag=later,actions=drop
tcp,tp_src=1000,tp_dst=6379,actions=1
tcp,tp_dst=0x1000/0xf000,actions=1
tcp,tcp_flags=+syn-ack,actions=controller:65535
tcp,tcp_flags=0x12,actions=1
udp,tp_src=53,tp_dst=54,actions=1
sctp,tp_src=1,tp_dst=2,actions=1
icmp,icmp_type=8,icmp_code=0,actions=1
tcp6,tcp_dst=2181,actions=1
udp6,udp_dst=53,actions=1
arp,arp_op=1,arp_spa=10.0.0.1,arp_tpa=10.0.0.2,actions=flood
arp,arp_spa=10.0.0.0/24,arp_tpa=10.0.0.0/24,actions=drop
arp,arp_sha=02:00:00:00:00:01,arp_tha=02:00:00:00:00:02,actions=drop
arp,arp_sha=02:00:00:00:00:00/ff:ff:00:00:00:00,actions=drop
rarp,actions=drop
ipv6,ipv6_src=fd00::1,ipv6_dst=fd00::2,actions=1
ipv6,ipv6_src=fd00::/64,ipv6_dst=fd00::/9,actions=1
ipv6,ipv6_label=0x12345,actions=1
icmp6,icmp_type=128,icmp_code=0,actions=1
icmp6,icmp_type=135,nd_target=fd00::2,actions=1
icmp6,icmp_type=135,nd_sll=02:00:00:00:00:01,actions=1
icmp6,icmp_type=136,nd_target=fd00::/16,nd_tll=02:00:00:00:00:02,actions=1
mpls,mpls_label=7,mpls_tc=3,mpls_bos=1,actions=dec_mpls_ttl,1
mpls,mpls_label=7,actions=pop_mpls:0x0800,1
tun_id=0x77,actions=1
tun_id=0x77/0xff,tun_src=10.0.0.9,tun_dst=10.0.0.0/8,actions=1
reg0=1,reg1=2/0xff,actions=1
xreg0=5,actions=1
pkt_mark=1,actions=1
ct_state=+trk+est,ip,actions=1
conj_id=3,actions=1
priority=0,actions=CONTROLLER:65535
priority=65535,cookie=0x1,idle_timeout=10,hard_timeout=65535,send_flow_rem,reset_counts,check_overlap,no_packet_counts,no_byte_counts,actions=1
table=1,priority=100,in_port=1,actions=goto_table:2
table=253,actions=drop
actions=write_metadata:0x1
actions=write_metadata:0x1/0xff,goto_table:1
actions=meter:1,goto_table:1
actions=1,goto_table:9
actions=clear_actions
actions=write_actions(output:1)
actions=meter:7,1,clear_actions,write_actions(group:1),write_metadata:5,goto_table:200
actions=group:5
actions=set_queue:3,1
actions=enqueue:1:3
actions=in_port,all,flood,normal,local
actions=controller(max_len=128)
actions=controller(reason=no_match,max_len=128,id=4)
actions=push_vlan:0x8100,set_field:4105->vlan_vid,1
actions=push_vlan:0x88a8,mod_vlan_vid:5,mod_vlan_pcp:2,1
actions=push_mpls:0x8847,set_field:9->mpls_label,1
mpls,actions=set_mpls_ttl:3,set_mpls_tc:2,1
ip,actions=dec_ttl,mod_nw_ttl:9,1
ip,actions=mod_nw_src:10.0.0.1,mod_nw_dst:10.0.0.2,mod_nw_tos:8,mod_nw_ecn:1,1
ip,actions=set_field:10.0.0.1->ip_src,set_field:10.0.0.2->ip_dst,1
tcp,actions=set_field:5->tcp_src,set_field:6->tcp_dst,1
udp,actions=set_field:5->udp_src,set_field:6->udp_dst,1
arp,actions=set_field:2->arp_op,set_field:10.0.0.1->arp_spa,set_field:02:00:00:00:00:01->arp_sha,1
ipv6,actions=set_field:fd00::1->ipv6_src,set_field:fd00::2->ipv6_dst,set_field:3->ipv6_label,1
actions=set_field:02:00:00:00:00:01->eth_src,set_field:02:00:00:00:00:02->eth_dst,1
actions=set_field:0x1/0xf->metadata,1
actions=set_field:7->tun_id,set_field:1->reg0,1
actions=mod_dl_src:02:00:00:00:00:01,mod_dl_dst:02:00:00:00:00:02,1
actions=resubmit(1,2)
actions=resubmit(,2)
actions=output:NXM_NX_REG0[]
actions=output(port=1,max_len=128)
actions=move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[],load:5->NXM_NX_REG0[0..7],1
actions=learn(table=1,NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],output:NXM_OF_IN_PORT[])
actions=note:01.02.03
ip,actions=ct(commit,zone=5)
actions=sample(probability=5,collector_set_id=1)
actions=conjunction(1,1/2)
actions=bundle(eth_src,0,hrw,ofport,slaves:1,2)
actions=multipath(eth_src,50,hrw,12,0,NXM_NX_REG0[])
actions=clone(1,2)
`)

// TestOpenVSwitchEncodings decodes what Open vSwitch's own encoder makes of
// the flow texts, and encodes it again: same bytes. What we read in them is in
// testdata/ovs-encodings.txt, below each text. Tshark must read the same.
func TestOpenVSwitchEncodings(t *testing.T) {
	ofctl := need.Program(t, "ovs-ofctl", "openvswitch-switch")
	sw := newFakeSwitch(t)
	var read strings.Builder // what we read in each
	var encodings [][]byte
	for _, text := range flowTexts {
		t.Run(text, func(t *testing.T) {
			sent := sw.run(t, ofctl, "add-flow", text)
			if len(sent) != 1 {
				t.Fatalf("%d messages, want 1", len(sent))
			}
			f, ok := roundTrip(t, sent[0]).(*FlowMod)
			if !ok {
				t.Fatalf("sent %x, want a flow-mod", sent[0])
			}
			if err := f.Match.Validate(); err != nil && !validateStricter(text) {
				t.Errorf("Validate refuses Open vSwitch's match %v: %v", f.Match, err)
			} else if err == nil && validateStricter(text) {
				t.Errorf("Validate accepts %v", f.Match)
			}
			n, _ := Append(nil, &FlowMod{Match: f.Match.Normalize(), Instructions: NormalizeInstructions(f.Instructions)}, 0)
			if m := roundTrip(t, n); m == nil || !m.(*FlowMod).Match.Equal(f.Match) ||
				!EqualInstructions(m.(*FlowMod).Instructions, f.Instructions) {
				t.Errorf("normalized flow-mod differs: %v", m)
			}
			fmt.Fprintf(&read, "%s\n\t%v\n", text, f)
			encodings = append(encodings, sent[0])
		})
	}
	compareGolden(t, filepath.Join("testdata", "ovs-encodings.txt"), read.String())
	if len(encodings) == len(flowTexts) {
		t.Run("tshark", func(t *testing.T) { againstTshark(t, flowTexts, encodings) })
	}
}

// validateStricter reports whether the flow text uses a mask that the
// specification does not allow but Open vSwitch does.
func validateStricter(text string) bool {
	return strings.Contains(text, "tp_dst=0x1000/0xf000") || strings.Contains(text, "nd_target=fd00::/16")
}

// TestOpenVSwitchRequests does the same with everything else that ovs-ofctl
// sends; see testdata/ovs-requests.txt.
func TestOpenVSwitchRequests(t *testing.T) {
	ofctl := need.Program(t, "ovs-ofctl", "openvswitch-switch")
	sw := newFakeSwitch(t)
	var read strings.Builder
	for _, c := range []struct {
		want Message // type of one of the messages
		args string
	}{
		{&FlowMod{}, "del-flows"},
		{&FlowMod{}, "del-flows cookie=0x4e53000000000000/0xffff000000000000"},
		{&FlowMod{}, "del-flows table=1,out_port=3"},
		{&FlowMod{}, "del-flows out_group=3"},
		{&FlowMod{}, "--strict del-flows in_port=1,priority=7"},
		{&FlowMod{}, "mod-flows in_port=1,actions=2"},
		{&FlowMod{}, "mod-flows cookie=1/-1,in_port=1,actions=2"},
		{&FlowMod{}, "--strict mod-flows in_port=1,priority=7,actions=2"},
		{&MultipartRequest{}, "dump-flows"},
		{&MultipartRequest{}, "dump-flows table=1,cookie=0x4e53/0xffff,in_port=1"},
		{&MultipartRequest{}, "dump-flows out_port=3"},
		{&MultipartRequest{}, "dump-aggregate in_port=1"},
		{&MultipartRequest{}, "dump-desc"},
		{&MultipartRequest{}, "dump-tables"},
		{&MultipartRequest{}, "dump-ports"},
		{&MultipartRequest{}, "dump-ports 3"},
		{&MultipartRequest{}, "dump-ports-desc"},
		{&MultipartRequest{}, "dump-groups"},
		{&MultipartRequest{}, "dump-group-stats"},
		{&MultipartRequest{}, "dump-group-features"},
		{&MultipartRequest{}, "dump-meters"},
		{&MultipartRequest{}, "meter-stats"},
		{&MultipartRequest{}, "meter-features"},
		{&MultipartRequest{}, "queue-stats"},
		{&FeaturesRequest{}, "show"},
		{&PacketOut{}, "packet-out in_port=1,packet=0102030405060a0b0c0d0e0f0800,actions=2"},
		{&PacketOut{}, "packet-out in_port=controller,packet=0102030405060a0b0c0d0e0f0800,actions=set_field:02:00:00:00:00:01->eth_src,table"},
		{&MultipartRequest{}, "dump-meter meter=1"},
		{&MultipartRequest{}, "meter-stats meter=1"},
		{&MeterMod{}, "add-meter meter=1,pktps,burst,stats,bands=type=drop,rate=1,burst_size=2"},
		{&MeterMod{}, "add-meter meter=2,kbps,bands=type=drop,rate=1000000"},
		{&MeterMod{}, "add-meter meter=3,kbps,stats,bands=type=drop,rate=3,type=dscp_remark,rate=4,prec_level=5"},
		{&MeterMod{}, "mod-meter meter=1,pktps,bands=type=drop,rate=7"},
		{&MeterMod{}, "del-meter meter=1"},
		{&MeterMod{}, "del-meters"},
		{&Raw{}, "add-group group_id=1,type=all,bucket=output:1,bucket=output:2"},
		{&Raw{}, "mod-group group_id=1,type=select,bucket=weight:2,output:1"},
		{&Raw{}, "del-groups"},
		{&Raw{}, "mod-port 1 down"},
		{&Raw{}, "queue-get-config 1"},
		{&EchoRequest{}, "probe"},
	} {
		t.Run(c.args, func(t *testing.T) {
			args := strings.Fields(c.args)
			var strict []string
			if args[0] == "--strict" {
				strict, args = args[:1], args[1:]
			}
			fmt.Fprintln(&read, c.args)
			found := false
			if _, ok := c.want.(*EchoRequest); ok {
				found = true // run leaves it out after checking it
			}
			for _, b := range sw.run(t, ofctl, args[0], append(args[1:], strict...)...) {
				m := roundTrip(t, b)
				if m == nil {
					t.Fatalf("does not parse: %x", b)
				}
				found = found || fmt.Sprintf("%T", m) == fmt.Sprintf("%T", c.want)
				fmt.Fprintf(&read, "\t%v\n", m)
			}
			if !found {
				t.Errorf("no %T sent", c.want)
			}
		})
	}
	compareGolden(t, filepath.Join("testdata", "ovs-requests.txt"), read.String())
}
