package model

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// Absent is the value of a variable that a node no longer has, as ∅ in CoFI
// Figure 2. It differs from a variable that was never observed.
const Absent = "∅"

// VarRef names one instance of a variable: status[n1]@n2 is what node n2
// holds as the status of n1. About is empty for variables about the node
// itself.
type VarRef struct {
	Name  string `json:"name"`
	About string `json:"about,omitempty"`
	Node  NodeID `json:"node"`
}

// Compare orders by name, about, node.
func (v VarRef) Compare(w VarRef) int {
	return cmp.Or(cmp.Compare(v.Name, w.Name), cmp.Compare(v.About, w.About), cmp.Compare(v.Node, w.Node))
}

// String is name[about]@node.
func (v VarRef) String() string {
	if v.About == "" {
		return v.Name + "@" + string(v.Node)
	}
	return v.Name + "[" + v.About + "]@" + string(v.Node)
}

// Observation is one value of one variable, seen at one moment.
type Observation struct {
	At    time.Duration `json:"at"`
	Var   VarRef        `json:"var"`
	Kind  string        `json:"kind"`
	Value string        `json:"value"`
	// Message is the number of the message that revealed it; 0 for a probe.
	Message uint64 `json:"message,omitempty"`
	// Probe names the probe that read it; "" for a message.
	Probe string `json:"probe,omitempty"`
	// Lasts: its source tells every change (TellsChanges), so a change to this value
	// was at At, and it is the value until the next observation.
	Lasts bool `json:"lasts,omitempty"`
}

// InvariantStatus says who decided about an invariant.
type InvariantStatus string

// Invariants are mined, and a person may pin or drop one. A pinned one is
// kept whatever later runs say, a dropped one is not explored.
const (
	InvariantMined  InvariantStatus = "mined"
	InvariantPinned InvariantStatus = "pinned"
	InvariantDrop   InvariantStatus = "dropped"
)

// ProgramPoint is a pair of points as in CoFI §3.4.1: before-send of a
// message type at its sender and after-handle at its receiver.
type ProgramPoint struct {
	From NodeID `json:"from"`
	To   NodeID `json:"to"`
	Type string `json:"type"`
}

// Compare orders by type, sender, receiver.
func (p ProgramPoint) Compare(q ProgramPoint) int {
	return cmp.Or(cmp.Compare(p.Type, q.Type), cmp.Compare(p.From, q.From), cmp.Compare(p.To, q.To))
}

// Sample holds the values of both ends of one delivered message: the sender's
// before it was sent and the receiver's after it was handled (CoFI §3.4.2).
// Only fresh observations are in it. Values are sorted by Var.
type Sample struct {
	Run     string       `json:"run"`
	Message uint64       `json:"message"`
	Point   ProgramPoint `json:"point"`
	Values  []VarValue   `json:"values"`
}

// VarValue is a variable with its kind and a value.
type VarValue struct {
	Var   VarRef `json:"var"`
	Kind  string `json:"kind"`
	Value string `json:"value"`
}

// RelationEqual is the only relation mined so far (CoFI §3.4.3).
const RelationEqual = "=="

// Invariant is a relation between two nodes' variables of one kind that held
// in every sample of at least one program point of the clean runs.
type Invariant struct {
	// ID is derived from the content (see InvariantID): stable across runs.
	ID       string          `json:"id"`
	Kind     string          `json:"kind"`
	Relation string          `json:"relation"`
	A        VarRef          `json:"a"` // A sorts before B
	B        VarRef          `json:"b"`
	Status   InvariantStatus `json:"status"`

	// Support counts the samples it held in, Changes the samples at which a
	// value differed from the one before, Distinct the different values, Runs
	// the clean runs that support it.
	Support  int `json:"support"`
	Changes  int `json:"changes"`
	Distinct int `json:"distinct"`
	Runs     int `json:"runs"`
	// Chance bounds the probability that two independent variables with the
	// same marginals would have agreed as often, corrected for the number of
	// candidates tried.
	Chance float64 `json:"chance"`
	// Like is how many pairs of like nodes Chance counts with this one; 0: none.
	Like    int            `json:"like,omitempty"`
	Points  []ProgramPoint `json:"points,omitempty"`
	Example *Sample        `json:"example,omitempty"`
}

// InvariantID returns the stable id of an equality over two variables.
func InvariantID(relation string, a, b VarRef) string {
	if b.Compare(a) < 0 {
		a, b = b, a
	}
	h := sha256.Sum256([]byte(relation + "\x00" + a.String() + "\x00" + b.String()))
	return "inv-" + hex.EncodeToString(h[:5])
}

// String is the invariant as a person writes it.
func (i *Invariant) String() string { return i.A.String() + " " + i.Relation + " " + i.B.String() }

// State holds the values of an invariant's two variables. An inconsistent
// state is a State at a moment when the invariant is violated.
type State struct {
	// Value of the first variable. Required.
	A string `json:"a"`
	// Value of the second variable. Required.
	B string `json:"b"`
}

// Shape is equal for the states that differ in numbers only, in the same order:
// {#3, #4} and {#11, #12}, or {7, ∅} and {9, ∅}. Counters and ids numbered as
// they appear differ from run to run where the moment does not.
func (s State) Shape() string {
	a, okA := Number(s.A)
	b, okB := Number(s.B)
	if okA && okB {
		return [...]string{"less", "equal", "greater"}[cmp.Compare(a, b)+1]
	}
	side := func(v string, number bool) string {
		if number {
			return "number"
		}
		return "=" + v
	}
	return side(s.A, okA) + "\x00" + side(s.B, okB)
}

// Numbers says that a number is in the state, so that its shape may be met
// where it is not.
func (s State) Numbers() bool {
	_, a := Number(s.A)
	_, b := Number(s.B)
	return a || b
}

// Number reads a value that is a number, or an ordinal as #3.
func Number(value string) (int64, bool) {
	n, err := strconv.ParseInt(strings.TrimPrefix(value, "#"), 10, 64)
	return n, err == nil
}

// Compare orders by A then B.
func (s State) Compare(t State) int { return cmp.Or(cmp.Compare(s.A, t.A), cmp.Compare(s.B, t.B)) }

// String is {a, b}.
func (s State) String() string { return "{" + s.A + ", " + s.B + "}" }

// FalseFirst compares as cmp.Compare does, false before true.
func FalseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
