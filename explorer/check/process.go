package check

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"netsplit/model"
	"netsplit/record"
)

// processDied reports server processes that ended by themselves.
func processDied() checker {
	return checker{
		name:    "process-died",
		certain: true,
		help:    "a server process ended by itself. Status 0 is no failure with `may_exit`",
		run: func(r *Record, _ settings) outcome {
			by := map[string]*model.Failure{}
			for _, e := range sortedExits(r.Exits) {
				if !exitMatters(r.Target, e) {
					continue
				}
				how, sig := exitHow(e), exitSignature(e)
				f := by[sig]
				if f == nil {
					f = &model.Failure{Signature: sig, Summary: fmt.Sprintf("%s on %s ended %s at %s s%s", e.Process, e.Host, how, seconds(e.At), phase(r, e.At)), BeforeCut: beforeCut(r, e.At)}
					by[sig] = f
				} else {
					f.Summary += fmt.Sprintf(", on %s at %s s", e.Host, seconds(e.At))
					f.BeforeCut = f.BeforeCut && beforeCut(r, e.At)
				}
				f.Amount++
				showed(f, e.Host, e.At)
				if e.LastLine != "" {
					f.Detail = append(f.Detail, fmt.Sprintf("last line on %s: %s", e.Host, e.LastLine))
				}
			}
			return outcome{failures: collect(by)}
		},
	}
}

// exitMatters says whether a process ended that should not have.
func exitMatters(t *model.Target, e record.Exit) bool {
	mayExit := slices.ContainsFunc(t.Processes, func(p model.Process) bool { return p.Name == e.Process && p.MayExit })
	return !e.Expected && !(mayExit && e.Status == 0)
}

func exitHow(e record.Exit) string {
	if e.Status > 128 && e.Status <= 128+64 { // Linux has 64 signals; exit(-1) is 255
		return fmt.Sprintf("by signal %d", e.Status-128)
	}
	return fmt.Sprintf("with status %d", e.Status)
}

func exitSignature(e record.Exit) string {
	return fmt.Sprintf("process %s ended %s", e.Process, exitHow(e))
}

// showed notes where and when a failure showed, in order of time or not.
func showed(f *model.Failure, host model.NodeID, at time.Duration) {
	if f.Last == 0 {
		f.First, f.Last = at, at
	}
	f.First, f.Last = min(f.First, at), max(f.Last, at)
	if i, is := slices.BinarySearch(f.Hosts, host); !is {
		f.Hosts = slices.Insert(f.Hosts, i, host)
	}
}

func notComplete(r *Record, died []string) string {
	return "the record is not complete: " + strings.Join(slices.Concat(r.Incomplete, r.Unread, died), "; ")
}

// alsoDied are the processes that ended by themselves in a run that cannot be
// judged: they may be the reason. One that a reason names is not among them.
func alsoDied(r *Record) []string {
	if r.Target == nil {
		return nil
	}
	left := *r
	left.Exits = slices.DeleteFunc(slices.Clone(r.Exits), func(e record.Exit) bool {
		return slices.ContainsFunc(slices.Concat(r.Incomplete, r.Unread), func(why string) bool { return strings.Contains(why, e.Process+" on "+string(e.Host)) })
	})
	var out []string
	for _, f := range processDied().run(&left, nil).failures {
		out = append(out, f.Summary)
	}
	return out
}

func sortedExits(in []record.Exit) []record.Exit {
	out := slices.Clone(in)
	slices.SortStableFunc(out, func(a, b record.Exit) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Host, b.Host), strings.Compare(a.Process, b.Process))
	})
	return out
}

func collect(by map[string]*model.Failure) []model.Failure {
	var out []model.Failure
	for _, k := range sortedKeys(by) {
		out = append(out, *by[k])
	}
	return out
}

