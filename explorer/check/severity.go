package check

import (
	"cmp"
	"slices"
	"strings"

	"netsplit/model"
)

// severities in the order of what they cost, the costliest first.
var severities = []model.Severity{model.SeverityData, model.SeveritySplitBrain, model.SeverityNotRecovered, model.SeverityCrash, model.SeverityError, model.SeverityLog}

// costs gives each check the severity of what it reports. Where a check reports
// failures of several severities, those whose signature contains a word of others
// have that one.
var costs = map[string]struct {
	severity model.Severity
	others   map[string]model.Severity
}{
	"lost-acknowledged-writes": {severity: model.SeverityData},
	"linearizable":             {severity: model.SeverityData},
	"stale-read":               {severity: model.SeverityData},
	"copies-equal":             {severity: model.SeverityData},
	"gone":                     {severity: model.SeverityData},
	"double":                   {severity: model.SeverityData},
	"two-leaders":              {severity: model.SeveritySplitBrain},
	"leaders":                  {model.SeveritySplitBrain, map[string]model.Severity{"fewer than": model.SeverityNotRecovered}},
	"resurrected":              {severity: model.SeverityNotRecovered},
	"recovery":                 {severity: model.SeverityNotRecovered},
	"not-finished":             {model.SeverityNotRecovered, map[string]model.Severity{"is lost": model.SeverityData}},
	"workload-hang":            {model.SeverityError, map[string]model.Severity{"did not end": model.SeverityNotRecovered}},
	"process-died":             {severity: model.SeverityCrash},
	"operations":               {severity: model.SeverityError},
	Script:                     {severity: model.SeverityError},
	"fatal-log":                {severity: model.SeverityLog},
}

// SeverityOf is what a failure costs a user. What is not known to cost more is an
// error.
func SeverityOf(f model.Failure) model.Severity {
	if f.Severity != "" {
		return f.Severity
	}
	c, ok := costs[f.Check]
	if !ok {
		return model.SeverityError
	}
	for _, word := range sortedKeys(c.others) {
		if strings.Contains(f.Signature, word) {
			return c.others[word]
		}
	}
	return c.severity
}

// Rank orders failures, from 1: what the documentation promises otherwise before
// what it admits, and then what costs a user more before what costs less.
func Rank(class model.FailureClass, s model.Severity) int {
	rank := 1 + max(0, slices.Index(severities, s))
	if class == model.Documented {
		rank += len(severities)
	}
	return rank
}

// classRank puts what matters most first.
func classRank(c model.FailureClass) int {
	return slices.Index([]model.FailureClass{model.Broken, model.BrokenBound, model.Documented}, c)
}

// first are the checks whose failures come before others of the same rank, in this order; of one
// check the largest comes first.
var first = []string{"lost-acknowledged-writes", "gone", "double"}

func compareFailures(a, b model.Failure) int {
	place := func(f model.Failure) int {
		if i := slices.Index(first, f.Check); i >= 0 {
			return i
		}
		return len(first)
	}
	by := cmp.Or(cmp.Compare(Rank(a.Class, SeverityOf(a)), Rank(b.Class, SeverityOf(b))), cmp.Compare(classRank(a.Class), classRank(b.Class)), cmp.Compare(place(a), place(b)))
	if by == 0 && place(a) < len(first) {
		by = cmp.Compare(b.Amount, a.Amount)
	}
	return cmp.Or(by, strings.Compare(a.Signature, b.Signature), strings.Compare(a.Summary, b.Summary))
}

// SortFindings puts the costliest first, then what was found first.
func SortFindings(fs []model.Finding) {
	slices.SortStableFunc(fs, func(a, b model.Finding) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(classRank(a.Class), classRank(b.Class)),
			cmp.Compare(a.FirstAfter, b.FirstAfter), compareFailures(a.Failure, b.Failure))
	})
}
