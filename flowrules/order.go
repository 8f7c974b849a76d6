package flowrules

// Stage is one row of the install order: which changes it holds, and whether a
// barrier follows before the next row may start (OpenFlow 1.3 §6.1.1). An urgent
// row follows the barrier at once, without waiting for its reply: the switch keeps
// the order all the same.
type Stage struct {
	Name    string
	Delete  bool // the row removes rules; else it adds or overwrites
	Kinds   []Kind
	Meters  MeterStep // the row changes meters instead of rules
	Barrier bool
	Urgent  bool // the next row is urgent
}

// Order is the order in which a switch gets the steps of a Diff.
//
// Additions come before removals, so a pair that goes from one class to another
// (cut to gated, say) is never open in between. Additions go from the end of the
// pipeline to its start, so no packet enters a half-built pipeline; a host is
// admitted last. Removals go from the loosest class to the tightest, so a heal
// comes last. Then "look anew" makes the switch match every packet anew.
//
// A cut turns all its meters down before it adds drop rules, and a heal turns them
// up when those rules are gone: Open vSwitch looks up the meter for every packet,
// but not the rule. A meter has no timeout. So it is down only between "hold",
// which gives every rule that names it a timeout, and "meter", which takes the
// timeout away: whenever the controller dies, the cut heals.
var Order = []Stage{
	{Name: "put meters", Meters: MeterPut, Barrier: true},
	{Name: "taps", Kinds: []Kind{KindGate, KindMirror}, Barrier: true},
	{Name: "hold", Kinds: []Kind{KindHold}, Barrier: true, Urgent: true},
	{Name: "turn down", Meters: MeterDown, Barrier: true, Urgent: true},
	{Name: "cut", Kinds: []Kind{KindDrop, KindFlood}, Barrier: true},
	{Name: "forward", Kinds: []Kind{KindForward, KindDefault}, Barrier: true},
	{Name: "admit", Kinds: []Kind{KindAdmit}, Barrier: true},
	{Name: "shut out", Delete: true, Kinds: []Kind{KindAdmit}, Barrier: true},
	{Name: "unforward", Delete: true, Kinds: []Kind{KindForward, KindDefault}, Barrier: true},
	{Name: "untap", Delete: true, Kinds: []Kind{KindMirror, KindGate}, Barrier: true},
	{Name: "heal", Delete: true, Kinds: []Kind{KindDrop, KindFlood}, Barrier: true},
	{Name: "turn up", Meters: MeterUp, Barrier: true},
	{Name: "meter", Kinds: []Kind{KindMeter}, Barrier: true},
	{Name: "unmeter", Delete: true, Kinds: []Kind{KindMeter, KindHold}, Barrier: true},
	{Name: "look anew", Kinds: []Kind{KindFresh}, Barrier: true},
	{Name: "look no more", Delete: true, Kinds: []Kind{KindFresh}, Barrier: true},
	{Name: "take meters", Meters: MeterTake, Barrier: true},
}
