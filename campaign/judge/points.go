package judge

import (
	"fmt"
	"path/filepath"

	"netsplit/explorer/sequence"
	"netsplit/model"
	"netsplit/record/rundir"
)

// Profiles are the points of recorded clean runs.
type Profiles struct {
	Target string
	Runs   []string // clean runs that could be judged, sorted
	Torn   []string // what the records of some of them lack, run first
	// Periodic are the types that are no points, Options what else names them.
	Periodic []sequence.Period
	Options  sequence.Options
	Profiles []model.Profile // of Runs, in their order
}

// CleanProfiles reads the points of the clean runs recorded in these directories of
// campaigns: those of one target. It is an error if there is none. keys are the identity
// of points; nil: all.
func CleanProfiles(campaigns []string, keys []model.PointKey) (*Profiles, error) {
	out := &Profiles{Options: sequence.Options{Keys: keys}}
	var runs []*runFiles
	var clean []sequence.Clean
	for _, c := range campaigns {
		found, err := filepath.Glob(filepath.Join(c, "*", rundir.SummaryFile))
		if err != nil {
			return nil, err
		}
		for _, path := range found { // sorted
			var sum model.RunSummary
			if err := rundir.ReadJSON(path, &sum); err != nil {
				return nil, err
			}
			if !sum.Minable() {
				continue
			}
			f, err := readRun(filepath.Dir(path))
			if err != nil {
				return nil, fmt.Errorf("clean run %s: %w", sum.Run, err)
			}
			if out.Target != "" && f.target.Name != out.Target {
				return nil, fmt.Errorf("run %s is of target %s, those before it of %s: points of different targets are not compared", sum.Run, f.target.Name, out.Target)
			}
			out.Target, out.Options.Nodes, out.Options.Ports = f.target.Name, f.target.Nodes, ports(&f.target)
			for _, lack := range f.torn {
				out.Torn = append(out.Torn, sum.Run+": "+lack)
			}
			out.Runs = append(out.Runs, sum.Run)
			runs, clean = append(runs, f), append(clean, sequence.CleanOf(f.events))
		}
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("no record of a clean run that could be judged in %v", campaigns)
	}
	out.Periodic = sequence.Periodic(clean)
	out.Options.Periodic = sequence.Names(out.Periodic)
	for _, f := range runs {
		out.Profiles = append(out.Profiles, sequence.FromEvents(f.events, f.decisions, sequence.Fired(f.events, f.decisions), out.Options))
	}
	return out, nil
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
