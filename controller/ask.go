package controller

import (
	"context"
	"fmt"

	"netsplit/controller/of13"
)

// DumpFlows reads the rules whose cookie agrees with cookie in the bits of
// mask, in all tables; mask 0 reads every rule.
func (sw *Switch) DumpFlows(ctx context.Context, cookie, mask uint64) ([]of13.FlowStats, error) {
	parts, err := sw.Request(ctx, of13.NewFlowStatsRequest(of13.TableAll, cookie, mask))
	return join[of13.FlowStatsReply](parts, err)
}

// CountFlows is how many rules the switch has, in all tables.
func (sw *Switch) CountFlows(ctx context.Context) (int, error) {
	q := of13.NewFlowStatsRequest(of13.TableAll, 0, 0)
	q.Type = of13.MultipartAggregate
	parts, err := sw.Request(ctx, q)
	if err != nil {
		return 0, err
	}
	if r, ok := parts[0].(*of13.MultipartReply); ok {
		if a, ok := r.Body.(*of13.AggregateReply); ok {
			return int(a.Flows), nil
		}
	}
	return 0, fmt.Errorf("%w: a number of rules was asked for, %v came", ErrProtocol, parts[0].MsgType())
}

// PortDesc reads the switch's ports.
func (sw *Switch) PortDesc(ctx context.Context) ([]of13.Port, error) {
	parts, err := sw.Request(ctx, of13.NewMultipartRequest(of13.MultipartPortDesc))
	return join[of13.PortDescReply](parts, err)
}

// PortStats reads the counters of every port.
func (sw *Switch) PortStats(ctx context.Context) ([]of13.PortStats, error) {
	parts, err := sw.Request(ctx, of13.NewPortStatsRequest(of13.PortAny))
	return join[of13.PortStatsReply](parts, err)
}

// Desc reads what the switch says about its make.
func (sw *Switch) Desc(ctx context.Context) (of13.DescReply, error) {
	parts, err := sw.Request(ctx, of13.NewMultipartRequest(of13.MultipartDesc))
	if err != nil {
		return of13.DescReply{}, err
	}
	if r, ok := parts[0].(*of13.MultipartReply); ok {
		if d, ok := r.Body.(*of13.DescReply); ok {
			return *d, nil
		}
	}
	return of13.DescReply{}, fmt.Errorf("%w: a description was asked for, %v came", ErrProtocol, parts[0].MsgType())
}

// Meters reads how every meter is set up (OpenFlow 1.3 §7.3.5.12).
func (sw *Switch) Meters(ctx context.Context) ([]of13.MeterConfig, error) {
	parts, err := sw.Request(ctx, of13.NewMeterRequest(of13.MultipartMeterConfig, of13.MeterAll))
	return join[of13.MeterConfigReply](parts, err)
}

// MeterFeatures reads what the switch can do with meters (OpenFlow 1.3
// §7.3.5.13).
func (sw *Switch) MeterFeatures(ctx context.Context) (of13.MeterFeatures, error) {
	parts, err := sw.Request(ctx, of13.NewMultipartRequest(of13.MultipartMeterFeatures))
	if err != nil {
		return of13.MeterFeatures{}, err
	}
	if r, ok := parts[0].(*of13.MultipartReply); ok {
		if f, ok := r.Body.(*of13.MeterFeatures); ok {
			return *f, nil
		}
	}
	return of13.MeterFeatures{}, fmt.Errorf("%w: the features of meters were asked for, %v came", ErrProtocol, parts[0].MsgType())
}

func join[B ~[]E, E any](parts []of13.Message, err error) ([]E, error) {
	if err != nil {
		return nil, err
	}
	var out []E
	for _, p := range parts {
		r, ok := p.(*of13.MultipartReply)
		if !ok {
			return nil, fmt.Errorf("%w: multipart reply expected, %v came", ErrProtocol, p.MsgType())
		}
		b, ok := r.Body.(any).(B)
		if !ok && r.Body != nil {
			return nil, fmt.Errorf("%w: multipart reply carries %T", ErrProtocol, r.Body)
		}
		out = append(out, b...)
	}
	return out, nil
}

// PacketOut sends a frame out of the given ports, as if it had come in on
// inPort (of13.PortController for frames of our own). The frame may be reused
// when PacketOut returns. A switch tells nobody when a port does not exist or
// is inPort itself.
func (sw *Switch) PacketOut(inPort of13.PortNo, frame []byte, out ...of13.PortNo) error {
	o := sw.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.room(); err != nil {
		return sw.fail(err)
	}
	xid := sw.nextXID()
	b, err := of13.AppendPacketOut(o.queued, xid, inPort, frame, out...)
	if err != nil {
		return sw.fail(err)
	}
	o.queued = b
	s := sentMessage{xid: xid}
	if len(out) > 0 {
		s.outPort = out[0]
	}
	sw.sent.put(s)
	o.signal()
	return nil
}
