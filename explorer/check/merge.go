package check

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"netsplit/model"
)

// FindingID is the id of the finding with this signature in a campaign.
func FindingID(campaign, signature string) string {
	return hashID("f-", campaign, signature)
}

func hashID(prefix, campaign, of string) string {
	h := sha256.Sum256([]byte(campaign + "\x00" + of))
	return prefix + hex.EncodeToString(h[:5])
}

// Merge folds the failures of a campaign's runs into distinct findings: equal
// signatures are one. Runs are taken in the order of their ids whatever order
// they come in. Replays are left out. A finding has the cause that it had in every
// run; one that had several stands for itself. The costliest are first
// (SortFindings).
func Merge(campaign string, runs []model.RunSummary) []model.Finding {
	runs = slices.Clone(runs)
	slices.SortStableFunc(runs, func(a, b model.RunSummary) int { return model.CompareRuns(a.Run, b.Run) })
	by := map[string]*model.Finding{}
	var out []*model.Finding
	n := 0
	for _, r := range runs {
		if r.ReplayOf != "" {
			continue
		}
		n++
		for _, f := range r.Verdict.Failures {
			have := by[f.Signature]
			cause := CauseOf(f)
			if have == nil {
				have = &model.Finding{
					ID: FindingID(campaign, f.Signature), Campaign: campaign, Target: r.Target,
					Class: f.Class, Cause: cause, Failure: f, Run: r.Run, FirstAfter: n,
				}
				by[f.Signature] = have
				out = append(out, have)
			}
			if have.Cause != cause {
				have.Cause = ownCause(f)
			}
			if have.Failure.BeforeCut && !f.BeforeCut && r.Proof != nil { // the first run that a replay can show it by
				f.Known, f.KnownBy = cmp.Or(f.Known, have.Failure.Known), cmp.Or(f.KnownBy, have.Failure.KnownBy)
				have.Failure, have.Run, have.FirstAfter = f, r.Run, n
			}
			if have.Failure.Known == "" {
				have.Failure.Known, have.Failure.KnownBy = f.Known, f.KnownBy
			}
			if classRank(f.Class) < classRank(have.Class) {
				have.Class = f.Class
			}
			if n := len(have.Runs); n == 0 || have.Runs[n-1] != r.Run {
				have.Runs = append(have.Runs, r.Run)
			}
			acted := r.Proof != nil || r.Result.Reached || slices.ContainsFunc(r.Result.Steps, func(s model.StepResult) bool { return s.By != "" })
			have.Clean = have.Clean || r.Scenario.Strategy == model.StrategyClean || !acted || f.BeforeCut
		}
	}
	findings := make([]model.Finding, len(out))
	for i, f := range out {
		Complete(f)
		findings[i] = *f
	}
	SortFindings(findings)
	return findings
}
