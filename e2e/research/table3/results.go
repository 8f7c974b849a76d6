package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"netsplit/model"
	"netsplit/record/rundir"
)

// result is a line of results.jsonl: what one campaign found.
type result struct {
	Campaign string `json:"campaign"` // name in plan.yaml
	// Version of the program that made the runs, as they say themselves; with
	// commas if there were several; "" in lines from before it was recorded.
	Version  string    `json:"version,omitempty"`
	Strategy string    `json:"strategy"`
	Seed     uint64    `json:"seed"`
	Date     time.Time `json:"date"`
	Labs     int       `json:"labs"`
	Load     string    `json:"load"` // of the machine when it began
	Clean    int       `json:"clean"`
	Faults   int       `json:"faults"`
	// Verdicts counts the fault runs by verdict.
	Verdicts map[string]int `json:"verdicts"`
	Seconds  float64        `json:"seconds"` // of all runs, one after the other
	Wall     float64        `json:"wall"`    // of the search
	// ReplayWall is the time that the replays took, in seconds.
	ReplayWall float64 `json:"replayWall,omitempty"`
	// Messages counts those of all runs but the replays; what only carries
	// others (tcp syn, arp who-has) is not among them. Unknown of them are of no
	// known type.
	Messages int `json:"messages,omitempty"`
	Unknown  int `json:"unknown,omitempty"`
	// Cost is the share of the time of all runs, by phase (model.Cost); without
	// the templates, which are made once.
	Cost map[string]float64 `json:"cost,omitempty"`
	// Invariants are those in use.
	Invariants int     `json:"invariants"`
	Findings   []found `json:"findings,omitempty"`
	// Note says why there were no fault runs.
	Note string `json:"note,omitempty"`
}

// found is a finding of a campaign.
type found struct {
	Signature string `json:"signature"`
	Known     string `json:"known,omitempty"`
	// By is what the signature of Known was made from (model.KnownFailure.By).
	By      string `json:"by,omitempty"`
	Class   string `json:"class"`
	Summary string `json:"summary"`
	// First is the fault run that first showed it after its cut, from 1; 0 if
	// none did. Runs counts the fault runs that did.
	First int `json:"first"`
	Runs  int `json:"runs"`
	// Uncut counts the fault runs that showed it before their cut, or that were
	// not cut at all.
	Uncut int  `json:"uncut,omitempty"`
	Clean bool `json:"clean,omitempty"` // a clean run showed it too
	// Dropped counts the packets that the cut of the first run dropped.
	Dropped int `json:"dropped"`
	// Replays of that run that showed it again, of Tried.
	Replays int `json:"replays"`
	Tried   int `json:"tried"`

	run string
}

func readResults(file string) ([]result, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []result
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 16<<20)
	for n := 1; sc.Scan(); n++ {
		var r result
		if err := json.Unmarshal(sc.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
		if r.Version == "" {
			r.before()
		}
		out = append(out, r)
	}
	return out, sc.Err()
}

// early matches the summaries of failures that showed before the cut, or where
// nothing was cut.
var early = regexp.MustCompile(`^\S+ on \S+ (?:logged|ended .+?) at [0-9.]+ s, (?:before the cut|with nothing cut)|^[0-9.]+ s after the workload ended `)

// before mends a line from before versions were written into lines: of such a
// one, only the words of a finding say that no cut had a part in it. What Clean
// marks is left as it is, since its summary may be of the clean run.
func (r *result) before() {
	for i := range r.Findings {
		f := &r.Findings[i]
		if !f.Clean && (strings.HasSuffix(f.Signature, ", without a cut") || early.MatchString(f.Summary)) {
			f.Uncut, f.Runs, f.First = f.Runs, 0, 0
		}
	}
}

func appendResult(file string, r result) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(json.NewEncoder(f).Encode(r), f.Sync(), f.Close())
}

var ended = regexp.MustCompile(`(?m)^campaign .*: done after .*?: (no invariant .*); seed \d+$`)

// nothingToExplore is why a campaign that came to its end made no fault run, ""
// if it did not say that its clean runs showed no invariant.
func nothingToExplore(dir string) string {
	b, err := os.ReadFile(filepath.Join(dir, outcomeFile))
	if err != nil {
		return ""
	}
	if m := ended.FindSubmatch(b); m != nil {
		return string(m[1])
	}
	return ""
}

