package campaign

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"netsplit/controller"
	"netsplit/controller/of13"
	"netsplit/flowrules"
	"netsplit/model"
	"netsplit/testbed"
)

// lookLimit is how long a switch may take to describe itself.
const lookLimit = 3 * time.Second

// Switches lists the switches that are connected, and those of the testbed
// that are not, by datapath id; whole: with what they say of themselves, their ports and rules.
func (s *Service) Switches(ctx context.Context, whole bool) ([]model.SwitchStatus, error) {
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
		if sw := s.ctrl.Switch(id); sw != nil {
			st.Connected, st.Address, st.Role = true, sw.Addr(), strings.ToLower(sw.Role().String())
			if s.outside != nil && slices.Contains(s.outside.Testbed.Switches(), id) {
				st.Cuts = testbed.CutBy(s.outside.Meters(id))
			}
			if st.Role == "slave" {
				st.Reason = "another controller is its master: netsplit neither cuts nor heals there"
			}
			if whole {
				if err := describe(ctx, sw, &st, hosts); err != nil {
					s.log.Warn("a switch did not describe itself", "switch", id, "err", err)
				}
			}
		} else {
			st.Reason = "its session has ended; a switch connects again by itself, to " + s.ControllerAddr()
			if st.Since.IsZero() {
				st.Reason = "it has not connected since the daemon started: point it at " + s.ControllerAddr()
			}
		}
		out = append(out, st)
	}
	return out, nil
}

// describe asks a switch for its description, ports and rules.
func describe(ctx context.Context, sw *controller.Switch, st *model.SwitchStatus, hosts []model.TestbedHost) error {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
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
