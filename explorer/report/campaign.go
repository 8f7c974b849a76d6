package report

import (
	"cmp"
	_ "embed" // the page
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"

	"netsplit/model"
)

// CampaignInput is all that the page of a campaign is made from.
type CampaignInput struct {
	Campaign   model.Campaign
	Title      string // of the target
	Findings   []model.Finding
	Causes     []model.Cause      // of its failed runs, the costliest first
	Runs       []model.RunSummary // in the order in which they ended
	Map        model.PartitionMap
	Invariants []model.Invariant // that were explored
	// Known are the described failures of the target, for their titles.
	Known []model.KnownFailure
	// Others are searches of the same target and release with the same settings, the newest of
	// each other strategy.
	Others []Search
	// Reports gives a run's report, relative to this page, e.g.
	// "c-1-r0008/report.html"; a run without an entry gets no link.
	Reports map[string]string
	// Replays gives the command that repeats a run; a run without an entry gets
	// none.
	Replays map[string]string
}

//go:embed campaign.html
var campaignText string

var campaignPage = template.Must(template.New("campaign").Parse(campaignText))

type campaignView struct {
	CSP                           string
	Style                         template.CSS
	ID, Title, Word, Tone, Reason string
	Story                         []string
	Warnings                      []model.Warning
	Sections                      []findingSection
	Causes                        []causeView
	OtherCauses                   []string
	Shrunk                        []shrunkView // of a replay that leaves out steps
	Chart, Coverage, Cost         template.HTML
	Map                           *mapView
	Strategies                    *strategiesView
	CostRows, Facts               []fact
	Runs                          []runRow
	RunsOpen                      bool
	Invariants                    []invariantRow
}

type findingSection struct {
	Title, Note, Class string
	Findings           []findingView
}

type findingView struct {
	With                                              []findingView // of the same cause, which cost less
	Severity                                          string
	ID, Class, Word, Summary, Check, Signature, Quote string
	First, Seen, Clean, Replayed, Replay, Run, Report string
	Same                                              bool // Quote is that of the finding before
	Known                                             *knownView
	Detail                                            []detailView
}

type runRow struct {
	N                                    int
	Run, Report, Strategy, Isolate, What string
	Class, Word, Reason, Cut, Time       string
}

// Campaign writes the page of one campaign: one HTML page that needs nothing
// else, with links to the reports of its runs. It has no script: the daemon
// serves it where none runs. The error is the writer's or the template's.
func Campaign(w io.Writer, in CampaignInput) error {
	c := &in.Campaign
	v := campaignView{
		Style: template.CSS(styleText), CSP: policy(nil, []string{styleText}),
		ID: clean(c.ID), Title: clean(cmp.Or(in.Title, c.Spec.Target)),
	}
	all := in.Runs
	in.Runs = searchRuns(&in)
	v.Word, v.Tone = campaignWord(&in)
	v.Story = campaignStory(&in)
	if n := len(all) - len(in.Runs); n > 0 {
		v.Story = append(v.Story, fmt.Sprintf("Then %s left out steps of the smallest run of each cause.", model.Count(n, "run", "runs")))
	}
	v.Causes, v.OtherCauses = causeViews(&in)
	for i := range c.Shrunk {
		if c.Spec.Replay != "" {
			v.Shrunk = append(v.Shrunk, newShrunkView(&c.Shrunk[i]))
		}
	}
	for _, w := range c.Warnings {
		v.Warnings = append(v.Warnings, model.Warning{Text: clean(w.Text), Advice: clean(w.Advice)})
	}
	v.Sections = findingSections(&in)
	if len(v.Sections) > 0 {
		first := v.Sections[0].Findings[0]
		v.Reason = strings.TrimPrefix(first.Severity+": "+first.Summary, ": ")
		if v.Sections[0].Class == "documented" {
			v.Reason += " (the target's documentation admits it)"
		}
	}
	if len(v.Shrunk) == 0 {
		v.Chart = findingsChart(&in)
		v.Map, v.Coverage = newMapView(in.Map), coverageChart(&in)
		v.Strategies = newStrategiesView(&in)
	}
	v.Cost, v.CostRows = costSplit(all)
	v.Runs, v.RunsOpen = runRows(&in), len(in.Runs) <= openRuns
	v.Facts = append(campaignFacts(c), speedFacts(&in)...)
	for _, i := range in.Invariants {
		v.Invariants = append(v.Invariants, invariantRow{ID: clean(i.ID), Text: clean(i.String()),
			Support: fmt.Sprintf("%s of %s", model.Count(i.Support, "sample", "samples"), model.Count(i.Runs, "clean run", "clean runs")), Broken: clean(string(i.Status))})
	}
	if err := campaignPage.Execute(w, v); err != nil {
		return fmt.Errorf("write report of campaign %s: %w", c.ID, err)
	}
	return nil
}

