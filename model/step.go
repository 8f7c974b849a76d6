package model

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Step is one fault of a scenario: when it begins, what it does, and until when. At the
// latest it ends with the workload.
type Step struct {
	When  Trigger `json:"when,omitzero"`
	Do    Fault   `json:"do"`
	Until Trigger `json:"until,omitzero"`
	// Max ends the step at the latest this long after it began; 0: no bound.
	Max time.Duration `json:"max,omitempty"`
}

// Follows says whether a step is armed when the step before it begins, or when that ends.
type Follows string

// What a step may follow. A message fault begins when it first acts on a message. It ends
// when it will act on no more.
const (
	FollowsBegin Follows = "begin"
	FollowsEnd   Follows = "end"
)

// Trigger is a moment of a run. First it is armed: a When as the workload starts or as
// Follows says, an Until as its step begins. Then its times must pass. Then it fires
// at the first state, message, role, class or file operation that it names; if it names none,
// at once. An Until with nothing set never fires.
type Trigger struct {
	Follows Follows `json:"follows,omitempty"` // only in a When
	// At is a time since the workload started, After a time since the trigger was armed.
	At    time.Duration `json:"at,omitempty"`
	After time.Duration `json:"after,omitempty"`
	// State is allowed only in a When. Message is a message at the gate.
	State   *FaultCondition `json:"state,omitempty"`
	Message *MessageTrigger `json:"message,omitempty"`
	// Role is a host that has a role. netsplit asks the target for it again and again.
	Role *RoleTrigger `json:"role,omitempty"`
	// Class and Unseen are allowed only in the Until of a cut whose When has a State. They
	// select a message to or from the isolated host, of this class, or of a class that is
	// not listed. Such a message, like one that Message selects, is the first to pass.
	Class  *Class  `json:"class,omitempty"`
	Unseen *Unseen `json:"unseen,omitempty"`
	// File is a file operation that is about to begin.
	File *FileTrigger `json:"file,omitempty"`
}

// Unseen is the first message whose class is not in Seen, which is sorted.
type Unseen struct {
	Seen []Class `json:"seen,omitempty"`
}

// MessageTrigger is the nth message (0: the first) that matches, counted from when the
// trigger is armed and its times have passed.
type MessageTrigger struct {
	Match MessageMatch `json:"match"`
	Nth   int          `json:"nth,omitempty"`
	Side  Side         `json:"side,omitempty"` // "": SideSend; only in a When
}

// Side says whether a trigger fires before or after its message passes the gate.
type Side string

// Sides. SideSend is before the packet passes, so the fault acts on it, too. SideReceive is
// after it: a message that is lost or kept does not count.
const (
	SideSend    Side = "send"
	SideReceive Side = "receive"
)

// Fault is what a step does. One of its pointers is set; Cut and Node are both for the crash
// of a machine, see Silent.
type Fault struct {
	// Cut is a partition. Isolate is the host that it isolates, if it is for one host.
	Cut     *Partition `json:"cut,omitempty"`
	Isolate NodeID     `json:"isolate,omitempty"`
	// Message acts on the messages that it selects.
	Message *MessageFault `json:"message,omitempty"`
	// Node crashes or pauses servers. The end of the step starts or resumes them.
	Node *NodeFault `json:"node,omitempty"`
	// Disk is what happens to a host's disk.
	Disk *DiskFault `json:"disk,omitempty"`
	// Roles are the names in Cut, Isolate, Node and Disk that are roles, not hosts. Each stands
	// for the host that has the role as the step begins.
	Roles []string `json:"roles,omitempty"`
	// IfRunning: a host of which no server runs is left alone, as one of all hosts that a fault
	// strikes. Without it, there is nothing to kill, and the run is unknown.
	IfRunning bool `json:"ifRunning,omitempty"`
	// As is set in a step that was played: the fault as it was requested, with its roles.
	As *RoleFault `json:"as,omitempty"`
}

// NodeFault is what a step does to servers: NodeKill (a crash) or NodePause. Meanwhile the
// packet of the step's message waits at the gate.
type NodeFault struct {
	Verb    NodeVerb `json:"verb"`
	Host    NodeID   `json:"host"`
	Process string   `json:"process,omitempty"` // "": all running servers of the host
}

// Undo is the verb that ends what the fault does.
func (f *NodeFault) Undo() NodeVerb {
	if f.Verb == NodePause {
		return NodeResume
	}
	return NodeStart
}

