package judge

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"netsplit/explorer/sequence"
	"netsplit/model"
	"netsplit/record/rundir"
)

// Setup is the target of a run as it was tested. Runs of different setups have different
// points: they are not read together.
type Setup struct {
	Target string
	// Release of its software, or what the target said of its version; "": neither is known.
	Release string
	// Args are all its settings.
	Args map[string]string
}

// AskedSetup is what a user asks of a Setup. What is empty may be anything.
type AskedSetup struct {
	Release string
	Args    map[string]string // only settings that must have these values
}

// String is "release 3.3.0 and acks=all"; "" if nothing is asked.
func (a AskedSetup) String() string {
	var out []string
	if a.Release != "" {
		out = append(out, "release "+a.Release)
	}
	for _, k := range slices.Sorted(maps.Keys(a.Args)) {
		out = append(out, k+"="+a.Args[k])
	}
	return strings.Join(out, " and ")
}

// differs says in what a setup is not as asked; "": it is.
func (a AskedSetup) differs(s Setup) string {
	if a.Release != "" && a.Release != s.Release {
		return fmt.Sprintf("of %s, not %s", releaseOf(s), a.Release)
	}
	for _, k := range slices.Sorted(maps.Keys(a.Args)) {
		if v, ok := s.Args[k]; !ok || v != a.Args[k] {
			return fmt.Sprintf("with %s, not %q", setting(s, k), a.Args[k])
		}
	}
	return ""
}

// differs says in what a setup is another than that one; "": in nothing that is known.
func (s Setup) differs(that Setup) string {
	if s.Target != that.Target {
		return fmt.Sprintf("of target %s, not %s", s.Target, that.Target)
	}
	if s.Release != that.Release && s.Release != "" && that.Release != "" {
		return fmt.Sprintf("of %s, not of %s", releaseOf(s), releaseOf(that))
	}
	names := slices.Concat(slices.Collect(maps.Keys(s.Args)), slices.Collect(maps.Keys(that.Args)))
	slices.Sort(names)
	for _, k := range names {
		v, has := s.Args[k]
		if w, had := that.Args[k]; has != had || v != w {
			return fmt.Sprintf("with %s, not with %s", setting(s, k), setting(that, k))
		}
	}
	return ""
}

func releaseOf(s Setup) string {
	if s.Release == "" {
		return "an unknown release"
	}
	return "release " + s.Release
}

func setting(s Setup, k string) string {
	v, ok := s.Args[k]
	if !ok {
		return "no setting " + k
	}
	return fmt.Sprintf("%s=%s", k, v)
}

// Apart are clean runs of a campaign that were not read, since they are of another setup.
type Apart struct {
	Campaign string // the name of its directory
	Why      string // what is different: "of release 3.2.0, not of release 3.3.0"
	Dirs     []string
}

// String is "c-1: 3 clean runs of release 3.2.0, not of release 3.3.0".
func (a Apart) String() string {
	return fmt.Sprintf("%s: %s %s", a.Campaign, model.Count(len(a.Dirs), "clean run", "clean runs"), a.Why)
}

// madeRun is a run as its summary and its target say.
type madeRun struct {
	dir     string
	sum     model.RunSummary
	setup   Setup
	trouble error // the target cannot be read
}

// madeRuns lists the runs of these directories of campaigns that may be of use, sorted by
// directory.
func madeRuns(campaigns []string, use func(*model.RunSummary) bool) (out []madeRun, err error) {
	for _, c := range campaigns {
		found, err := filepath.Glob(filepath.Join(c, "*", rundir.SummaryFile))
		if err != nil {
			return nil, err
		}
		for _, path := range found { // sorted
			r := madeRun{dir: filepath.Dir(path)}
			if err := rundir.ReadJSON(path, &r.sum); err != nil {
				return nil, err
			}
			if !use(&r.sum) {
				continue
			}
			r.setup, r.trouble = setupOf(r.dir, &r.sum)
			out = append(out, r)
		}
	}
	return out, nil
}

func setupOf(dir string, sum *model.RunSummary) (Setup, error) {
	var t struct {
		Args map[string]model.TargetArg
	}
	s := Setup{Target: sum.Target, Release: cmp.Or(sum.Release, sum.TargetVersion), Args: map[string]string{}}
	if err := rundir.ReadJSON(filepath.Join(dir, rundir.TargetFile), &t); err != nil {
		return s, fmt.Errorf("the record has no readable target: %w", err)
	}
	for k, a := range t.Args {
		s.Args[k] = a.Default
	}
	return s, nil
}

