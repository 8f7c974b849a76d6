package sequence

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"netsplit/model"
)

// Candidate is a sequence that could be run.
type Candidate struct {
	Faults []model.PointFault
	IDs    model.Sequence
}

// Last is the fault that ends it.
func (c Candidate) Last() model.PointFault { return c.Faults[len(c.Faults)-1] }

// Prefix is the sequence without its last fault: the one in whose run the last fault's
// point was seen.
func (c Candidate) Prefix() model.Sequence { return c.IDs[:len(c.IDs)-1] }

// FaultAt is a kind of fault, and the points at which a search may place it.
type FaultAt struct {
	Kind  model.PointFaultKind `json:"fault"`
	Side  model.Side           `json:"side"`
	Place model.FaultPlace     `json:"place"`
}

// AllKinds lists what each side of a point can have: the possible failure modes of FATE
// §4.1.
func AllKinds() []FaultAt {
	return []FaultAt{
		{model.PointCrash, model.SideSend, model.PlaceBefore},
		{model.PointCrash, model.SideSend, model.PlaceAfter},
		{model.PointIsolate, model.SideSend, model.PlaceBefore},
		{model.PointLose, model.SideSend, model.PlaceBefore},
		{model.PointCrash, model.SideReceive, model.PlaceBefore},
		{model.PointIsolate, model.SideReceive, model.PlaceBefore},
		{model.PointCrash, model.SideFile, model.PlaceBefore},
		{model.PointDiskError, model.SideFile, model.PlaceBefore},
		{model.PointDiskFailure, model.SideFile, model.PlaceBefore},
		{model.PointCorrupt, model.SideFile, model.PlaceBefore},
		{model.PointPowerCut, model.SideSend, model.PlaceAfter},
		{model.PointPowerCut, model.SideFile, model.PlaceBefore},
	}
}

// Rare lists kinds of faults that FATE does not have: faults of all nodes at once, the isolation
// of two nodes, pauses, shifts, and files whose end is gone. A search has those that it is told.
func Rare() []FaultAt {
	return []FaultAt{
		{model.PointTorn, model.SideFile, model.PlaceBefore},
		{model.PointBoth, model.SideSend, model.PlaceBefore},
		{model.PointPause, model.SideSend, model.PlaceAfter},
		{model.PointPause, model.SideReceive, model.PlaceBefore},
		{model.PointShiftCrash, model.SideSend, model.PlaceBefore},
		{model.PointShiftPowerCut, model.SideSend, model.PlaceBefore},
		{model.PointCrashAll, model.SideSend, model.PlaceAfter},
		{model.PointPowerCutAll, model.SideSend, model.PlaceAfter},
		{model.PointPowerCutAll, model.SideFile, model.PlaceBefore},
	}
}

// FaultsAt lists the faults of these kinds that a point can have, in their order. Only a file
// that is about to be synced is corrupted or torn: it was written, and no crash is bound to keep it.
func FaultsAt(kinds []FaultAt, p model.Point) []model.PointFault {
	var out []model.PointFault
	for _, k := range kinds {
		synced := strings.HasPrefix(p.Type, string(model.FileSync)+" ") && !strings.HasSuffix(p.Type, "/")
		if k.Side == p.Side && (synced || k.Kind != model.PointCorrupt && k.Kind != model.PointTorn) {
			out = append(out, model.PointFault{Point: p, Kind: k.Kind, Place: k.Place})
		}
	}
	return out
}

// Known is what the runs of a search have shown so far. Policies ask it; it is
// PreFail's library (§3.2).
type Known struct {
	keys   []model.PointKey
	kinds  []FaultAt
	points *points
	ids    map[model.PointFault]model.FaultID
	clean  []*ran // by place; nil: no result
	normal []int  // points of clean runs, in order of first appearance
	open   []int  // those of them at which a fault could begin
	isNorm map[int]bool
	isOpen map[int]bool
	ofNorm map[model.FaultID]uint64 // faults at normal points, each with the seed of a clean run that had the point
	runs   map[string]*ran
	played []model.PointFault // faults that occurred in a run, in order of first appearance
	isSet  map[model.FaultID]bool
	seed   uint64
	depth  int
	// behaviour caches Recovery, by keys and sequence; ordinary caches the identities of the
	// points of clean runs, by keys.
	behaviour map[string][]string
	ordinary  map[string]map[string]bool
}

// ran is a run in which all faults occurred. all are its points, after those after its last
// fault, open those of after at which a further fault could begin; each in order of first
// appearance.
type ran struct {
	seed             uint64
	all, after, open []int
}

func newKnown(cfg Config) *Known {
	return &Known{
		keys: cfg.identity(), kinds: cfg.Kinds, points: newPoints(cfg.identity()), seed: cfg.Seed, clean: make([]*ran, max(0, cfg.Clean)),
		ids: map[model.PointFault]model.FaultID{}, isNorm: map[int]bool{}, isOpen: map[int]bool{}, ofNorm: map[model.FaultID]uint64{}, runs: map[string]*ran{}, isSet: map[model.FaultID]bool{},
		behaviour: map[string][]string{}, ordinary: map[string]map[string]bool{},
	}
}

