package flowrules

// Stage is one row of the install order: which changes it holds and whether a
// barrier follows before the next row may start (OpenFlow 1.3 §6.1.1). Where the
// next row is urgent, it is sent behind the barrier without waiting for the
// reply: the switch keeps the order all the same.
type Stage struct {
	Name    string
	Delete  bool // the row removes rules; else it adds or overwrites
	Kinds   []Kind
	Meters  MeterStep // of the meters, instead of rules
	Barrier bool
	Urgent  bool // the next row is
}

// Order is the order in which the steps of a Diff are carried out.
//
// Additions come before removals, so a pair that goes from one class to
// another (cut to gated, say) is never open in between. Additions go from the
// end of the pipeline to its start, so that no packet enters a half-built one;
// a host is admitted last. Removals take the classes away from the loosest to
// the tightest, so a heal is the last thing that happens. Then the switch is made
// to look at every packet anew.
//
// A cut turns meters down before it adds drop rules, all in one piece, and a heal
// turns them up after those are gone: a meter is looked up for every packet, a
// rule is not (Open vSwitch). A meter has no timeout: it is down only between "hold", when
// every rule that names it got one, and "meter", when they lose it. So whenever
// the controller dies, what is cut heals.
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
