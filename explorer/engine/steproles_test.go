package engine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netsplit/explorer"
	"netsplit/explorer/engine"
	"netsplit/model"
)

// ofRole is a fault of whoever leads.
func ofRole(f model.Fault) model.Fault {
	f.Roles = []string{"leader"}
	return f
}

func offLeader() model.Fault {
	f := ofRole(cutOff("leader"))
	f.Isolate, f.Cut.Groups = "leader", [][]model.NodeID{{"leader"}, {"n1", "n2", "n3"}}
	return f
}

func crashed(n model.NodeID) model.Fault {
	return model.Fault{Node: &model.NodeFault{Verb: model.NodeKill, Host: n}}
}

// played is a run of an engine: what is said to have a role, a message or a time, and what the
// engine decides.
type played struct {
	e   *engine.Engine
	num uint64
	out []string
}

func play(steps ...model.Step) *played {
	p := &played{e: engine.New(model.Scenario{Steps: steps})}
	p.step(model.Event{Kind: model.EventWorkload})
	return p
}

func (p *played) step(ev model.Event) {
	p.num++
	ev.Num = p.num
	for _, d := range p.e.Step(ev) {
		s := fmt.Sprint(d.Step)
		for _, w := range []struct {
			is   bool
			what string
		}{{d.Ask != "", " ask " + d.Ask}, {d.Cut, " cut"}, {d.Heal, " heal"}, {d.Verb != "", " " + string(d.Verb)}, {d.Action != "", " " + string(d.Action)}} {
			if w.is {
				s += w.what
			}
		}
		p.out = append(p.out, s+" "+d.Reason)
	}
}

func (p *played) tick(at time.Duration) { p.step(model.Event{At: at, Kind: model.EventTick}) }

func (p *played) leads(at time.Duration, who ...model.NodeID) {
	p.step(model.Event{At: at, Kind: model.EventRole, Role: &model.RoleHolders{Role: "leader", Have: who}})
}

func (p *played) message(at time.Duration, typ string, from, to model.NodeID) {
	n := p.num + 1
	p.step(model.Event{At: at, Kind: model.EventMessage, Message: &model.Message{Num: n, Type: typ, From: from, To: to}})
	p.step(model.Event{At: at, Kind: model.EventPacket, Packet: &model.HeldPacket{Frame: n, From: from, To: to, Messages: []uint64{n}}})
}

func (p *played) want(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, p.out); diff != "" {
		t.Error(diff)
	}
	p.out = nil
}

// TestWhoHasARoleIsAskedAsTheStepBegins, and of two it is the one that no step has put out of
// action; what is not known before is not taken from an older answer.
func TestWhoHasARoleIsAskedAsTheStepBegins(t *testing.T) {
	asked := []model.Step{{When: model.Trigger{At: 1}, Do: offLeader()}, {When: model.Trigger{Follows: model.FollowsBegin, After: 5}, Do: ofRole(crashed("leader"))}}
	p := play(asked...)
	p.leads(0, "n1")
	p.tick(1)
	p.message(2, "A", "n3", "n1") // it waits for the answer
	p.want(t, "1 ask leader time", "0 pass open")
	p.leads(3, "n3")
	p.message(3, "A", "n3", "n1")
	p.want(t, "1 cut time", "0 drop across-cut")
	p.tick(9)
	p.leads(9, "n2", "n3")
	p.want(t, "2 ask leader time", "2 kill time")
	hosts := func(s model.Scenario) string {
		return fmt.Sprint(s.Steps[0].Do.Cut.Groups, " ", s.Steps[1].Do.Node.Host)
	}
	r := p.e.Result().RunResult("s", model.Verdict{})
	for _, s := range []model.Scenario{p.e.Scenario(), model.Scenario{Steps: asked}.Played(r.Steps)} {
		if got := hosts(s); got != "[[n3] [n1 n2]] n2" {
			t.Errorf("it was %s", got)
		}
	}
	if got := hosts(explorer.Replay(model.Scenario{Steps: asked}.Played(r.Steps), r)); got != "[[leader] [n1 n2 n3]] leader" {
		t.Errorf("a replay has %s", got)
	}
}

// TestOfTwoLeadersTheLatestIsMeant: who has lost its majority may not know it yet.
func TestOfTwoLeadersTheLatestIsMeant(t *testing.T) {
	p := play(model.Step{When: model.Trigger{At: 5}, Do: ofRole(crashed("leader"))})
	p.leads(1, "n1")
	p.leads(2, "n1", "n3")
	p.leads(3, "n1", "n2", "n3")
	p.tick(5)
	p.leads(5, "n1", "n2", "n3")
	if got := p.e.Scenario().Steps[0].Do.Node.Host; got != "n2" {
		t.Errorf("%s crashed", got)
	}
}

