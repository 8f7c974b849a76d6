package report

import (
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"
	"time"

	"netsplit/model"
)

// Search is another search of the same target, beside which a campaign is shown.
type Search struct {
	Campaign model.Campaign
	Findings []model.Finding
	Map      model.PartitionMap
	Judged   int    // fault runs
	Report   string // relative to the page; "": none
}

// strategyRow is a search in the table of strategies.
type strategyRow struct {
	Swatch                                   template.HTML
	Name, Campaign, Report, Runs, Judged     string
	Broken, Documented, First, Cells, Length string
	This                                     bool
}

type strategiesView struct {
	Rows   []strategyRow
	Charts []template.HTML
}

// maxStrategies bounds the searches side by side: style.css has a line for each.
const maxStrategies = 6

// newStrategiesView puts this search beside those with other strategies; nil if there is none.
func newStrategiesView(in *CampaignInput) *strategiesView {
	if len(in.Others) == 0 {
		return nil
	}
	this := Search{Campaign: in.Campaign, Findings: in.Findings, Map: in.Map}
	for _, r := range in.Runs {
		if v := r.Verdict.Value; r.Scenario.Strategy != model.StrategyClean && (v == model.VerdictPass || v == model.VerdictFail) {
			this.Judged++
		}
	}
	all := append([]Search{this}, in.Others[:min(len(in.Others), maxStrategies-1)]...)
	v := &strategiesView{}
	runs, findings, cells := 1, 1, 1
	for i := range all {
		s := &all[i]
		c := &s.Campaign
		broken, met := brokenBy(s), len(metBy(s))
		row := strategyRow{Swatch: swatch(i), Name: clean(strategyName(&c.Spec)), Campaign: clean(c.ID), Report: s.Report, This: i == 0, Runs: fmt.Sprint(c.Done), Judged: fmt.Sprint(s.Judged),
			Broken: fmt.Sprint(len(broken)), Documented: fmt.Sprint(len(s.Findings) - len(broken)), First: "–", Cells: fmt.Sprintf("%d of %d", met, len(s.Map.Cells)), Length: "–"}
		if len(broken) > 0 {
			row.First = fmt.Sprintf("run %d", slices.Min(broken))
		}
		if c.Ended.After(c.Created) {
			row.Length = span((c.Ended.Sub(c.Created) - c.Idle).Round(time.Second))
		}
		v.Rows = append(v.Rows, row)
		runs, findings, cells = max(runs, c.Done), max(findings, len(broken)), max(cells, met)
	}
	v.Charts = []template.HTML{
		strategyChart(all, runs, findings, "findings that are not documented, by run", brokenBy),
		strategyChart(all, runs, cells, "cells of the partition map that a fault has met, by run", metBy),
	}
	return v
}

// strategyName is the strategy with what narrows its scenarios.
func strategyName(s *model.CampaignSpec) string {
	parts := []string{string(s.Strategy)}
	if s.Depth > 0 {
		parts = append(parts, fmt.Sprintf("depth %d", s.Depth))
	}
	for _, f := range s.Faults {
		parts = append(parts, string(f))
	}
	if s.Prioritised {
		parts = append(parts, "prioritised")
	}
	if s.Policies != nil {
		parts = append(parts, "policies")
	}
	for _, key := range slices.Sorted(maps.Keys(s.Only)) {
		parts = append(parts, fmt.Sprintf("only %s %s", key, strings.Join(s.Only[key], ", ")))
	}
	if s.Effect != "" && s.Effect != model.Drop {
		parts = append(parts, string(s.Effect))
	}
	return strings.Join(parts, ", ")
}

// firstMet is, for each cell of a map that a fault met, the number of the first run in which one
// did.
func firstMet(m model.PartitionMap, number func(run string) int) (out []int) {
	for _, c := range m.Cells {
		first := 0
		for _, o := range c.Outcomes {
			if n := number(o.First); n > 0 && (first == 0 || n < first) {
				first = n
			}
		}
		if first > 0 {
			out = append(out, first)
		}
	}
	return out
}

// brokenBy is, for each finding that is not documented, the number of the run after which it was
// first seen.
func brokenBy(s *Search) (out []int) {
	for _, f := range s.Findings {
		if f.Class != model.Documented {
			out = append(out, max(f.FirstAfter, 1))
		}
	}
	return out
}

func metBy(s *Search) []int { return firstMet(s.Map, model.RunNumber) }

// strategyChart draws how many there were of something up to each run, a line for each search.
func strategyChart(all []Search, runs, highest int, title string, of func(*Search) []int) template.HTML {
	d := newRunChart(runs, highest)
	for i := range slices.Backward(all) { // this search on top
		counts := make([]int, runs+1)
		for _, n := range of(&all[i]) {
			counts[min(n, runs)]++
		}
		d.upTo(fmt.Sprintf("step s%d", i), counts, highest, max(1, all[i].Campaign.Done))
	}
	d.numbers(chartBottom + 20)
	d.text("legend", chartLeft, 12, title)
	return d.done(runWidth, chartBottom+28, title, "wide")
}

func swatch(i int) template.HTML {
	var d drawing
	d.tag("path", "class", fmt.Sprintf("step s%d", i), "d", "M0 6H30")
	return d.done(30, 12, "", "swatch")
}