func byCause(f model.Finding) string { return cmp.Or(f.CauseID, f.ID) }

// campaignWord is the outcome in a word, and its colour. A campaign in which
// no run passed is not good news.
func campaignWord(in *CampaignInput) (word, tone string) {
	broken, documented := 0, 0
	for _, f := range in.Findings {
		if f.Class == model.Documented {
			documented++
		} else {
			broken++
		}
	}
	of := ""
	if n := len(model.Together(in.Findings, byCause)); n < len(in.Findings) {
		of = " of " + model.Count(n, "cause", "causes")
	}
	passed, failed := 0, 0
	for _, r := range in.Runs {
		passed += b2i(r.Verdict.Value == model.VerdictPass)
		failed += b2i(r.Verdict.Value == model.VerdictFail)
	}
	switch {
	case in.Campaign.State == model.CampaignFailed:
		return "! Failed", "unknown"
	case in.Campaign.Spec.Replay != "" && in.Campaign.Spec.Shrink > 0:
		return shrinkWord(in.Campaign.Shrunk)
	case broken > 0:
		return "✕ " + model.Count(broken+documented, "finding", "findings") + of, "fail"
	case documented > 0:
		return "✕ " + model.Count(documented, "documented finding", "documented findings") + of, "vacuous"
	case slices.Contains([]model.CampaignState{model.CampaignRunning, model.CampaignQueued, model.CampaignPaused}, in.Campaign.State):
		return "… " + string(in.Campaign.State), "vacuous"
	case in.Campaign.Spec.Replay != "" && in.Campaign.Reproduced > 0:
		return fmt.Sprintf("✕ Failed again %d of %d times", in.Campaign.Reproduced, len(in.Runs)), "fail"
	case failed > 0: // of a replay
		return "✕ " + model.Count(failed, "run", "runs") + " failed otherwise", "fail"
	case passed == 0 || len(in.Campaign.Undecided) > 0:
		return "? Nothing judged", "unknown"
	case slices.ContainsFunc(in.Campaign.Warnings, func(w model.Warning) bool { return w.Kind == model.WarnUnjudged }):
		return "? No finding, and runs that could not be judged", "unknown"
	}
	return "✓ No finding", "pass"
}

// otherwise counts replays that failed in other ways than the original.
func otherwise(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(", %d in another way (see their pages)", n)
}

func campaignStory(in *CampaignInput) []string {
	c, s := &in.Campaign, &in.Campaign.Spec
	var out []string
	say := func(f string, a ...any) { out = append(out, fmt.Sprintf(f, a...)) }
	title := clean(cmp.Or(in.Title, s.Target))
	clear, fault, cut := 0, 0, 0
	count := map[model.VerdictValue]int{}
	for _, r := range in.Runs {
		if r.Scenario.Strategy == model.StrategyClean {
			clear++
		} else {
			fault++
		}
		cut += b2i(r.Proof != nil)
		count[r.Verdict.Value]++
	}
	if s.Replay != "" && s.Shrink > 0 {
		say("netsplit tried run %s of %s without its steps: %s.", clean(s.Replay), title, model.Count(len(in.Runs), "try", "tries"))
	} else if s.Replay != "" {
		say("netsplit repeated run %s of %s %s; %d failed as the original did%s.", clean(s.Replay), title, model.Count(c.Done, "time", "times"), c.Reproduced, otherwise(count[model.VerdictFail]-c.Reproduced))
	} else if s.Strategy == model.StrategyScripted {
		script := ""
		if len(in.Runs) > 0 {
			script = " " + clean(in.Runs[0].Scenario.Script)
		}
		say("Script%s was played on %s %s, %d of them cut.", script, title, model.Count(len(in.Runs), "time", "times"), cut)
	} else if s.Scenario != nil {
		say("The given scenario ran on %s %s, %d of them cut.", title, model.Count(len(in.Runs), "time", "times"), cut)
	} else {
		ofThemCut := fmt.Sprintf(", %d of them cut", cut)
		if s.Strategy == model.StrategySequences && cut == 0 {
			ofThemCut = "" // it had other faults
		}
		say("netsplit searched %s with strategy %s and seed %d: %s, then %s%s.", title, clean(string(s.Strategy)), s.Seed,
			model.Count(clear, "clean run", "clean runs"), model.Count(fault, "fault run", "fault runs"), ofThemCut)
	}
	var words []string
	for _, v := range []model.VerdictValue{model.VerdictPass, model.VerdictFail, model.VerdictUnknown, model.VerdictVacuous} {
		if count[v] > 0 {
			words = append(words, fmt.Sprintf("%d %s", count[v], v))
		}
	}
	if len(words) > 0 {
		say("Verdicts: %s.", list(words))
	}
	wanted, dropped, leaked := 0, 0, 0
	for _, r := range in.Runs {
		if p := r.Proof; p != nil {
			wanted, dropped, leaked = wanted+p.Wanted, dropped+p.Dropped, leaked+p.Leaked
		}
	}
	if cut > 0 {
		say("Across the cuts %s wanted to pass, %d were dropped and %d leaked.", model.Count(wanted, "packet", "packets"), dropped, leaked)
	}
	waited, vain := 0, 0
	for i := range in.Runs {
		waits, came := healing(&in.Runs[i])
		waited, vain = waited+b2i(waits), vain+b2i(waits && !came)
	}
	if vain > 0 {
		say("%d of %s waited for a message to heal at, but none came: they ended at the longest time allowed, or with the workload.", vain, model.Count(waited, "cut", "cuts"))
	}
	for _, why := range c.Undecided {
		say("No fault run could be judged; %s.", strings.TrimSuffix(clean(why), "."))
	}
	if c.Reason != "" {
		say("The campaign is %s: %s.", clean(string(c.State)), strings.TrimSuffix(clean(c.Reason), "."))
	}
	return out
}

