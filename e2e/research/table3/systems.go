package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// system sums up the campaigns of one system, on all its releases.
type system struct {
	campaigns int
	// findings counts distinct ones, of a campaign and a signature, by judgment;
	// causes are what they come from.
	findings map[string]int
	causes   map[string]map[string]bool
	// wall time in seconds: of searches by strategy, and of replays. Guessed is the
	// part of replays that was not measured.
	search           map[string]float64
	replays, guessed float64
	// messages and unknown ones, of counted campaigns.
	messages, unknown, counted int
}

// name of the system that a campaign is about: that of its target, without what
// follows a dash (hdfs-ha).
func (p *plan) system(name string) string {
	if i := slices.IndexFunc(p.Campaigns, func(c campaign) bool { return c.Name == name }); i >= 0 {
		name, _, _ = strings.Cut(p.Campaigns[i].Target, "@")
	}
	name, _, _ = strings.Cut(name, "-")
	return name
}

func (p *plan) systems(results []result, js judgments) map[string]*system {
	out := map[string]*system{}
	seen := map[[2]string]bool{}
	for i := range results {
		r := &results[i]
		name := p.system(r.Campaign)
		s := out[name]
		if s == nil {
			s = &system{findings: map[string]int{}, causes: map[string]map[string]bool{}, search: map[string]float64{}}
			out[name] = s
		}
		s.campaigns++
		s.search[r.Strategy] += r.Wall
		s.replays += r.ReplayWall
		if r.Version == "" {
			g := r.guessReplays()
			s.replays += g
			s.guessed += g
		}
		if r.Messages > 0 {
			s.messages += r.Messages
			s.unknown += r.Unknown
			s.counted++
		}
		for j := range r.Findings {
			f := &r.Findings[j]
			if k := [2]string{r.Campaign, f.Signature}; !seen[k] {
				seen[k] = true
				j := js.of(r.Campaign, f)
				s.findings[j.Judgment]++
				if s.causes[j.Judgment] == nil {
					s.causes[j.Judgment] = map[string]bool{}
				}
				s.causes[j.Judgment][cmp.Or(j.Cause, r.Campaign+": "+f.Signature)] = true
			}
		}
	}
	return out
}

// guessReplays is what the replays of a line from before their time was recorded
// will have taken, in seconds: as long as the runs of the search, with as many
// labs. Findings with the same first run share its replays.
func (r *result) guessReplays() float64 {
	tried := map[int]int{}
	for _, f := range r.Findings {
		tried[f.First] = max(tried[f.First], f.Tried)
	}
	n := 0
	for _, t := range tried {
		n += t
	}
	return float64(n) * r.Wall / float64(max(r.Clean+r.Faults, 1))
}

// line prints the sums of a system, as columns.
func (s *system) line(name string) string {
	all := s.replays
	var searches, judged []string
	for _, st := range slices.SortedFunc(maps.Keys(s.search), cmp.Compare[string]) {
		all += s.search[st]
		searches = append(searches, fmt.Sprintf("%s %.1f h", st, s.search[st]/3600))
	}
	for _, w := range words {
		n := fmt.Sprint(s.findings[w])
		if c := len(s.causes[w]); c < s.findings[w] {
			n += fmt.Sprintf(" of %d causes", c)
		}
		judged = append(judged, n)
	}
	replays := fmt.Sprintf("%.1f h", s.replays/3600)
	if s.guessed > 0 {
		replays += fmt.Sprintf(", %.1f of it by their number", s.guessed/3600)
	}
	messages := "not counted yet"
	if s.counted > 0 {
		messages = fmt.Sprintf("%d of %d (%.2f %%), in %d of %d campaigns", s.unknown, s.messages, 100*float64(s.unknown)/float64(s.messages), s.counted, s.campaigns)
	}
	return fmt.Sprintf("%s\t%d\t%s\t%s\t%s\t%.1f h\t%s", name, s.campaigns, strings.Join(judged, ", "), strings.Join(searches, ", "), replays, all/3600, messages)
}