// ID is the id of a fault by the search's keys.
func (k *Known) ID(f model.PointFault) model.FaultID {
	id, ok := k.ids[f]
	if !ok {
		id = f.ID(k.keys)
		k.ids[f] = id
	}
	return id
}

func (k *Known) addClean(place int, p model.Profile, seed uint64) {
	r := &ran{seed: seed}
	r.all, r.open = k.points.of(p, 0)
	k.clean[place] = r
}

// endClean takes stock when all clean runs have ended. It is false if none has a profile.
func (k *Known) endClean() bool {
	some := false
	for _, r := range k.clean {
		if r == nil {
			continue
		}
		some = true
		for _, i := range r.open {
			if !k.isOpen[i] {
				k.isOpen[i] = true
				k.open = append(k.open, i)
			}
		}
		for _, i := range r.all {
			if k.isNorm[i] {
				continue
			}
			k.isNorm[i] = true
			k.normal = append(k.normal, i)
			for _, f := range FaultsAt(k.kinds, k.points.at(i)) {
				k.ofNorm[k.ID(f)] = r.seed
			}
		}
	}
	return some
}

// seedFor is the seed of a run that had the point of the candidate's last fault: with this
// seed the point is most likely to come again.
func (k *Known) seedFor(c Candidate) uint64 {
	if r := k.runs[c.Prefix().String()]; r != nil {
		return r.seed
	}
	return k.ofNorm[c.IDs[0]]
}

func (k *Known) addRun(c Candidate, p model.Profile, seed uint64) {
	r := &ran{seed: seed}
	r.all, _ = k.points.of(p, 0)
	r.after, r.open = k.points.of(p, len(c.IDs))
	k.runs[c.IDs.String()] = r
	for i, id := range c.IDs {
		if !k.isSet[id] {
			k.isSet[id] = true
			k.played = append(k.played, c.Faults[i])
		}
	}
}

// faults lists the faults that points can have.
func (k *Known) faults(at []int) []model.PointFault {
	var out []model.PointFault
	for _, i := range at {
		out = append(out, FaultsAt(k.kinds, k.points.at(i))...)
	}
	return out
}

// Keys are what makes two points one.
func (k *Known) Keys() []model.PointKey { return k.keys }

// Independent says that a fault's point is in some clean profile: it needs no other
// fault to come (FATE §4.3.2). Otherwise it depends on those before it (§4.3.1).
func (k *Known) Independent(id model.FaultID) bool {
	_, ok := k.ofNorm[id]
	return ok
}

// All lists the faults that could have occurred in the run of a sequence, as first met;
// for an empty one, in any clean run (allFits, PreFail §3.2).
func (k *Known) All(s model.Sequence) ([]model.PointFault, error) {
	if len(s) == 0 {
		return k.faults(k.normal), nil
	}
	r, err := k.of(s)
	if err != nil {
		return nil, err
	}
	return k.faults(r.all), nil
}

// After lists those of All that could have occurred after the sequence's last fault
// (postInjectionFits, PreFail §3.2).
func (k *Known) After(s model.Sequence) ([]model.PointFault, error) {
	if len(s) == 0 {
		return k.faults(k.normal), nil
	}
	r, err := k.of(s)
	if err != nil {
		return nil, err
	}
	return k.faults(r.after), nil
}

// next lists the faults that may follow a sequence: those of After at points that came while
// a fault could still begin.
func (k *Known) next(s model.Sequence) ([]model.PointFault, error) {
	if len(s) == 0 {
		return k.faults(k.open), nil
	}
	r, err := k.of(s)
	if err != nil {
		return nil, err
	}
	return k.faults(r.open), nil
}

func (k *Known) of(s model.Sequence) (*ran, error) {
	if r := k.runs[s.String()]; r != nil {
		return r, nil
	}
	return nil, fmt.Errorf("the sequence %s was not run, so it has no profile: ask for a sequence that was run, such as the candidate without its last fault", s)
}

// Recovery is the behaviour that a sequence causes: the sorted identities, by the keys by,
// of the points that its run had after the last fault and that no clean run had (FATE
// §4.3.1: the subsequent failure ids; PreFail Figure 11). The record goes on until the
// target is stable again. It is false if the sequence was not run, or if its faults did not
// all occur.
func (k *Known) Recovery(s model.Sequence, by []model.PointKey) ([]string, bool) {
	r := k.runs[s.String()]
	if r == nil {
		return nil, false
	}
	keys := fmt.Sprint(by)
	if out, ok := k.behaviour[keys+s.String()]; ok {
		return out, true
	}
	if k.ordinary[keys] == nil {
		k.ordinary[keys] = map[string]bool{}
		for _, i := range k.normal {
			k.ordinary[keys][k.points.at(i).Identity(by)] = true
		}
	}
	var out []string
	for _, i := range r.after {
		if id := k.points.at(i).Identity(by); !k.ordinary[keys][id] {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	k.behaviour[keys+s.String()] = out
	return out, true
}

// Explored says whether a fault that fits has occurred in a run (explored, PreFail
// §3.2).
func (k *Known) Explored(fits func(model.PointFault) bool) bool {
	return slices.ContainsFunc(k.played, fits)
}

// chance is the random source for the choices of a level: a function of seed and depth.
func (k *Known) chance() *rand.Rand { return rand.New(rand.NewPCG(k.seed, uint64(k.depth))) }