func findingSections(in *CampaignInput) []findingSection {
	secs := []findingSection{
		{Title: "Broken promises", Note: "The documentation promises otherwise, or, where none is quoted, the target file or the script says so.", Class: "broken"},
		{Title: "Beyond the stated bound", Note: "The documentation admits such a failure, but you stated a bound and this goes beyond it.", Class: "bound"},
		{Title: "Documented", Note: "The target's documentation admits these; here are the amounts.", Class: "documented"},
	}
	for _, together := range model.Together(costliest(in.Findings), byCause) {
		v := newFindingView(in, together[0])
		for _, f := range together[1:] {
			v.With = append(v.With, newFindingView(in, f))
		}
		i := map[model.FailureClass]int{model.BrokenBound: 1, model.Documented: 2}[together[0].Class]
		if n := len(secs[i].Findings); n > 0 {
			v.Same = v.Quote != "" && secs[i].Findings[n-1].Quote == v.Quote
		}
		secs[i].Findings = append(secs[i].Findings, v)
	}
	return slices.DeleteFunc(secs, func(s findingSection) bool { return len(s.Findings) == 0 })
}

func costliest(findings []model.Finding) []model.Finding {
	fs := slices.Clone(findings)
	slices.SortStableFunc(fs, func(a, b model.Finding) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.FirstAfter, b.FirstAfter), cmp.Compare(a.ID, b.ID))
	})
	return fs
}

func newFindingView(in *CampaignInput, f model.Finding) findingView {
	class, word := failureClass(f.Class)
	v := findingView{ID: clean(f.ID), Class: class, Word: word, Severity: clean(string(f.Severity)), Summary: clean(f.Failure.Summary), Check: clean(f.Failure.Check),
		Signature: clean(f.Failure.Signature), Quote: clean(f.Failure.Quote), Run: clean(f.Run),
		Report: in.Reports[f.Run], Replay: clean(in.Replays[f.Run]), Known: known(f.Failure, in.Known), Detail: details(f.Failure.Detail)}
	v.First = fmt.Sprintf("first seen after %s", model.Count(f.FirstAfter, "run", "runs"))
	v.Seen = fmt.Sprintf("in %s", model.Count(len(f.Runs), "run", "runs"))
	v.Clean = "only where a fault acted"
	if f.Clean {
		v.Clean = "also without any fault"
	}
	if f.Replays > 0 {
		v.Replayed = fmt.Sprintf("replayed %d of %d", f.Reproduced, f.Replays)
	}
	return v
}

// healing says whether a run's cut waited for a message to heal at, and whether
// one came. Of a run that could not be judged nobody knows why its cut ended.
func healing(r *model.RunSummary) (waits, came bool) {
	cut := r.Scenario.Cut()
	return r.Verdict.Value != model.VerdictUnknown && (cut.Until.Class != nil || cut.Until.Unseen != nil) && r.Result.Reached, r.Result.HealClass != nil
}

