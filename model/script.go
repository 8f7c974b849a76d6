package model

import "time"

// ClientOperation is something a client does in a script, as one command that ends (NEAT,
// OSDI'18 §7.1, class Client). It was refused if its output, on either stream, matches `refused`. It
// happened if it ended with status 0 and its output matches `ok`. Otherwise its outcome is unknown.
type ClientOperation struct {
	// A unique name.
	// Required. Example: set
	Name string `yaml:"name"`
	// What it does.
	// Example: writes a key at a node
	Help string `yaml:"help,omitempty"`
	// Names of its arguments, in order; templates read `.Op.NAME`. `key`, `value` and `node` appear in the history.
	// Example: [node, key, value]
	Takes []string `yaml:"takes,omitempty,flow"`
	// Program and arguments, run on the client's host. Template.
	// Required. Example: [redis-cli, -h, '{{index .IPs .Op.node}}', get, '{{.Op.key}}']
	Command []string `yaml:"command,flow"`
	// Variables added to the environment. Templates.
	// Example: {TRIES: "1"}
	Env map[string]string `yaml:"env,omitempty"`
	// A regular expression over the output of an operation that happened. Group `value` is its value (default: the whole output).
	// Default: any output. Example: '^OK$'
	OK string `yaml:"ok,omitempty"`
	// A regular expression over the output of an operation that cannot have happened: `Connection refused` is one, a timeout is not.
	// Example: 'READONLY|Connection refused'
	Refused string `yaml:"refused,omitempty"`
	// How long it may take, after which its outcome is unknown.
	// Default: 5s. Example: 2s
	Limit time.Duration `yaml:"limit,omitempty"`
}

// Period is a time that the system itself uses, such as that of its failure detector. Scripts
// that wait in periods hold when somebody changes the settings.
type Period struct {
	// A duration. Template.
	// Required. Example: '{{.Args.down_after}}ms'
	Length string `yaml:"length"`
	// What it is.
	// Example: when a silent master counts as down
	Help string `yaml:"help,omitempty"`
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

// ScriptStep is one step of a script, entered in the event log when it is over.
type ScriptStep struct {
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

// CutProof is one of the cuts of a scripted run or of a run with several, as it was
// resolved, with what it did. Name is the script's, or "step" and the place of the step.
type CutProof struct {
	Name string `json:"name"`
	// Step is the place of the cut among the scenario's steps, from 1; 0 in earlier records,
	// whose cuts are named by StepName, or are a script's and no steps.
	Step      int       `json:"step,omitempty"`
	Partition Partition `json:"partition"`
	// Probes are netsplit's own packets that the cut dropped, those of other cuts'
	// proofs included; they are not among those that wanted to cross.
	Probes int   `json:"probes"`
	Proof  Proof `json:"proof"`
}

// Of says whether it is the proof of a step, given by its place from 1.
func (c *CutProof) Of(step int) bool {
	return c.Step == step || c.Step == 0 && c.Name == StepName(step)
}
