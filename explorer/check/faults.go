package check

import (
	"cmp"
	"fmt"
	"slices"

	"netsplit/model"
)

// faultsVerdict says why the message faults of a run make it vacuous, and why
// what they did is not proved; "" if they do not, and if it is.
func faultsVerdict(r *Record) (idle, unproved string) {
	for i := range r.Scenario.Steps {
		f := r.Scenario.Steps[i].Do.Message
		if f == nil {
			continue
		}
		n := slices.IndexFunc(r.Faults, func(p model.FaultProof) bool { return p.Fault == i+1 })
		if n < 0 {
			return "", fmt.Sprintf("the record does not say what message fault %d (%s) did", i+1, f)
		}
		p := &r.Faults[n]
		why := ""
		switch {
		case p.Acted == 0 && p.Taken > 0:
			why = "never had its turn: another fault had the packet"
		case p.Acted == 0 && p.Met > 0:
			why = fmt.Sprintf("met only %d message(s)", p.Met)
		case p.Acted == 0:
			why = "never met its message"
			if came := neverCame(r.Heard, &f.Match); came != "" {
				why += ": " + came
			}
		case f.Kind == model.FaultReorder && p.InOrder+p.Cut >= p.Acted:
			why = "changed no order: nothing came that could have overtaken the message"
		case f.Kind == model.FaultDuplicate && p.Copies == 0:
			why = "sent no copy: the workload had ended, or a cut was across"
		}
		if why != "" && idle == "" {
			idle = fmt.Sprintf("message fault %d (%s) %s", i+1, f, why)
		}
		switch {
		case unproved != "" || p.Acted == 0:
		case !p.Known || p.Checked == 0:
			unproved = fmt.Sprintf("what message fault %d (%s) did is not proved: %s", i+1, f, cmp.Or(p.Trouble, model.NoneChecked))
		case p.Wrong > 0:
			unproved = fmt.Sprintf("message fault %d (%s) did something else than was decided, %d time(s): %s", i+1, f, p.Wrong, p.Trouble)
		}
	}
	return idle, unproved
}

// faultsHeld counts what faults did, for a run that passes.
func faultsHeld(ps []model.FaultProof) string {
	acted, late, checked, byPlace := 0, 0, 0, 0
	for i := range ps {
		acted, late, checked, byPlace = acted+ps[i].Acted, late+ps[i].Late, checked+ps[i].Checked, byPlace+ps[i].ByPlace
	}
	s := fmt.Sprintf("message faults acted on %d packet(s), as counted at the receiving hosts for %d of them", acted, checked)
	if late > 0 {
		s += fmt.Sprintf("; %d went on more than %v late", late, model.FaultSlack)
	}
	if byPlace > 0 {
		s += fmt.Sprintf("; %d were taken for the answer as the next message back: no answer of their protocol says what it answers", byPlace)
	}
	return s
}
