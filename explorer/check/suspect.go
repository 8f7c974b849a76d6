package check

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"netsplit/model"
)

// leastFaultRuns is how many fault runs there must be before it is odd that half of those that
// were judged have one finding, or that a third of all could not be judged.
const leastFaultRuns = 6

// Suspect lists the marks of a wrong target file that the runs of a search show so
// far. What the documentation admits is none. A target without Timing has no limits.
func (y *Tally) Suspect(t *model.Target, findings []model.Finding) []model.Warning {
	var out []model.Warning
	limits := LimitsLikeMaxCut(t)
	cut := ""
	if len(limits) > 0 {
		cut = fmt.Sprintf("; it may be due to %s, as long as max_cut (%s)", strings.Join(limits, ", "), t.Timing.MaxCut)
		out = append(out, model.Warning{Kind: model.WarnLimit, About: strings.Join(limits, ", "),
			Text:   fmt.Sprintf("%s: as long as max_cut (%s), so what waits through a cut gives up as the cut ends, and chance says which comes first", strings.Join(limits, ", "), t.Timing.MaxCut),
			Advice: "change timing.max_cut in the target file, by a fifth or more, or the limit"})
	}
	for _, cause := range model.Together(findings, func(f model.Finding) string { return f.CauseID }) {
		f := cause[0]
		if f.Class == model.Documented {
			continue
		}
		runs, clean := map[string]bool{}, slices.ContainsFunc(cause, func(g model.Finding) bool { return g.Clean })
		for _, g := range cause {
			for _, r := range g.Runs {
				if y.decided[r] {
					runs[r] = true
				}
			}
		}
		if clean {
			out = append(out, model.Warning{Kind: model.WarnClean, About: f.CauseID,
				Text:   fmt.Sprintf("%s shows also without any fault: %s", f.Cause, f.Failure.Summary),
				Advice: fmt.Sprintf("read the report of %s: if the system has a right to it, say so in check %s of the target file", f.Run, f.Failure.Check)})
		}
		if n := len(y.decided); n >= leastFaultRuns && 2*len(runs) >= n {
			out = append(out, model.Warning{Kind: model.WarnHalf, About: f.CauseID,
				Text:   fmt.Sprintf("%s shows in %d of %d fault runs: %s%s", f.Cause, len(runs), n, f.Failure.Summary, cut),
				Advice: fmt.Sprintf("read the report of %s: a fault of any kind seems to be enough for it, so check %s of the target file may expect too much, or its times may be too short", f.Run, f.Failure.Check)})
		}
	}
	return append(out, y.unjudged()...)
}

// unjudged warns of a reason for which a third of the fault runs or more are unknown.
func (y *Tally) unjudged() (out []model.Warning) {
	count, first := map[string]int{}, map[string]string{}
	for _, run := range sortedKeys(y.open) {
		if w := y.open[run]; strings.HasPrefix(w.kind, unknownReason) {
			count[w.kind]++
			first[w.kind] = cmp.Or(first[w.kind], run)
		}
	}
	all := len(y.open) + len(y.decided)
	for _, k := range sortedKeys(count) {
		if all >= leastFaultRuns && 3*count[k] >= all {
			out = append(out, model.Warning{Kind: model.WarnUnjudged, About: strings.TrimPrefix(k, unknownReason),
				Text:   fmt.Sprintf("%d of %d fault runs %s", count[k], all, y.open[first[k]].text),
				Advice: fmt.Sprintf("read the report of %s: such runs show nothing, so mend what made them unknown", first[k])})
		}
	}
	return out
}

// tolerance is how near a limit comes to max_cut, as a share of it, to be called
// as long.
const tolerance = 0.05

// waits are names of settings that say how long something waits.
const waits = `(?i:time-?_?out|session|expir|ttl|lease|deadline|heartbeat|detect)`

// setting matches a setting with a time in a configuration file or a command line,
// after a name as in waits.
var waitSetting = regexp.MustCompile(`([\w.-]*` + waits + `[\w.-]*)["']?\s*(?:[=:,]|\s)\s*["']?(\d+(?:\.\d+)?)(ms|s|m)?\b`)

var waitName = regexp.MustCompile(waits)

// LimitsLikeMaxCut names the limits in a target file, its settings filled in, that
// are as long as the longest cut: periods, settings of a name that says so, in the
// arguments, files and commands, the time to recover, and the limits of checks.
// Sorted.
func LimitsLikeMaxCut(t *model.Target) []string {
	if t == nil || t.Timing.MaxCut <= 0 {
		return nil
	}
	var out []string
	add := func(name string, d time.Duration) {
		if diff := (d - t.Timing.MaxCut).Abs(); float64(diff) <= tolerance*float64(t.Timing.MaxCut) {
			out = append(out, fmt.Sprintf("%s %s", name, d))
		}
	}
	text := func(where, s string) {
		for _, m := range waitSetting.FindAllStringSubmatch(s, -1) {
			if d, ok := waitTime(m[1], m[2], m[3]); ok {
				add(where+" "+m[1], d)
			}
		}
	}
	for name, a := range t.Args {
		if waitName.MatchString(name) || waitName.MatchString(a.Help) {
			if m := regexp.MustCompile(`^(\d+(?:\.\d+)?)(ms|s|m)?$`).FindStringSubmatch(a.Default); m != nil {
				if d, ok := waitTime(name+" "+a.Help, m[1], m[2]); ok {
					add("setting "+name, d)
				}
			}
		}
	}
	for name, p := range t.Periods {
		if d, err := time.ParseDuration(p.Length); err == nil {
			add("period "+name, d)
		}
	}
	for _, p := range t.Processes {
		text("process "+p.Name+",", strings.Join(p.Command, " "))
		for _, f := range sortedKeys(p.Files) {
			text("file "+f+",", p.Files[f])
		}
		for _, k := range sortedKeys(p.Env) {
			text("process "+p.Name+",", k+"="+p.Env[k])
		}
	}
	for _, w := range slices.Concat(t.Workloads, t.Final) {
		text("workload "+w.Name+",", strings.Join(w.Command, " "))
		for _, k := range sortedKeys(w.Env) {
			text("workload "+w.Name+",", k+"="+w.Env[k])
		}
	}
	for _, c := range t.Checks {
		for _, k := range []string{"limit", "notice"} {
			if d, err := time.ParseDuration(c.With[k]); err == nil && d > 0 {
				add("check "+c.Name+", "+k, d)
			}
		}
	}
	add("timing.recover", t.Timing.Recover)
	slices.Sort(out)
	return slices.Compact(out)
}

// waitTime is a time of a configuration; without a unit it is milliseconds if its
// name says so, or if it is 1000 or more, else seconds.
func waitTime(name, number, unit string) (time.Duration, bool) {
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || n > 1e9 {
		return 0, false
	}
	scale := map[string]time.Duration{"ms": time.Millisecond, "s": time.Second, "m": time.Minute}[unit]
	if scale == 0 {
		scale = time.Second
		if name = strings.ToLower(name); strings.HasSuffix(name, "ms") || strings.Contains(name, "milli") || n >= 1000 {
			scale = time.Millisecond
		}
	}
	return time.Duration(n * float64(scale)), true
}
