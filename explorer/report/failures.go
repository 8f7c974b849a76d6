package report

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"netsplit/model"
)

// failureView is one failure as the page shows it.
type failureView struct {
	Class, Word, Severity            string
	Check, Signature, Summary, Quote string
	Amount                           int
	Same                             bool // Quote is that of the failure before
	Brought                          bool // its cause is that of the failure before
	Known                            *knownView
	Detail                           []detailView
}

// knownView is the described failure that a failure was recognised as.
type knownView struct {
	ID, Title string
	Symptom   bool // by its symptom alone
}

// detailView is a line of details, with the messages that it links to and the lines
// that continue it.
type detailView struct {
	Text     string
	Messages []string // numbers
	Trace    string
}

// excuseRow says of some operations why they had a right to fail.
type excuseRow struct {
	F, Error, Node, Why, When string
	Count                     int
}

// lineRow is a log line that a disturbance allowed.
type lineRow struct {
	Host, Process, Line, Why, When string
	Count                          int
}

func failures(in *Input) []failureView {
	var out []failureView
	last := ""
	for _, together := range model.Together(in.Summary.Verdict.Failures, func(f model.Failure) string { return cmp.Or(f.Cause, f.Signature) }) {
		for i, f := range together {
			c, w := failureClass(f.Class)
			out = append(out, failureView{c, w, clean(string(f.Severity)), clean(f.Check), clean(f.Signature), sentence(clean(f.Summary)), clean(f.Quote), f.Amount,
				f.Quote != "" && f.Quote == last, i > 0, known(f, in.Known), details(f.Detail)})
			last = f.Quote
		}
	}
	return out
}

// known looks up the title of a described failure; nil: it is none.
func known(f model.Failure, all []model.KnownFailure) *knownView {
	if f.Known == "" {
		return nil
	}
	v := &knownView{ID: clean(f.Known), Symptom: f.KnownBy == model.KnownBySymptom}
	if i := slices.IndexFunc(all, func(k model.KnownFailure) bool { return k.ID == f.Known }); i >= 0 {
		v.Title = clean(all[i].Title)
	}
	return v
}

// linked is a detail that ends in the messages it is about (check of relations).
var linked = regexp.MustCompile(`^(.*) \[(m[0-9]+(?: m[0-9]+)*)\]$`)

// details joins the lines of a stack trace, which are indented, to the line
// that they continue.
func details(in []string) []detailView {
	var out []detailView
	for _, s := range in {
		if rest := strings.TrimLeft(s, " \t"); len(out) > 0 && len(s)-len(rest) >= 4 {
			last := &out[len(out)-1]
			last.Trace += clean(rest) + "\n"
			continue
		}
		d := detailView{Text: clean(s)}
		if m := linked.FindStringSubmatch(s); m != nil {
			d.Text, d.Messages = clean(m[1]), strings.Split(m[2][1:], " m")
		}
		out = append(out, d)
	}
	return out
}

func excuseRows(in []model.Excuse) []excuseRow {
	var out []excuseRow
	for _, e := range in {
		out = append(out, excuseRow{F: clean(e.F), Error: clean(e.Error), Node: clean(string(e.Node)), Why: clean(e.Why), Count: e.Count, When: when(e.First, e.Last)})
	}
	return out
}

func lineRows(in []model.ExcusedLine) []lineRow {
	var out []lineRow
	for _, l := range in {
		out = append(out, lineRow{Host: clean(string(l.Host)), Process: clean(l.Process), Line: clean(l.Line), Why: clean(l.Why), Count: l.Count, When: when(l.First, l.Last)})
	}
	return out
}

// when is one moment, or the first and the last of several.
func when(first, last time.Duration) string {
	if last > first {
		return at(first) + " to " + at(last)
	}
	return at(first)
}

// maxActions bounds the actions that are told one by one.
const maxActions = 12

// longAction is how long an action takes of which the beginning is told, too: a
// server that is stopped serves nobody from then on.
const longAction = 100 * time.Millisecond

// byStep says that a step of the scenario asked for an action, and not a workload.
func byStep(s *model.Scenario, a *model.NodeAction) bool {
	return slices.ContainsFunc(s.Steps, func(st model.Step) bool {
		if f := st.Do.Disk; f != nil {
			return f.Of(a.Host, a.Process) && (a.Verb == model.NodeKill || a.Verb == model.NodeStart)
		}
		f := st.Do.Node
		return f != nil && f.Host == a.Host && (a.Verb == f.Verb || a.Verb == f.Undo()) && (f.Process == "" || f.Process == a.Process)
	})
}

func actionsStory(in *Input) (out []string) {
	for _, who := range []struct {
		name string
		step bool
	}{{"Steps", true}, {"Workloads", false}} {
		out = append(out, actionsBy(in, who.name, who.step)...)
	}
	return out
}

func actionsBy(in *Input, who string, step bool) []string {
	var did []string
	n := 0
	for _, e := range in.Events {
		if e.Kind == model.EventDisk && e.Disk != nil && step {
			if n++; n <= maxActions {
				did = append(did, damageWords(e.Disk)+" at "+at(e.At))
			}
			continue
		}
		if e.Kind != model.EventNode || e.Node == nil || byStep(&in.Summary.Scenario, e.Node) != step {
			continue
		}
		verb := map[model.NodeVerb]string{model.NodeStart: "started", model.NodeStop: "stopped", model.NodeKill: "killed", model.NodePause: "paused", model.NodeResume: "resumed"}[e.Node.Verb]
		if verb == "" {
			verb = "did " + string(e.Node.Verb) + " to"
		}
		if n++; n <= maxActions {
			when := "at " + at(e.At)
			if e.Node.Took >= longAction { // the cut may have fallen into it
				when = "from " + at(e.At-e.Node.Took) + " to " + at(e.At)
			}
			did = append(did, fmt.Sprintf("%s %s on %s %s", verb, e.Node.Process, e.Node.Host, when))
		}
	}
	if n == 0 {
		return nil
	}
	if n > maxActions {
		did = append(did, fmt.Sprintf("acted %d more times", n-maxActions))
	}
	return []string{who + " " + list(did) + "."}
}

// costParts are the parts of a run's wall time, with their names.
func costParts(c model.Cost) []time.Duration {
	return []time.Duration{c.Template, c.Start, c.Settle, c.Workload, c.Recover, c.Ours}
}

var costNames = []string{"making the template", "start of the target", "until it was stable", "workload", "waiting for recovery", "netsplit itself"}

// took is the wall time of a run.
func took(c model.Cost) time.Duration {
	var sum time.Duration
	for _, p := range costParts(c) {
		sum += p
	}
	return sum
}

// probeWords says how long the probes of some runs were waited for. What they
// cost the system is not measured: a server does other work at the same time.
func probeWords(runs []model.RunSummary) string {
	var spent, all time.Duration
	n := 0
	for _, r := range runs {
		spent += r.ProbeCost
		n += r.Probes
		all += took(r.Cost)
	}
	if n == 0 && spent == 0 {
		return ""
	}
	s := "waited " + span(spent) + " in all for answers"
	if n > 0 {
		s = fmt.Sprintf("%s, waited %s in all for answers, %s each", model.Count(n, "probe", "probes"), span(spent), span(spent/time.Duration(n)))
	}
	if all > 0 {
		s += fmt.Sprintf(", %.1f for each second of wall time", float64(n)/all.Seconds())
	}
	return s
}

// sentence ends with a full stop, one.
func sentence(s string) string { return strings.TrimRight(s, ". ") + "." }
