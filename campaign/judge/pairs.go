package judge

import (
	"fmt"
	"strings"

	"netsplit/inference/invariant"
	"netsplit/model"
)

// Pairs mines the clean runs below dir, a campaign's directory, again, and says of each pair of
// variables why it is an invariant or not. about narrows them to pairs that contain this text.
func Pairs(dir, about string) (out model.MinedPairs, err error) {
	r, err := Remine(dir)
	if err != nil {
		return out, err
	}
	out.CleanRuns, out.Torn = len(r.Runs), r.Torn
	concerns := func(a, b model.VarRef) bool {
		return strings.Contains(a.String(), about) || strings.Contains(b.String(), about)
	}
	for _, k := range r.Kept {
		if !concerns(k.A, k.B) {
			continue
		}
		out.Kept++
		out.Points += len(k.Points)
		p := model.MinedPair{A: k.A, B: k.B, Kept: model.PairKeptYes, Why: fmt.Sprintf("equal in %d samples of %d runs, %d changes, at %d message types; by chance with p %.1g",
			k.Support, k.Runs, k.Changes, len(k.Points), k.Chance)}
		if k.Chance > invariant.DefaultMaxChance {
			p.Kept = model.PairKeptWeak
		}
		if k.Like > 0 {
			p.Why += fmt.Sprintf(", together with %d like it, on nodes with the same processes", k.Like)
		}
		out.Pairs = append(out.Pairs, p)
	}
	for _, x := range r.Rejected {
		if concerns(x.A, x.B) {
			out.Rejected++
			out.Scarce += Scarce([]invariant.Rejected{x})
			out.Pairs = append(out.Pairs, model.MinedPair{A: x.A, B: x.B, Kept: model.PairKeptNo, Why: lack(x, len(r.Runs))})
		}
	}
	return out, nil
}

// lack says in words what a pair lacks.
func lack(x invariant.Rejected, runs int) string {
	at := fmt.Sprintf("at %s %s → %s", x.Point.Type, x.Point.From, x.Point.To)
	switch x.Lack {
	case invariant.LackAgreement:
		v := x.Counter.Values
		return fmt.Sprintf("differ in %d of %d samples %s, first in %s, message %d: %q and %q", x.Differ, x.Differ+x.Support, at, x.Counter.Run, x.Counter.Message, v[0].Value, v[1].Value)
	case invariant.LackRuns:
		return fmt.Sprintf("sampled in %d of %d runs %s; %d are needed", x.Runs, runs, at, invariant.DefaultMinRuns)
	case invariant.LackSupport:
		return fmt.Sprintf("only %d samples %s; %d are needed", x.Support, at, invariant.DefaultMinSupport)
	case invariant.LackChanges:
		return fmt.Sprintf("always equal %s, but with only %d changes; %d are needed, in two runs, because a constant shows no agreement", at, x.Changes, invariant.DefaultMinChanges)
	}
	return fmt.Sprintf("always equal %s, but with only %d changes that may be chance (p %.1g after correction)", at, x.Changes, x.Chance)
}