func gather(dir string, r *result) error {
	files, err := filepath.Glob(filepath.Join(dir, "*", "*", rundir.SummaryFile))
	if err != nil {
		return err
	}
	var runs []model.RunSummary
	for _, f := range files {
		var s model.RunSummary
		if err := rundir.ReadJSON(f, &s); err != nil {
			return err
		}
		runs = append(runs, s)
	}
	slices.SortFunc(runs, func(a, b model.RunSummary) int { return a.Ended.Compare(b.Ended) })
	r.Clean, r.Faults, r.Seconds, r.Invariants = 0, 0, 0, 0
	r.Messages, r.Unknown = 0, 0
	r.Verdicts, r.Findings = map[string]int{}, nil
	versions := map[string]bool{}
	bySignature := map[string]int{}
	cost := model.Cost{}
	for i := range runs {
		s := &runs[i]
		versions[s.Version] = true
		if s.ReplayOf != "" {
			continue
		}
		clean := s.Scenario.Strategy == model.StrategyClean
		cut := wasCut(s)
		if clean {
			r.Clean++
		} else {
			r.Faults++
			r.Verdicts[string(s.Verdict.Value)]++
			r.Invariants = max(r.Invariants, len(s.Scenario.Observe))
		}
		r.Seconds += s.Ended.Sub(s.Started).Seconds()
		count(r, s.Messages)
		cost.Start += s.Cost.Start
		cost.Settle += s.Cost.Settle
		cost.Workload += s.Cost.Workload
		cost.Recover += s.Cost.Recover
		cost.Ours += s.Cost.Ours
		for _, f := range s.Verdict.Failures {
			k, ok := bySignature[f.Signature]
			if !ok {
				k = len(r.Findings)
				bySignature[f.Signature] = k
				r.Findings = append(r.Findings, found{Signature: f.Signature, Known: f.Known, By: f.KnownBy, Class: string(f.Class), Summary: f.Summary})
			}
			x := &r.Findings[k]
			switch {
			case clean:
				x.Clean = true
				continue
			case !cut || f.BeforeCut:
				x.Uncut++
				continue
			case x.First == 0:
				x.First, x.run, x.Summary = r.Faults, s.Run, f.Summary
				if s.Proof != nil {
					x.Dropped = s.Proof.Dropped
				}
			}
			x.Runs++
		}
	}
	r.Version = strings.Join(slices.Sorted(maps.Keys(versions)), ", ")
	r.Cost = shares(cost)
	for i := range r.Findings {
		x := &r.Findings[i]
		for _, s := range runs {
			if x.run != "" && s.ReplayOf == x.run {
				x.Tried++
				if wasCut(&s) && slices.ContainsFunc(s.Verdict.Failures, func(f model.Failure) bool { return f.Signature == x.Signature && !f.BeforeCut }) {
					x.Replays++
				}
			}
		}
	}
	return nil
}

// wasCut says whether the cut of a run took place.
func wasCut(s *model.RunSummary) bool { return s.Proof != nil || s.Result.Reached }

// carriers begin the types of what only carries messages (package inference).
var carriers = []string{"tcp syn", "tcp fin", "tcp rst", "arp who-has"}

func count(r *result, types map[string]int) {
	for name, n := range types {
		if slices.ContainsFunc(carriers, func(c string) bool { return strings.HasPrefix(name, c) }) {
			continue
		}
		r.Messages += n
		if strings.Contains(name, model.TypeUnknown) {
			r.Unknown += n
		}
	}
}

// phases of a run, in their order.
var phases = []string{"start", "settle", "workload", "recover", "ours"}

func shares(c model.Cost) map[string]float64 {
	all := c.Start + c.Settle + c.Workload + c.Recover + c.Ours
	if all == 0 {
		return nil
	}
	out := map[string]float64{}
	for i, d := range []time.Duration{c.Start, c.Settle, c.Workload, c.Recover, c.Ours} {
		out[phases[i]] = math.Round(1000*float64(d)/float64(all)) / 1000
	}
	return out
}
