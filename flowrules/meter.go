package flowrules

import (
	"errors"
	"fmt"

	"netsplit/controller/of13"
	"netsplit/model"
)

// Meter is the meter of a directed pair of hosts (OpenFlow 1.3 §5.7).
type Meter struct {
	ID   uint32
	Link model.Link
	Down bool // lets next to nothing pass; else everything
}

// MeterStep is what a stage does to meters.
type MeterStep uint8

// Steps.
const (
	MeterPut  MeterStep = iota + 1 // add those that are not there, up
	MeterDown                      // turn down
	MeterUp                        // turn up
	MeterTake                      // delete those that are not wanted
)

const (
	meterFlags = of13.MeterKbps | of13.MeterBurst | of13.MeterStat
	// downRate and downBurst are the least that Open vSwitch takes, in kbit/s and kbit.
	// The burst is 1,000 bits, so no frame above 125 bytes ever passes. Of smaller frames
	// two pass at once, and then 125 bytes a second. A rate of one packet per second would
	// let a packet of any size pass when the meter is turned down.
	downRate, downBurst uint32 = 1, 1
	// upRate, in kbit/s, is more than any switch forwards. The burst of the band with that
	// rate names the owner: ownerMark and the lab.
	upRate    uint32 = 0xffff_ffff
	ownerMark uint32 = Tag << 24
)

// MetersFor is how many meters a switch needs: one for what each of its hosts sends
// to each other host, on this switch or, far, on others that links lead to.
func MetersFor(hosts, far int) int { return hosts * (hosts + far - 1) }

// maxMeters is how many meters of one switch are used, those of 32 hosts: the rules
// that name them, two for each, are read back every second.
var maxMeters = MetersFor(32, 0)

// WithoutMeters says why a switch with these meter features, or one that answered the
// request for them with refused, cuts by rules alone. nil: it can cut by meters first, if
// they are not Taken.
func WithoutMeters(cuts model.CutBy, f of13.MeterFeatures, refused error, hosts, far int) error {
	const flags = of13.MeterKbps | of13.MeterBurst
	senders := fmt.Sprintf("%d hosts", hosts)
	if far > 0 {
		senders += fmt.Sprintf(" with %d on other switches", far)
	}
	switch need := MetersFor(hosts, far); {
	case cuts == model.CutByRules:
		return errors.New("the testbed says so")
	case refused != nil:
		return fmt.Errorf("the switch does not say what meters it has: %w", refused)
	case f.MaxMeter == 0:
		return errors.New("the switch has no meters")
	case uint64(f.MaxMeter) < uint64(need):
		return fmt.Errorf("the switch has %d meters, %s need %d", f.MaxMeter, senders, need)
	case f.BandTypes&(1<<of13.BandDrop) == 0 || of13.MeterFlags(f.Capabilities)&flags != flags || f.MaxBands < 2:
		return errors.New("the switch's meters do not drop by rate and burst, or have one band only")
	case need > maxMeters:
		return fmt.Errorf("%s need %d meters, more than the %d that are read back every second", senders, need, maxMeters)
	}
	return nil
}

// TopMeter is Input.TopMeter on a switch with these features.
func TopMeter(f of13.MeterFeatures) uint32 { return min(f.MaxMeter, uint32(of13.MeterMax)) }

// String is the meter in the syntax of ovs-ofctl, without the owner's mark.
func (m Meter) String() string {
	rate, burst := upRate, ownerMark
	if m.Down {
		rate, burst = downRate, downBurst
	}
	return fmt.Sprintf("meter=%d,kbps,burst,stats,band=type=drop,rate=%d,burst_size=%d", m.ID, rate, burst)
}

// config is the meter as a switch that has it would report it.
func (m Meter) config(lab uint16) of13.MeterConfig {
	c := of13.MeterConfig{Meter: of13.MeterID(m.ID), Flags: meterFlags}
	if m.Down {
		c.Bands = []of13.MeterBand{{Type: of13.BandDrop, Rate: downRate, Burst: downBurst}}
	}
	c.Bands = append(c.Bands, owner(lab))
	return c
}

func owner(lab uint16) of13.MeterBand {
	return of13.MeterBand{Type: of13.BandDrop, Rate: upRate, Burst: ownerMark | uint32(lab)}
}

