package switchtest

import (
	"slices"

	"netsplit/controller/of13"
)

// Meters lists the meters, by number.
func (s *Switch) Meters() []of13.MeterConfig {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.meters)
}

// meterMod applies a meter-mod. It returns the error to answer with, or nil.
func (s *Switch) meterMod(m *of13.MeterMod) *of13.Error {
	bad := func(code of13.ErrorCode) *of13.Error {
		return &of13.Error{Type: of13.ErrTypeMeterModFailed, Code: code}
	}
	i, has := slices.BinarySearchFunc(s.meters, m.Meter, func(c of13.MeterConfig, id of13.MeterID) int {
		return int(int64(c.Meter) - int64(id))
	})
	if m.Command == of13.MeterDelete {
		s.deleteMeter(m.Meter)
		return nil
	}
	if m.Meter == 0 || uint32(m.Meter) > s.cfg.Meters {
		return bad(of13.MeterModFailedInvalidMeter)
	}
	if len(m.Bands) == 0 { // as Open vSwitch
		return bad(of13.MeterModFailedOutOfBands)
	}
	for _, b := range m.Bands {
		if b.Rate == 0 {
			return bad(of13.MeterModFailedBadRate)
		}
	}
	c := of13.MeterConfig{Meter: m.Meter, Flags: m.Flags, Bands: slices.Clone(m.Bands)}
	switch {
	case m.Command == of13.MeterAdd && has:
		return bad(of13.MeterModFailedMeterExists)
	case m.Command == of13.MeterAdd:
		s.meters = slices.Insert(s.meters, i, c)
	case !has:
		return bad(of13.MeterModFailedUnknownMeter)
	default:
		s.meters[i] = c
	}
	return nil
}

// deleteMeter deletes a meter and, without a message, the rules that name it.
func (s *Switch) deleteMeter(id of13.MeterID) {
	gone := func(m of13.MeterID) bool { return m == id || id == of13.MeterAll }
	s.meters = slices.DeleteFunc(s.meters, func(c of13.MeterConfig) bool { return gone(c.Meter) })
	s.flows = slices.DeleteFunc(s.flows, func(e *entry) bool {
		return slices.ContainsFunc(e.Instructions, func(i of13.Instruction) bool {
			m, ok := i.(of13.Meter)
			return ok && gone(m.ID)
		})
	})
}

// stops says that the meter drops whatever comes: there is no time in a walk,
// so a band of the least rate stands for no tokens left.
func (s *Switch) stops(id of13.MeterID) bool {
	return slices.ContainsFunc(s.meters, func(c of13.MeterConfig) bool {
		return c.Meter == id && slices.ContainsFunc(c.Bands, func(b of13.MeterBand) bool { return b.Type == of13.BandDrop && b.Rate <= 1 })
	})
}

func (s *Switch) knows(id of13.MeterID) bool {
	return slices.ContainsFunc(s.meters, func(c of13.MeterConfig) bool { return c.Meter == id })
}

// meterReply answers a multipart request about meters, nil if it is about
// something else.
func (s *Switch) meterReply(m *of13.MultipartRequest) of13.MultipartBody {
	switch m.Type {
	case of13.MultipartMeterFeatures:
		f := &of13.MeterFeatures{MaxMeter: s.cfg.Meters}
		if f.MaxMeter > 0 {
			f.BandTypes, f.MaxBands = 1<<of13.BandDrop, 8
			f.Capabilities = uint32(of13.MeterKbps | of13.MeterPktps | of13.MeterBurst | of13.MeterStat)
		}
		return f
	case of13.MultipartMeterConfig:
		var out of13.MeterConfigReply
		if q, ok := m.Body.(*of13.MeterRequest); ok {
			for _, c := range s.meters {
				if q.Meter == of13.MeterAll || q.Meter == c.Meter {
					out = append(out, c)
				}
			}
		}
		return out
	}
	return nil
}
