package doctor

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"netsplit/controller/of13"
	"netsplit/flowrules"
	"netsplit/model"
)

const (
	exchanges = 100         // round trips of each kind
	burst     = time.Second // how long packets go round
	inFlight  = 32          // of them at once
	slowTrip  = 20 * time.Millisecond
	slowRate  = 1000 // packets a second, below which the gate by packet-in delays a busy target
)

// spread gives the median and the 99th percentile.
func spread(d []time.Duration) (p50, p99 time.Duration) {
	slices.Sort(d)
	return d[len(d)/2], d[len(d)*99/100]
}

func (p *patient) roundTrips(ctx context.Context) {
	for _, t := range []struct {
		name string
		m    func() of13.Message
	}{
		{"echo", func() of13.Message { return &of13.EchoRequest{} }},
		{"barrier", func() of13.Message { return &of13.BarrierRequest{} }},
	} {
		var took []time.Duration
		var err error
		for end := time.Now().Add(2 * time.Second); len(took) < exchanges && time.Now().Before(end); {
			began := time.Now()
			if _, err = p.sw.Request(ctx, t.m()); err != nil {
				break
			}
			took = append(took, time.Since(began))
		}
		if err != nil || len(took) == 0 {
			p.add(model.CheckFail, "round trip of "+t.name, fmt.Sprint("no answer: ", err), "this switch confirms nothing, so it cannot be used; if it was only busy, examine it again", everything...)
			p.unfit = "round trip of " + t.name
			continue
		}
		p50, p99 := spread(took)
		found := fmt.Sprintf("p50 %s, p99 %s of %d", ms(p50), ms(p99), len(took))
		if p99 > slowTrip {
			p.add(model.CheckWarn, "round trip of "+t.name, found, "cuts and heals take a multiple of it, and so does every packet that is held by packet-in", model.AbilityCut, model.AbilityPacketIn)
			continue
		}
		p.add(model.CheckOK, "round trip of "+t.name, found, "")
	}
}

// etherTypeTrial is for local experiments (IEEE 802-2014 §9.2.3).
const etherTypeTrial = 0x88b5

// frame is one of ours, numbered; with room for the number, at least 60 bytes.
func frame(n uint32, size int) []byte {
	b := make([]byte, max(size, 60))
	copy(b, []byte{0x02, 0x6e, 0x73, 0xd0, 0xc7, 0x02})
	copy(b[6:], nobody[:])
	binary.BigEndian.PutUint16(b[12:], etherTypeTrial)
	binary.BigEndian.PutUint32(b[14:], n)
	return b
}

// packetIns sends packets into the table, from which a rule hands them back: as
// the gate's packets come in and go out.
func (p *patient) packetIns(ctx context.Context) {
	const name = "packet-in"
	lab := flowrules.LabID(p.Testbed.Name)
	rule := harmless(flowrules.Rule{Table: flowrules.TableAdmit, Priority: 65000, Match: flowrules.Match{EthType: etherTypeTrial},
		Do: flowrules.Do{Output: []uint32{uint32(of13.PortController)}}}, lab)
	fail := func(found string) {
		p.add(model.CheckFail, name, found, "packets cannot be held by packet-in: give the switch a gate port (gates in the testbed file)", model.AbilityPacketIn)
	}
	if err := p.try(ctx, []flowrules.Rule{rule}); err != nil {
		fail(err.Error())
		return
	}
	defer p.clean()
	type arrival struct {
		n      uint32
		whole  bool
		cookie uint64
	}
	back := make(chan arrival, 4*inFlight)
	size := 60
	stop, err := p.sw.Overhear(func(_ time.Time, in *of13.PacketIn) bool {
		if len(in.Data) < 18 || !bytes.Equal(in.Data[6:12], nobody[:]) || binary.BigEndian.Uint16(in.Data[12:]) != etherTypeTrial {
			return false
		}
		select {
		case back <- arrival{binary.BigEndian.Uint32(in.Data[14:]), len(in.Data) == size, in.Cookie}:
		default: // more than were sent: somebody repeats them
		}
		return true
	})
	if err != nil {
		p.add(model.CheckWarn, name, err.Error(), "not measured", model.AbilityPacketIn)
		return
	}
	defer stop()
	send := func(n uint32) error { return p.sw.PacketOut(of13.PortController, frame(n, size), of13.PortTable) }
	wait := func(limit time.Duration) (arrival, bool) {
		t := time.NewTimer(limit)
		defer t.Stop()
		select {
		case a := <-back:
			return a, true
		case <-t.C:
		case <-ctx.Done():
		}
		return arrival{}, false
	}
	var took []time.Duration
	n := uint32(0)
	for _, size = range []int{1514, 60} { // the largest first: whole?
		for end := time.Now().Add(time.Second); len(took) < exchanges && time.Now().Before(end); {
			n++
			began := time.Now()
			if err := send(n); err != nil {
				fail(err.Error())
				return
			}
			a, ok := wait(3 * time.Second)
			switch {
			case !ok:
				fail("a packet sent into the table (packet-out to TABLE) did not come back within 3 s")
				return
			case !a.whole:
				fail(fmt.Sprintf("a packet of %d bytes came back truncated, although all of it was requested", size))
				return
			case a.cookie != uint64(rule.Cookie):
				fail("packet-ins do not carry the cookie of their rule (OpenFlow 1.3 §7.4.1): held packets cannot be told from others")
				return
			}
			took = append(took, time.Since(began))
			if size == 1514 {
				break
			}
		}
	}
	p50, p99 := spread(took)
	sent, got, began := n, n, time.Now()
	for time.Since(began) < burst {
		for sent-got < inFlight {
			sent++
			if err := send(sent); err != nil {
				fail(err.Error())
				return
			}
		}
		if _, ok := wait(3 * time.Second); !ok {
			break
		}
		got++
	}
	rate := float64(got-n) / time.Since(began).Seconds()
	for got < sent {
		if _, ok := wait(200 * time.Millisecond); !ok {
			break
		}
		got++
	}
	found := fmt.Sprintf("there and back p50 %s, p99 %s; %.0f packets a second", ms(p50), ms(p99), rate)
	switch {
	case got < sent:
		p.add(model.CheckWarn, name, fmt.Sprintf("%s; %d of %d were lost", found, sent-got, sent),
			"a packet that is lost on its way to the gate makes its run unknown: use a gate port, or lift the switch's limit on packet-ins", model.AbilityPacketIn)
	case rate < slowRate:
		p.add(model.CheckWarn, name, found, "the gate by packet-in delays a target that sends more: use a gate port, or watch few ports", model.AbilityPacketIn)
	default:
		p.add(model.CheckOK, name, found, "")
	}
}
