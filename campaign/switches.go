package campaign

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"netsplit/controller/of13"
	"netsplit/flowrules"
	"netsplit/model"
	"netsplit/testbed"
)

// lookLimit is how long a switch may take to describe itself.
const lookLimit = 3 * time.Second

// Switches lists the switches that are connected, and those of the testbed
// that are not, by datapath id.
func (s *Service) Switches(ctx context.Context) ([]model.SwitchStatus, error) {
	var out []model.SwitchStatus
	hosts, err := s.Hosts(ctx)
	if err != nil {
		return nil, err
	}
	if s.ctrl == nil {
		return nil, nil
	}
	ids := s.ctrl.Switches()
	for _, h := range hosts {
		if !slices.Contains(ids, h.Datapath) {
			ids = append(ids, h.Datapath)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		st := model.SwitchStatus{Datapath: id}
		s.mu.Lock()
		st.Since = s.switches[id]
		s.mu.Unlock()
		if err := s.describe(ctx, &st, hosts); err != nil {
			s.log.Warn("a switch did not describe itself", "switch", id, "err", err)
		}
		out = append(out, st)
	}
	return out, nil
}

func (s *Service) describe(ctx context.Context, st *model.SwitchStatus, hosts []model.TestbedHost) error {
	sw := s.ctrl.Switch(st.Datapath)
	if sw == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	st.Connected, st.Address, st.Role = true, sw.Addr(), strings.ToLower(sw.Role().String())
	if s.outside != nil && slices.ContainsFunc(s.outside.Testbed.Hosts, func(h model.TestbedHost) bool { return h.Datapath == st.Datapath }) {
		st.Cuts = testbed.CutBy(s.outside.Meters(st.Datapath))
	}
	desc, err := sw.Desc(ctx)
	if err != nil {
		return err
	}
	st.Hardware, st.Software = desc.Hardware, desc.Software
	ports, err := sw.PortDesc(ctx)
	if err != nil {
		return err
	}
	for _, p := range ports {
		ps := model.PortStatus{Number: uint32(p.No), Name: p.Name, Up: p.State&of13.PortStateLinkDown == 0}
		for _, h := range hosts {
			if h.Datapath == st.Datapath && h.Port.Number == ps.Number {
				ps.Host = h.Name
			}
		}
		st.Ports = append(st.Ports, ps)
	}
	slices.SortFunc(st.Ports, func(a, b model.PortStatus) int { return int(int64(a.Number) - int64(b.Number)) })
	flows, err := sw.DumpFlows(ctx, 0, 0)
	if err != nil {
		return err
	}
	for _, f := range flows {
		st.Flows = append(st.Flows, model.FlowStatus{
			Table: uint8(f.TableID), Priority: f.Priority, Cookie: f.Cookie, Match: f.Match.String(),
			Actions: fmt.Sprint(f.Instructions), Packets: f.Packets, Bytes: f.Bytes,
			Age: f.Elapsed.Duration(), HardTimeout: f.HardTimeout, Ours: f.Cookie>>56 == flowrules.Tag,
		})
	}
	return nil
}
