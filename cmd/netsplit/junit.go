package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/google/renameio/v2"
	"github.com/jstemmer/go-junit-report/v2/junit"

	"netsplit/api/wire"
	"netsplit/model"
)

// writeJUnit writes a test suite with a test case for each run. A case is named after the
// run's scenario, so that CI knows it again where the same campaign is made again. A failure that counts fails
// it, unknown is an error, vacuous and cut short are skipped. If the campaign failed or could
// not be judged, that is a test case, too: no report is green then.
func (f *ciFlags) writeJUnit(m made, runs []wire.RunRow, outcome error) error {
	suite := junit.Testsuite{Name: "netsplit " + madeOn(m.campaign.Spec)}
	suite.SetTimestamp(m.campaign.Created)
	suite.Time = seconds(m.campaign.Created, m.campaign.Ended)
	suite.AddProperty("campaign", m.campaign.ID)
	suite.AddProperty("seed", fmt.Sprint(m.campaign.Spec.Seed))
	suite.AddProperty("netsplit", version)
	seen := map[string]int{}
	for i := range runs {
		c := f.testcase(m, &runs[i])
		if seen[c.Name]++; seen[c.Name] > 1 {
			c.Name += fmt.Sprintf(" #%d", seen[c.Name])
		}
		suite.AddTestcase(c)
	}
	if exit := (*exitError)(nil); outcome != nil && (!errors.As(outcome, &exit) || exit.code != exitFindings) {
		why := cmp.Or(outcome.Error(), "the campaign was interrupted")
		suite.AddTestcase(junit.Testcase{Name: "campaign", Classname: "netsplit." + madeOn(m.campaign.Spec), Time: suite.Time,
			Error: &junit.Result{Message: model.OneLine(why), Type: m.campaign.State, Data: characters(why)}})
	}
	var all junit.Testsuites
	all.AddSuite(suite)
	var b bytes.Buffer
	if err := all.WriteXML(&b); err != nil {
		return fmt.Errorf("JUnit report: %w", err)
	}
	if err := renameio.WriteFile(f.junit, append([]byte("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"), b.Bytes()...), outputMode); err != nil {
		return fmt.Errorf("JUnit report: %w", err)
	}
	return nil
}

func (f *ciFlags) testcase(m made, r *wire.RunRow) junit.Testcase {
	name := r.Scenario.Strategy
	if r.Scenario.Strategy != string(model.StrategyClean) { // of these the seed differs, and nothing else
		name = strings.TrimSpace(name + " " + r.Scenario.ID)
	}
	if f := m.campaign.Spec.Script; f != nil {
		name += " " + f.Name
	}
	if r.Scenario.Isolate != "" {
		name += " isolates " + r.Scenario.Isolate
	}
	out := junit.Testcase{Name: name, Classname: "netsplit." + r.Target, Time: seconds(r.Started, r.Ended)}
	text := fmt.Sprintf("run %s: %s\n", r.ID, r.Verdict.Reason)
	for _, x := range r.Verdict.Failures {
		note := ""
		if f.known[knownKey(r.Target, x)] {
			note = ", in the baseline"
		}
		text += fmt.Sprintf("%s%s\n  signature: %s\n", headline(x), note, x.Signature)
	}
	text += fmt.Sprintf("replay: %s\nreport: %s\n", m.replay(r.ID), m.report(r.Campaign, r.ID))
	result := &junit.Result{Message: model.OneLine(r.Verdict.Reason), Type: r.Verdict.Value, Data: characters(text)}
	switch x := f.costliest(r); {
	case x != nil:
		result.Message, result.Type = model.OneLine(x.Summary), x.Check
		out.Failure = result
	case r.CutShort: // its scenario is run again, or the campaign says why not
		out.Skipped = result
	case r.Verdict.Value == string(model.VerdictUnknown):
		out.Error = result
	case r.Verdict.Value == string(model.VerdictVacuous):
		out.Skipped = result
	default:
		out.SystemOut = &junit.Output{Data: result.Data}
	}
	return out
}

// characters replaces what no XML 1.0 document may have (its section 2.2): a target chooses
// what stands in messages and log lines.
func characters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || r == 0xFFFE || r == 0xFFFF {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(s, string(unicode.ReplacementChar)))
}
