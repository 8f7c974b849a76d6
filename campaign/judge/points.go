package judge

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"netsplit/explorer/sequence"
	"netsplit/model"
	"netsplit/record/rundir"
)

// Profiles are the points of recorded clean runs.
type Profiles struct {
	Target string
	Runs   []string // clean runs that could be judged, sorted
	// Scenarios are the ids of the scenarios of Runs.
	Scenarios []string
	Torn      []string // what is missing in records of Runs; each begins with the run
	Unread    []string // runs that were left out, each with the reason
	// Periodic are the types that have no points. Options are the others that the points
	// were read with.
	Periodic []sequence.Period
	Options  sequence.Options
	Profiles []model.Profile // of Runs, in their order
	// Around is what the target file says of nodes, clients, roles and periods.
	Around sequence.Around
	// Setup is that of Runs, Apart what was left out for another one: CleanProfiles sets both.
	Setup     Setup
	Apart     []Apart
	campaigns []string // directories that CleanProfiles was given
}

// ErrNoCleanRun means that there is no record of a clean run that could be judged.
var ErrNoCleanRun = errors.New("no record of a clean run that could be judged")

// ProfilesOf reads the points of clean runs, of which these are the directories. Those that
// cannot be read are left out; it is an error if none can.
func ProfilesOf(dirs []string, keys []model.PointKey) (*Profiles, error) {
	out := &Profiles{Options: sequence.Options{Keys: keys}}
	var runs []*runFiles
	var clean []sequence.Clean
	for _, dir := range dirs {
		f, err := readRun(dir)
		if err != nil {
			out.Unread = append(out.Unread, fmt.Sprintf("%s: %v", filepath.Base(dir), err))
			continue
		}
		run := f.meta.Run
		if out.Target != "" && f.target.Name != out.Target {
			return nil, fmt.Errorf("run %s is of target %s, those before it of %s: points of different targets are not compared", run, f.target.Name, out.Target)
		}
		out.Target, out.Options.Nodes, out.Options.Ports = f.target.Name, f.target.Nodes, ports(&f.target)
		out.Around = sequence.AroundOf(&f.target)
		out.Options.Stages, out.Options.Timers, out.Options.LastFault = f.target.Points.Stages, f.target.Points.Periodic, f.target.Timing.LastFault
		if keys == nil {
			out.Options.Keys = f.target.Points.Keys
		}
		for _, lack := range f.torn {
			out.Torn = append(out.Torn, run+": "+lack)
		}
		out.Runs, out.Scenarios = append(out.Runs, run), append(out.Scenarios, f.meta.Scenario.ID)
		runs, clean = append(runs, f), append(clean, sequence.CleanOf(f.events))
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("no clean run can be read: %s", strings.Join(out.Unread, "; "))
	}
	out.Periodic = sequence.Periodic(clean)
	out.Options.Periodic = sequence.Names(out.Periodic)
	for _, f := range runs {
		out.Profiles = append(out.Profiles, sequence.FromEvents(f.events, f.decisions, nil, out.Options))
	}
	return out, nil
}

// PlayedProfile reads the points of a run of a sequence, condensed, each with the fault
// after which it was seen, and those at which the faults occurred. periodic are the types
// that are no points, keys the identity of points; nil: all.
func PlayedProfile(dir string, faults []model.PointFault, periodic map[string]bool, keys []model.PointKey) (model.Profile, []model.Point, error) {
	f, err := readRun(dir)
	if err != nil {
		return model.Profile{}, nil, err
	}
	o := f.pointOptions()
	o.Periodic, o.Keys = periodic, keys
	p, met := sequence.Played(f.events, f.decisions, faults, o)
	return sequence.Condense(p, o), met, nil
}

// pointOptions are what the target says of points.
func (f *runFiles) pointOptions() sequence.Options {
	t := &f.target
	return sequence.Options{Nodes: t.Nodes, Ports: ports(t), Keys: t.Points.Keys, Stages: t.Points.Stages, Timers: t.Points.Periodic, LastFault: t.Timing.LastFault}
}

// CampaignsOf lists the directories below root with the record of a run of a target,
// sorted.
func CampaignsOf(root, target string) ([]string, error) {
	found, err := filepath.Glob(filepath.Join(root, "*", "*", rundir.MetaFile))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, path := range found {
		dir := filepath.Dir(filepath.Dir(path))
		if len(out) > 0 && out[len(out)-1] == dir {
			continue
		}
		var meta model.RunMeta
		if err := rundir.ReadJSON(path, &meta); err != nil {
			return nil, err
		}
		if meta.Target == target {
			out = append(out, dir)
		}
	}
	return out, nil
}

func ports(t *model.Target) []uint16 {
	var out []uint16
	for _, p := range t.Protocols {
		out = append(out, p.Port)
	}
	return out
}