// CleanProfiles reads the points of the clean runs recorded in these directories of campaigns:
// those that are as asked, and of the newest setup among them, one with a known release if there
// is one. A run of an unknown release may be of any. The others are Apart. It is an
// error if there is none. keys are the identity of points; nil: what the target says.
func CleanProfiles(campaigns []string, asked AskedSetup, keys []model.PointKey) (*Profiles, error) {
	runs, err := madeRuns(campaigns, (*model.RunSummary).Minable)
	if err != nil {
		return nil, err
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("%w in %v", ErrNoCleanRun, campaigns)
	}
	var unread, dirs []string
	var apart []Apart
	var chosen *madeRun
	for i, r := range runs {
		switch {
		case r.trouble != nil:
			unread = append(unread, fmt.Sprintf("%s: %v", filepath.Base(r.dir), r.trouble))
		case asked.differs(r.setup) == "" && (chosen == nil || newer(r, chosen)):
			chosen = &runs[i]
		}
	}
	for _, r := range runs {
		if r.trouble != nil {
			continue
		}
		why := asked.differs(r.setup)
		if why == "" {
			why = r.setup.differs(chosen.setup)
		}
		if why == "" {
			dirs = append(dirs, r.dir)
		} else {
			apart = addApart(apart, r.dir, why)
		}
	}
	if len(dirs) == 0 {
		said := unread
		for _, a := range apart {
			said = append(said, a.String())
		}
		if s := asked.String(); s != "" {
			return nil, fmt.Errorf("no clean run with %s: %s", s, strings.Join(said, "; "))
		}
		return nil, fmt.Errorf("no clean run can be read: %s", strings.Join(said, "; "))
	}
	p, err := ProfilesOf(dirs, keys)
	if err != nil {
		return nil, err
	}
	p.Unread, p.Apart, p.Setup, p.campaigns = append(unread, p.Unread...), apart, chosen.setup, campaigns
	return p, nil
}

// newer says whether the setup of r is to be read rather than that of chosen.
func newer(r madeRun, chosen *madeRun) bool {
	if known := r.setup.Release != ""; known != (chosen.setup.Release != "") {
		return known
	}
	return !r.sum.Started.Before(chosen.sum.Started)
}

func addApart(all []Apart, dir, why string) []Apart {
	name := filepath.Base(filepath.Dir(dir))
	i := slices.IndexFunc(all, func(a Apart) bool { return a.Campaign == name && a.Why == why })
	if i < 0 {
		return append(all, Apart{Campaign: name, Why: why, Dirs: []string{dir}})
	}
	all[i].Dirs = append(all[i].Dirs, dir)
	return all
}

// SingleFault is a recorded run of one fault, which occurred at its point.
type SingleFault struct {
	Fault   model.PointFault
	Profile model.Profile
	Verdict model.VerdictValue
}

// SingleFaults reads the runs of single faults that the campaigns of p recorded, of its setup.
// want says whether a fault is of use; one run of each is read. unread are the runs that cannot be
// read, each with the reason.
func (p *Profiles) SingleFaults(want func(model.PointFault) bool) (out []SingleFault, unread []string, err error) {
	runs, err := madeRuns(p.campaigns, func(s *model.RunSummary) bool {
		return s.Scenario.Strategy == model.StrategySequences && len(s.Scenario.Sequence) == 1 && s.Verdict.Value != model.VerdictUnknown && want(s.Scenario.Sequence[0])
	})
	if err != nil {
		return nil, nil, err
	}
	keys, had := p.Options.Identity(), map[model.FaultID]bool{}
	for _, r := range runs {
		f := r.sum.Scenario.Sequence[0]
		if r.trouble == nil && (r.setup.differs(p.Setup) != "" || had[f.ID(keys)]) {
			continue
		}
		var prof model.Profile
		var met []model.Point
		err := r.trouble
		if err == nil {
			prof, met, err = PlayedProfile(r.dir, r.sum.Scenario.Sequence, p.Options.Periodic, p.Options.Keys)
		}
		if err != nil {
			unread = append(unread, fmt.Sprintf("%s: %v", filepath.Base(r.dir), err))
			continue
		}
		if n, _ := sequence.Occurred(r.sum.Scenario.Sequence, r.sum.Result.Steps, met, p.Options); n == 1 {
			had[f.ID(keys)] = true
			out = append(out, SingleFault{Fault: f, Profile: prof, Verdict: r.sum.Verdict.Value})
		}
	}
	return out, unread, nil
}