// String is the fault in words.
func (f *NodeFault) String() string {
	s := "pause "
	if f.Verb == NodeKill {
		s = "crash "
	}
	if f.Process != "" {
		s += f.Process + " on "
	}
	return s + string(f.Host)
}

// Silent says whether the fault is the crash of a machine: its host is cut off from all
// others at the moment in which its servers die, so that no other host hears of it.
func (f *Fault) Silent() bool { return f.Cut != nil && f.Node != nil }

// String is the fault in words.
func (f *Fault) String() string {
	switch {
	case f.Silent():
		return "crash the machine " + string(f.Node.Host)
	case f.Cut != nil:
		return "cut " + f.Cut.String()
	case f.Message != nil:
		return f.Message.String()
	case f.Node != nil:
		return f.Node.String()
	case f.Disk != nil:
		return f.Disk.String()
	}
	return ""
}

// Partition is what the step cuts; the zero value: nothing.
func (s *Step) Partition() Partition {
	if s.Do.Cut == nil {
		return Partition{}
	}
	return *s.Do.Cut
}

// Matches select the messages of the step.
func (s *Step) Matches() (out []*MessageMatch) {
	for _, t := range []*MessageTrigger{s.When.Message, s.Until.Message} {
		if t != nil {
			out = append(out, &t.Match)
		}
	}
	if s.Do.Message != nil {
		out = append(out, &s.Do.Message.Match)
	}
	return out
}

// Timed says whether the trigger is a time and nothing else.
func (t *Trigger) Timed() bool { return t.OnlyTimes() && (t.At > 0 || t.After > 0) }

// OnlyTimes says whether the trigger waits for times alone, or for nothing.
func (t *Trigger) OnlyTimes() bool {
	return t.State == nil && t.Message == nil && t.Role == nil && t.Class == nil && t.Unseen == nil && t.File == nil
}

// String is the trigger in words; "" where nothing is set.
func (t *Trigger) String() string {
	var w []string
	switch t.Follows {
	case FollowsBegin:
		w = append(w, "the step before has begun")
	case FollowsEnd:
		w = append(w, "the step before has ended")
	}
	if t.At > 0 {
		w = append(w, fmt.Sprintf("%v into the workload", t.At))
	}
	if t.After > 0 {
		w = append(w, fmt.Sprintf("%v have passed", t.After))
	}
	if t.State != nil {
		w = append(w, t.State.String())
	}
	if t.Role != nil {
		w = append(w, t.Role.String())
	}
	if m := t.Message; m != nil {
		s := fmt.Sprintf("message %s, number %d", m.Match, max(m.Nth, 1))
		if m.Side == SideReceive {
			s += ", is delivered"
		}
		w = append(w, s)
	}
	if t.Class != nil {
		w = append(w, "a message of class "+t.Class.String())
	}
	if t.Unseen != nil {
		w = append(w, fmt.Sprintf("a message of a class beyond the %d known", len(t.Unseen.Seen)))
	}
	if t.File != nil {
		w = append(w, t.File.String())
	}
	return strings.Join(w, ", then ")
}

// String is the step on one line.
func (s *Step) String() string {
	var b strings.Builder
	b.WriteString(s.Do.String())
	if w := s.When.String(); w != "" {
		b.WriteString("; when " + w)
	}
	if u := s.Until.String(); u != "" {
		b.WriteString("; until " + u)
	}
	if s.Max > 0 {
		fmt.Fprintf(&b, "; at most %v", s.Max)
	}
	return b.String()
}