func runRows(in *CampaignInput) []runRow {
	var out []runRow
	for i, r := range in.Runs {
		cut := r.Scenario.Cut()
		row := runRow{N: i + 1, Run: clean(strings.TrimPrefix(r.Run, in.Campaign.ID+"-")), Report: in.Reports[r.Run], Strategy: clean(string(r.Scenario.Strategy)),
			Isolate: clean(string(cut.Do.Isolate)), Class: verdictClass(r.Verdict), Word: verdictWord(r.Verdict), Reason: clean(r.Verdict.Reason)}
		if w := cut.When.State; w != nil && w.State != nil {
			st := *w.State
			if r.Result.CutState != nil {
				st = *r.Result.CutState
			}
			row.What = stateWords(&w.Invariant, st)
		}
		row.Cut = "none"
		if p := r.Proof; p != nil {
			row.Cut = "not healed by a decision"
			if p.HealAt > p.CutAt {
				row.Cut = span(p.HealAt - p.CutAt)
			}
			row.Cut += fmt.Sprintf(", %d of %d dropped", p.Dropped, p.Wanted)
			if waits, came := healing(&r); waits && !came {
				row.Cut += ", no message to heal at arrived"
			}
			if p.Leaked > 0 {
				row.Cut += fmt.Sprintf(", %d LEAKED", p.Leaked)
			}
		} else if r.Scenario.Cuts() {
			row.Cut = "its moment never came"
		}
		row.Time = span(took(r.Cost))
		out = append(out, row)
	}
	return out
}

func campaignFacts(c *model.Campaign) []fact {
	s := c.Spec
	var out []fact
	add := func(n, f string, a ...any) { out = append(out, fact{n, clean(fmt.Sprintf(f, a...))}) }
	add("Campaign", "%s, %s", c.ID, c.State)
	add("Runs", "%d of at most %d", c.Done, c.Planned)
	if s.Budget > 0 {
		add("Budget", "%s of wall time", span(s.Budget))
	}
	if !c.Created.IsZero() {
		when := c.Created.UTC().Format("2006-01-02 15:04:05 UTC")
		if c.Ended.After(c.Created) {
			when += ", took " + span(c.Ended.Sub(c.Created).Round(time.Millisecond))
		}
		add("Started", "%s", when)
	}
	add("Labs at once", "%d", s.Labs)
	if s.Effect != "" {
		add("Effect of a cut", "%s", s.Effect)
	}
	if s.Gate != "" {
		add("Gate", "%s", gateWords(string(s.Gate)))
	}
	add("Seed", "%d", s.Seed)
	if s.MaxLost >= 0 {
		add("Bound on losses", "%d operations", s.MaxLost)
	}
	if s.MaxWindow >= 0 {
		add("Bound on the window of losses", "%s", span(s.MaxWindow))
	}
	var names []string
	for k := range s.Args {
		names = append(names, k)
	}
	slices.Sort(names)
	for _, k := range names {
		add("Setting "+clean(k), "%s", s.Args[k])
	}
	return out
}

// speedFacts say which release ran, how many runs an hour held, and what the
// probes cost.
func speedFacts(in *CampaignInput) []fact {
	var out []fact
	for _, of := range []struct {
		name string
		get  func(model.RunSummary) string
	}{
		{"Release", func(r model.RunSummary) string { return r.Release }},
		{"Version", func(r model.RunSummary) string { return r.TargetVersion }},
	} {
		var said []string
		for _, r := range in.Runs {
			if s := clean(of.get(r)); s != "" && !slices.Contains(said, s) {
				said = append(said, s)
			}
		}
		if len(said) > 0 {
			slices.Sort(said)
			out = append(out, fact{of.name, strings.Join(said, ", ")})
		}
	}
	c := &in.Campaign
	if wall := c.Ended.Sub(c.Created); !c.Created.IsZero() && wall > 0 && len(in.Runs) > 0 {
		out = append(out, fact{"Runs per hour", fmt.Sprintf("%.1f with %s", float64(len(in.Runs))/wall.Hours(), model.Count(max(1, c.Spec.Labs), "lab", "labs"))})
	}
	if s := probeWords(in.Runs); s != "" {
		out = append(out, fact{"Probes", s})
	}
	return out
}

func costSplit(runs []model.RunSummary) (template.HTML, []fact) {
	parts := make([]time.Duration, len(costNames))
	var sum time.Duration
	for _, r := range runs {
		for i, d := range costParts(r.Cost) {
			parts[i] += d
			sum += d
		}
	}
	if sum <= 0 {
		return "", nil
	}
	d := &drawing{}
	var rows []fact
	x := 4.0
	for i, p := range parts {
		if p <= 0 {
			continue
		}
		w := float64(p) / float64(sum) * (runWidth - 8)
		share := fmt.Sprintf("%.1f %%", 100*float64(p)/float64(sum))
		d.open("g")
		d.title(costNames[i] + ": " + span(p) + ", " + share)
		d.rect(fmt.Sprintf("cost-%d", i), x, 4, max(1, w-1), 26)
		if label := costNames[i] + " " + share; width(label, 12) < w-12 {
			d.text("legend", x+8, 21, label)
		}
		d.close("g")
		x += w
		rows = append(rows, fact{costNames[i], span(p) + ", " + share})
	}
	return d.done(runWidth, 34, "Where the time went", "wide"), rows
}