func owned(c of13.MeterConfig, lab uint16) bool {
	for _, b := range c.Bands {
		if sameBand(b, owner(lab)) {
			return true
		}
	}
	return false
}

func sameBand(a, b of13.MeterBand) bool {
	return a.Type == b.Type && a.Rate == b.Rate && a.Burst == b.Burst
}

func sameConfig(a, b of13.MeterConfig) bool {
	if a.Flags != b.Flags || len(a.Bands) != len(b.Bands) {
		return false
	}
	for i := range a.Bands {
		if !sameBand(a.Bands[i], b.Bands[i]) {
			return false
		}
	}
	return true
}

func (m Meter) mod(c of13.MeterCommand, lab uint16) *of13.MeterMod {
	want := m.config(lab)
	return &of13.MeterMod{Command: c, Flags: want.Flags, Meter: want.Meter, Bands: want.Bands}
}

// Taken names the first meter with a number of the plan's that carries another
// owner's mark or none; nil if there is none.
func Taken(have []of13.MeterConfig, want Plan) error {
	wanted := map[of13.MeterID]bool{}
	for _, m := range want.Meters {
		wanted[of13.MeterID(m.ID)] = true
	}
	for _, c := range have {
		if wanted[c.Meter] && !owned(c, want.Lab) {
			return fmt.Errorf("meter %v of the switch is somebody else's: delete it (ovs-ofctl del-meter)", c.Meter)
		}
	}
	return nil
}

// RemoveMeters are the meter-mods that delete the plan's meters. The switch then deletes
// the rules that name them, too.
func (p Plan) RemoveMeters() []of13.Message {
	var out []of13.Message
	for _, m := range p.Meters {
		out = append(out, take(of13.MeterID(m.ID)))
	}
	return out
}

func take(id of13.MeterID) *of13.MeterMod {
	return &of13.MeterMod{Command: of13.MeterDelete, Flags: meterFlags, Meter: id}
}

// meters compares the meters and counts what differs.
func (d *Delta) meters(have State, want Plan) map[MeterStep][]of13.Message {
	out := map[MeterStep][]of13.Message{}
	held := map[of13.MeterID]of13.MeterConfig{}
	for _, c := range have.Meters {
		held[c.Meter] = c
	}
	wanted := map[of13.MeterID]bool{}
	for _, m := range want.Meters {
		id := of13.MeterID(m.ID)
		wanted[id] = true
		c, has := held[id]
		turn := MeterUp
		if m.Down {
			turn = MeterDown
		}
		switch {
		case !has:
			d.Missing++
			out[MeterPut] = append(out[MeterPut], Meter{ID: m.ID}.mod(of13.MeterAdd, want.Lab))
			if m.Down {
				out[turn] = append(out[turn], m.mod(of13.MeterModify, want.Lab))
			}
		case !sameConfig(c, m.config(want.Lab)):
			d.Changed++
			out[turn] = append(out[turn], m.mod(of13.MeterModify, want.Lab))
		}
	}
	for _, c := range have.Meters {
		if !wanted[c.Meter] && owned(c, want.Lab) {
			d.Stale++
			out[MeterTake] = append(out[MeterTake], take(c.Meter))
		}
	}
	return out
}

func (c *compiler) metered(l link) bool {
	return c.in.TopMeter != 0 && !c.gate[l] && !c.mirror[l]
}

func (c *compiler) meterOf(l link) uint32 {
	n := uint32(l.src * (len(c.hosts) - 1))
	if l.dst < l.src {
		return c.in.TopMeter - n - uint32(l.dst)
	}
	return c.in.TopMeter - n - uint32(l.dst) + 1
}

// meter sends a link through its meter. asks is where ARP requests of its sender may
// go.
func (c *compiler) meter(r Rule, src, dst Host, l link, asks reached) {
	r.Kind, r.Priority = KindMeter, prioMeter
	r.Do = Do{Meter: c.meterOf(l), Goto: TableForward}
	if c.down[l] {
		r.Kind, r.HardTimeout = KindHold, c.timeout
	}
	c.add(unicast(r, src, dst), 0)
	if asks.narrowed() { // the flood of table 2 would go to everybody
		r.Kind, r.HardTimeout = KindHold, c.timeout
		r.Do = Do{Meter: r.Do.Meter, Output: asks.ports}
	}
	c.add(request(r, src, dst), 0)
}
