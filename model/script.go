package model

import "time"

// ClientOperation is something a client does in a script, as one command that
// ends: the wrapper around the client interface that a tester writes once (NEAT,
// OSDI'18 §7.1, class Client).
type ClientOperation struct {
	Name string `yaml:"name"`
	Help string `yaml:"help,omitempty"`
	// Takes names its arguments, in order; templates read .Op.NAME. The
	// arguments key, value and node stand in the history under these names.
	Takes   []string          `yaml:"takes,omitempty,flow"`
	Command []string          `yaml:"command,flow"` // (template)
	Env     map[string]string `yaml:"env,omitempty"`
	// OK is a regular expression for the output of an operation that
	// happened; "" takes any output with exit status 0. Group "value" is its
	// value (without such a group: the output without the space around it).
	OK string `yaml:"ok,omitempty"`
	// Refused is a regular expression for what it prints, on either output,
	// where it did not happen. What is neither is unknown: it may have.
	Refused string `yaml:"refused,omitempty"`
	// Limit is how long it may take, after which its outcome is unknown;
	// default 5s.
	Limit time.Duration `yaml:"limit,omitempty"`
}

// Period is a time that the target itself goes by, such as that of its failure
// detector: scripts sleep and wait in such terms.
type Period struct {
	// Length is a duration (template: it follows the settings).
	Length string `yaml:"length"`
	Help   string `yaml:"help,omitempty"`
}

// StepOutcome says how a step of a script went.
type StepOutcome string

// Outcomes of steps. A step that failed is an assertion that did not hold; one
// that is stuck could not be done, and ends the script.
const (
	StepDone   StepOutcome = "done"
	StepFailed StepOutcome = "failed"
	StepStuck  StepOutcome = "stuck"
)

// Step is one step of a script, entered in the event log when it is over.
type Step struct {
	Num int    `json:"num"` // from 1
	Do  string `json:"do"`  // verb: "cut", "heal", "crash", "op", "sleep", "await", "assert", …
	// Text is the step as a person reads it, without times and results.
	Text string `json:"text"`
	// Where is the file and the line it stands in; "" unknown.
	Where   string        `json:"where,omitempty"`
	Began   time.Duration `json:"began"` // since the run started; it ended at the event's time
	Outcome StepOutcome   `json:"outcome"`
	// Result is what came of it, or why it failed.
	Result string `json:"result,omitempty"`
}

// ScriptCut is one of the cuts of a scripted run, as it was resolved, with what
// it did.
type ScriptCut struct {
	Name      string    `json:"name"`
	Partition Partition `json:"partition"`
	// Probes are netsplit's own packets that the cut dropped, those of other cuts'
	// proofs included; they are not among those that wanted to cross.
	Probes int   `json:"probes"`
	Proof  Proof `json:"proof"`
}
