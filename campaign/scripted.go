package campaign

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"netsplit/campaign/run"
	"netsplit/explorer/check"
	"netsplit/model"
)

// Scripts reads files of scripted tests. Package campaign/script implements it.
type Scripts interface {
	// Read checks a file against its target, which load loads; other, if it is not "",
	// stands in for the target that the file names.
	Read(f model.ScriptFile, other string, load func(target string) (*model.Target, error)) (*Script, error)
	// Known lists the scripts that come with netsplit.
	Known() ([]model.KnownScript, error)
}

// Script is a file of a scripted test, read and checked.
type Script struct {
	File model.ScriptFile // with its text
	// Name is the name in the file. Target is the override, or else the target in the file.
	Name, Target string
	Set          map[string]string
	Class        model.FailureClass // of an assertion that does not hold; "": broken
	Quote        string             // what the documentation says of it
	Play         run.Play
}

// Scripts lists the scripts that come with netsplit.
func (s *Service) Scripts(context.Context) ([]model.KnownScript, error) {
	if s.cfg.Scripts == nil {
		return nil, nil
	}
	return s.cfg.Scripts.Known()
}

func (s *Service) readScript(f model.ScriptFile, target string) (*Script, error) {
	if s.cfg.Scripts == nil {
		return nil, fmt.Errorf("this program plays no scripts")
	}
	return s.cfg.Scripts.Read(f, target, func(name string) (*model.Target, error) {
		name, err := s.nameOf(name)
		if err != nil {
			return nil, err
		}
		t, _, err := s.load(model.CampaignSpec{Target: name})
		return t, err
	})
}

// completeScript fills in what the script of a campaign says.
func (s *Service) completeScript(spec model.CampaignSpec) (model.CampaignSpec, error) {
	if !slices.Contains([]model.Strategy{"", model.StrategyCoFI, model.StrategyScripted}, spec.Strategy) { // cofi: the API's default
		return spec, fmt.Errorf("a script is no search: leave out strategy %s", spec.Strategy)
	}
	if spec.Clean != 0 {
		return spec, fmt.Errorf("clean: a script has no clean runs: leave it out")
	}
	sc, err := s.readScript(*spec.Script, spec.Target)
	if err != nil {
		return spec, fmt.Errorf("script: %w", err)
	}
	if spec.Target, err = s.nameOf(sc.Target); err != nil {
		return spec, fmt.Errorf("script: target: %w", err)
	}
	args := maps.Clone(sc.Set)
	if args == nil {
		args = map[string]string{}
	}
	maps.Copy(args, spec.Args)
	spec.Strategy, spec.Args, spec.Script = model.StrategyScripted, args, &sc.File
	return spec, nil
}

// scripted makes t a target that a script is played on, and returns the script; nil: there is
// none.
func (s *Service) scripted(f *model.ScriptFile, target string, t *model.Target) (*Script, error) {
	if f == nil {
		return nil, nil
	}
	sc, err := s.readScript(*f, target)
	if err != nil {
		return nil, fmt.Errorf("script: %w", err)
	}
	judgedByScript(t, sc.Class, sc.Quote)
	return sc, nil
}

// generalChecks are those of a target that hold whatever a script does. The
// others judge what the target's own workloads did.
var generalChecks = []string{"process-died", "fatal-log"}

// judgedByScript has runs on t judged by what a script asserts; class is what an assertion
// that does not hold is, "" for broken.
func judgedByScript(t *model.Target, class model.FailureClass, quote string) {
	t.Checks = slices.DeleteFunc(slices.Clone(t.Checks), func(c model.CheckSpec) bool { return !slices.Contains(generalChecks, c.Name) })
	t.Checks = append(t.Checks, model.CheckSpec{Name: check.Script, Class: cmp.Or(class, model.Broken), Quote: quote})
}

// playScript has the script of a campaign played as often as it asks for.
func (s *Service) playScript(ctx context.Context, j *job, r place) error {
	return s.each(ctx, j, r, func(n int) model.WorkItem { return s.playItem(j, n, j.c.Spec.Seed+uint64(n)) }, func(model.RunSummary) {})
}

// playItem is the nth run of a campaign that plays a script.
func (s *Service) playItem(j *job, n int, seed uint64) model.WorkItem {
	w := model.WorkItem{Campaign: j.c.ID, Run: fmt.Sprintf("%s-r%04d", j.c.ID, n), Spec: j.c.Spec}
	w.Scenario = model.Scenario{ID: fmt.Sprintf("s%04d", n), Strategy: model.StrategyScripted, Seed: seed, Script: j.script.Name,
		Repeat: s.replayCommand(w.Run), Why: fmt.Sprintf("script %s, play %d", j.script.Name, n)}
	return w
}