// Validate says what is wrong with the step. hosts are those that it may name, place is its
// place in the scenario, from 1. Validate does not check the groups of a cut: whoever
// resolves them does.
func (s *Step) Validate(hosts []NodeID, place int) error {
	w, u := &s.When, &s.Until
	does := 0
	for _, is := range []bool{s.Do.Cut != nil, s.Do.Message != nil, s.Do.Node != nil, s.Do.Disk != nil} {
		if is {
			does++
		}
	}
	if s.Do.Silent() {
		does--
	}
	switch {
	case does != 1:
		return fmt.Errorf("do: a step does one thing: give one of cut, isolate, crash, pause, a message fault, a disk fault")
	case s.Do.Node != nil && !slices.Contains(WithRoles(hosts, s.Do.Roles), s.Do.Node.Host):
		return fmt.Errorf("no host %q: there are %v", s.Do.Node.Host, hosts)
	case s.Do.Node != nil && s.Do.Node.Verb != NodeKill && s.Do.Node.Verb != NodePause:
		return fmt.Errorf("unknown fault %q of a server: use kill or pause", s.Do.Node.Verb)
	case s.Do.Silent() && (s.Do.Node.Verb != NodeKill || s.Do.Node.Process != "" || s.Do.Isolate != s.Do.Node.Host):
		return fmt.Errorf("do: silent belongs to the crash of a whole machine: use it with crash, without process, isolate and cut")
	case w.Follows != "" && w.Follows != FollowsBegin && w.Follows != FollowsEnd:
		return fmt.Errorf("when: unknown follows %q: use begin or end", w.Follows)
	case w.Follows != "" && place == 1:
		return fmt.Errorf("when: the first step follows none: leave out follows")
	case w.Class != nil || w.Unseen != nil || u.Follows != "" || u.State != nil:
		return fmt.Errorf("state and follows belong to when, class and unseen to until: leave them out of the other")
	case w.At < 0 || w.After < 0 || u.At < 0 || u.After < 0 || s.Max < 0:
		return fmt.Errorf("times must not be negative")
	case u.At > 0 && u.Timed() && w.Timed() && w.Follows == "" && u.At <= max(w.At, w.After):
		return fmt.Errorf("until: it ends %v into the workload, and does not begin before %v: let it end later", u.At, max(w.At, w.After))
	case w.State != nil && w.Message != nil:
		return fmt.Errorf("when: give a state or a message, not both, or have one step follow another")
	case s.Do.Message != nil && (w.Message != nil || u.Message != nil):
		return fmt.Errorf("a message fault selects its messages by match: leave the message out of when and until")
	case u.Class != nil && len(s.Do.Roles) > 0:
		return fmt.Errorf("until: a class names hosts, and the fault names roles: use a message in until")
	case u.Class != nil && (w.State == nil || s.Do.Cut == nil):
		return fmt.Errorf("until: a class needs a cut that begins at a state: add a state to when, or use a message in until")
	case w.State != nil && w.State.Invariant.A == w.State.Invariant.B:
		return fmt.Errorf("when: the state names no invariant: give two variables, as in status[n1]@n2 == status[n1]@n3")
	case w.State != nil && w.State.State != nil && w.State.State.A == w.State.State.B:
		return fmt.Errorf("when: the state %s is not inconsistent: give two values that differ", w.State.State)
	}
	for _, t := range []struct {
		of string
		m  *MessageTrigger
		r  *RoleTrigger
	}{{"when", w.Message, w.Role}, {"until", u.Message, u.Role}} {
		if t.r != nil {
			if err := t.r.validate(t.of, hosts); err != nil {
				return err
			}
			if t.m != nil || t.of == "when" && w.State != nil {
				return fmt.Errorf("%s: give one of role, message and state, or have one step follow another", t.of)
			}
		}
		if t.m == nil {
			continue
		}
		if err := t.m.Match.Validate(hosts); err != nil {
			return fmt.Errorf("%s: %w", t.of, err)
		}
		if t.m.Nth < 0 {
			return fmt.Errorf("%s: nth must not be negative", t.of)
		}
		if !slices.Contains([]Side{"", SideSend, SideReceive}, t.m.Side) || t.of == "until" && t.m.Side == SideReceive {
			return fmt.Errorf("%s: side %q: a step begins on side send or receive of a message, and ends before one passes", t.of, t.m.Side)
		}
	}
	if err := s.validateRoles(); err != nil {
		return err
	}
	if err := s.validateFiles(hosts); err != nil || s.Do.Message == nil {
		return err
	}
	return s.Do.Message.Validate(hosts)
}

// StepResult says when a step of a scenario began and ended, since the run started, and
// why: reasons of decisions. By is "" for one that never began. A message fault begins
// with the first message that it acts on.
type StepResult struct {
	Step    int           `json:"step"` // place, from 1
	By      string        `json:"by,omitempty"`
	Began   time.Duration `json:"began,omitempty"`
	EndedBy string        `json:"endedBy,omitempty"`
	Ended   time.Duration `json:"ended,omitempty"`
	// Slip is set for a crash. It counts the packets with payload that still came from its host
	// until the step ended: sent before the crash was done, or by the host's TCP. 0: the
	// crash was exact.
	Slip int `json:"slip,omitempty"`
	// Failed is set for a disk fault. It counts the operations that it changed.
	Failed int `json:"failed,omitempty"`
	// Roles are the hosts that had the roles of the fault as the step began. Lacked says that
	// the step could not begin when its trigger came, because nobody had a role.
	Roles  []RoleHolders `json:"roles,omitempty"`
	Lacked string        `json:"lacked,omitempty"`
}