// fatalLog reports lines that match Target.Logs.Fatal; Logs.Allow matches
// neither them nor what continues them, nor does Logs.Disturbed at that time.
func fatalLog() checker {
	return checker{
		name:    "fatal-log",
		certain: true,
		help:    "a line of a server process that `logs.fatal` matches and neither `logs.allow` nor, after a disturbance, `logs.disturbed`, unless the disk of that server fails at the time. One finding for each exception and first own function of its deepest cause; a line that is both printed and written to a file counts once",
		with: map[string]setting{
			"packages": {def: "", help: "prefixes of the system's own functions in stack traces, such as `org.apache.cassandra.`; empty: all but those of the language and of common libraries"},
		},
		run: func(r *Record, s settings) outcome {
			fatal, err := compile(r.Target.Logs.Fatal)
			if err != nil {
				return outcome{unknown: err.Error()}
			}
			allow, err := compile(r.Target.Logs.Allow)
			if err != nil {
				return outcome{unknown: err.Error()}
			}
			excused, err := disturbedLines(r)
			if err != nil {
				return outcome{unknown: err.Error()}
			}
			if len(fatal) == 0 {
				return outcome{idle: "the target names no line that is fatal (logs.fatal)"}
			}
			lines := slices.Clone(r.LogLines)
			slices.SortStableFunc(lines, func(a, b record.LogLine) int {
				return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Host, b.Host), strings.Compare(a.Process, b.Process), strings.Compare(a.File, b.File), strings.Compare(a.Line, b.Line))
			})
			by := map[string]*model.Failure{}
			seen := map[said]*record.LogLine{}
			for _, l := range lines {
				if !matches(fatal, l.Line) || matches(allow, strings.Join(append([]string{l.Line}, l.Context...), "\n")) {
					continue
				}
				if excused.allows(l) {
					continue
				}
				what, t := traceSignature(l.Line, l.Context, s.list("packages"))
				sig := "logged " + what
				again := said{l.Host, l.Line}
				if twice(seen[again], &l) {
					continue
				}
				seen[again] = &l
				f := by[sig]
				if f == nil {
					f = &model.Failure{Signature: sig, Summary: fmt.Sprintf("%s on %s logged at %s s%s: %s", l.Process, l.Host, seconds(l.At), phase(r, l.At), l.Line), BeforeCut: beforeCut(r, l.At)}
					if t.what != "" && !strings.Contains(l.Line, t.what) && !strings.Contains(stableLine(l.Line), t.what) {
						f.Summary += ": " + strings.TrimSuffix(t.what+": "+t.message, ": ")
					}
					by[sig] = f
				}
				f.BeforeCut = f.BeforeCut && beforeCut(r, l.At)
				f.Amount++
				showed(f, l.Host, l.At)
				if len(f.Detail) < 40 {
					head := fmt.Sprintf("%s %s %.3f s: %s", l.Host, l.Process, l.At.Seconds(), l.Line)
					if l.File != "" {
						head = fmt.Sprintf("%s %s %.3f s: %s", l.Host, l.File, l.At.Seconds(), l.Line)
					}
					f.Detail = append(f.Detail, head)
					if f.Amount == 1 { // the others are like it
						for _, c := range l.Context {
							f.Detail = append(f.Detail, "    "+strings.TrimSpace(c))
						}
					}
				}
			}
			return outcome{failures: collect(by), lines: excused.list}
		},
	}
}

// said is a line of a host.
type said struct {
	host model.NodeID
	line string
}

// twice says whether two equal lines of a host are one that a process both
// printed and wrote to a file.
func twice(a, b *record.LogLine) bool {
	return a != nil && (a.File != b.File || a.Process != b.Process) && b.At-a.At < 5*time.Second
}

// phase says of a moment that the faults of the run can have no part in it.
func phase(r *Record, at time.Duration) string {
	first := forever // step that is no cut
	for _, b := range r.begun() {
		first = min(first, b.went.Began)
	}
	switch {
	case r.Proof == nil && first == forever:
		return ", with nothing cut"
	case r.Proof == nil && at < first:
		return ", before the first fault"
	case r.Proof == nil:
		return ""
	case beforeCut(r, at):
		return ", before the cut"
	}
	return ""
}

// beforeCut says whether a moment is before the cut of a run that was cut.
func beforeCut(r *Record, at time.Duration) bool { return r.Proof != nil && at < r.Proof.CutAt }

func compile(patterns []string) ([]*regexp.Regexp, error) {
	var out []*regexp.Regexp
	for _, p := range patterns {
		re, err := LogPattern(p)
		if err != nil {
			return nil, fmt.Errorf("log pattern %q: %w", p, err)
		}
		out = append(out, re)
	}
	return out, nil
}

// LogPattern compiles a pattern of logs.fatal, logs.allow or logs.disturbed. In a match that
// lines continue, ^ and $ are the ends of each line. The error is
// regexp.Compile's.
func LogPattern(pattern string) (*regexp.Regexp, error) {
	if _, err := regexp.Compile(pattern); err != nil {
		return nil, err // as the user wrote it
	}
	return regexp.Compile("(?m)" + pattern)
}

func matches(res []*regexp.Regexp, text string) bool {
	return slices.ContainsFunc(res, func(re *regexp.Regexp) bool { return re.MatchString(text) })
}

// workloadHang reports workloads that did not end when requested to, and
// operations that took far longer than a client's timeout.
func workloadHang() checker {
	return checker{
		name: "workload-hang",
		help: "a workload that did not end when told to, or an operation that took longer than `limit`",
		with: map[string]setting{
			"limit": {def: "0s", kind: "duration", help: "longest time from invoke to answer; 0s: no limit"},
		},
		run: func(r *Record, s settings) outcome {
			by := map[string]*model.Failure{}
			for _, w := range slices.Sorted(slices.Values(r.WorkloadHung)) {
				sig := fmt.Sprintf("workload %s did not end", w)
				if name, _, whole := strings.Cut(w, " did not end "); whole {
					sig = name + " did not end"
				}
				by[sig] = &model.Failure{Signature: sig, Summary: w + ": the system kept it waiting, it began what takes longer than that, or it counts its time from later than its start", Amount: 1}
			}
			limit := s.duration("limit")
			if limit > 0 {
				for _, d := range slowOps(r, limit) {
					sig := fmt.Sprintf("operation %s took longer than its limit", d.f)
					f := by[sig]
					if f == nil {
						f = &model.Failure{Signature: sig, Summary: fmt.Sprintf("%s took %s s, at most %s s were expected", d.f, seconds(d.took), seconds(limit))}
						by[sig] = f
					}
					f.Amount++
				}
			}
			return outcome{failures: collect(by)}
		},
	}
}

type slowOp struct {
	f    string
	took time.Duration
}

func slowOps(r *Record, limit time.Duration) []slowOp {
	var out []slowOp
	for _, c := range calls(r) {
		if c.answered && c.done-c.invoked > limit {
			out = append(out, slowOp{c.f, c.done - c.invoked})
		}
	}
	return out
}