// TestAMessagesStepKnowsItsRole: it is asked before the message, which the cut then drops.
func TestAMessagesStepKnowsItsRole(t *testing.T) {
	p := play(model.Step{When: model.Trigger{Message: message("B", 1)}, Do: offLeader()})
	if got := p.e.Asks(&model.Message{Type: "B"}); !slices.Equal(got, []string{"leader"}) || len(p.e.Asks(&model.Message{Type: "A"})) != 0 {
		t.Errorf("asks %v", got)
	}
	p.leads(1, "n1")
	p.message(1, "B", "n1", "n2")
	p.want(t, "1 cut message", "0 drop across-cut")
}

// TestAStepWhoseRoleNobodyHasDoesNotBegin, and none follows it.
func TestAStepWhoseRoleNobodyHasDoesNotBegin(t *testing.T) {
	p := play(model.Step{Do: ofRole(crashed("leader"))}, model.Step{When: model.Trigger{Follows: model.FollowsEnd}, Do: crashed("n1")})
	p.leads(0)
	p.tick(1)
	p.step(model.Event{At: 2, Kind: model.EventStop})
	p.want(t, "1 ask leader time")
	if r := p.e.Result().Steps[0]; r.Lacked != "nobody had role leader" || r.By != "" {
		t.Errorf("%+v", r)
	}
}

// TestStepsBeginAndEndAsARoleMoves: changes is about who had it when the trigger was armed.
func TestStepsBeginAndEndAsARoleMoves(t *testing.T) {
	moves := &model.RoleTrigger{Name: "leader", Changes: true}
	p := play(model.Step{When: model.Trigger{Role: &model.RoleTrigger{Name: "leader", Is: "n2"}}, Do: ofRole(crashed("leader")), Until: model.Trigger{Role: moves}},
		model.Step{When: model.Trigger{At: 5, Role: moves}, Do: crashed("n3")})
	p.leads(1, "n1")
	p.leads(2, "n1", "n2") // it is known who has it: nobody asks
	p.want(t, "1 kill role")
	p.leads(3, "n2")
	p.leads(4)
	p.want(t)
	p.leads(6, "n3")
	p.tick(7)
	p.want(t, "1 start role", "2 kill role")
	if r := p.e.Result().Steps; fmt.Sprint(r[0].Roles) != "[{leader [n2]}]" || r[0].EndedBy != model.ReasonRole || r[1].By != model.ReasonRole {
		t.Errorf("%+v", r)
	}
}

// TestSenderAndReceiverAreOfTheMessageAtWhichAStepBegins, or of the one on which the message
// fault before it acted; nobody is asked who they are.
func TestSenderAndReceiverAreOfTheMessageAtWhichAStepBegins(t *testing.T) {
	of := func(role string, f model.Fault) model.Fault {
		f.Roles = []string{role}
		return f
	}
	power := model.Fault{Disk: &model.DiskFault{Kind: model.DiskPowerCut, Host: model.RoleReceiver}}
	lose := model.Fault{Message: &model.MessageFault{Kind: model.FaultLose, Lose: model.LoseMessage, Match: model.MessageMatch{Type: "C"}}}
	asked := []model.Step{
		{When: model.Trigger{Message: message("A", 2)}, Do: of(model.RoleSender, crashed(model.RoleSender))},
		{When: model.Trigger{Message: message("B", 1)}, Do: of(model.RoleReceiver, power)},
		{Do: lose},
		{When: model.Trigger{Follows: model.FollowsBegin}, Do: of(model.RoleSender, crashed(model.RoleSender))}}
	p := play(asked...)
	if got := p.e.Asks(&model.Message{Type: "A"}); len(got) > 0 {
		t.Errorf("it asks who has %v", got)
	}
	p.message(1, "A", "n1", "n2")
	p.message(2, "A", "n3", "n2")
	p.want(t, "0 pass open", "1 kill message", "0 pass open")
	p.message(3, "B", "n1", "n2")
	p.message(4, "C", "n2", "n3")
	p.want(t, "2 kill message", "0 pass open", "0 drop fault-lose", "4 kill step-before")
	r := p.e.Result().RunResult("s", model.Verdict{})
	hosts := func(s model.Scenario) string {
		return fmt.Sprintln(s.Steps[0].Do.Node.Host, s.Steps[1].Do.Disk.Host, s.Steps[3].Do.Node.Host)
	}
	as := model.Scenario{Steps: asked}.Played(r.Steps)
	for _, s := range []model.Scenario{p.e.Scenario(), as} {
		if got := hosts(s); got != "n3 n2 n2\n" {
			t.Errorf("it was %s", got)
		}
	}
	if got := hosts(explorer.Replay(as, r)); got != "sender receiver sender\n" {
		t.Errorf("a replay has %s", got)
	}
}
