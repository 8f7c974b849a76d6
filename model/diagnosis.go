package model

// CheckLevel is the outcome of one check of a testbed.
type CheckLevel string

// Levels, from best to worst.
const (
	CheckOK   CheckLevel = "ok"
	CheckWarn CheckLevel = "warn" // it works, less well
	CheckFail CheckLevel = "fail" // it does not work
)

// Ability is something that netsplit can do with a testbed, or not.
type Ability string

// Abilities. A testbed is good for the main job if it has Cut and Proof, and the
// gate in one of its two ways.
const (
	AbilityCut      Ability = "cut"            // manual partitions, at line rate
	AbilityProof    Ability = "proof"          // counting at the hosts what passed
	AbilityPacketIn Ability = "gate-packet-in" // campaigns, held packets in the controller's session
	AbilityPort     Ability = "gate-port"      // campaigns, held packets by a gate port
	AbilityMirror   Ability = "mirror"         // clean runs without delay
	AbilityOnly     Ability = "only"           // cuts of some traffic
	AbilityOpening  Ability = "only-opening"   // cuts by who opens connections
)

// DiagnosisCheck is one thing that was looked at.
type DiagnosisCheck struct {
	About   string     `json:"about" doc:"switch DATAPATH, host NAME or testbed"`
	Name    string     `json:"name"`
	Level   CheckLevel `json:"level" enum:"ok,warn,fail"`
	Found   string     `json:"found"`
	Means   string     `json:"means,omitempty" doc:"What follows from it, and what to do"`
	Affects []Ability  `json:"affects,omitempty" doc:"Abilities that depend on it"`
}

// AbilityStatus is how well something will work: as the worst check that
// affects it. Absent: the testbed has nothing for it.
type AbilityStatus struct {
	Ability Ability    `json:"ability" doc:"cut, proof, gate-packet-in, gate-port, mirror, only or only-opening"`
	Level   CheckLevel `json:"level" enum:"ok,warn,fail"`
	Absent  bool       `json:"absent,omitempty" doc:"The testbed has none"`
	Why     []string   `json:"why,omitempty"`
}

// Diagnosis is what a testbed is good for.
type Diagnosis struct {
	Testbed   string           `json:"testbed"`
	OK        bool             `json:"ok" doc:"The main job can be done: cuts, their proof, and one of the two gates"`
	Checks    []DiagnosisCheck `json:"checks"`
	Abilities []AbilityStatus  `json:"abilities"`
}
