package prune

import (
	"fmt"
	"slices"
	"strings"

	"netsplit/explorer/sequence"
	"netsplit/model"
)

// Named is a policy that has a name.
type Named struct {
	Name string
	// Takes says what it takes: "" nothing, or "keys", which may be left out.
	Takes string
	// Does says in a sentence what it does, and where it is from.
	Does string
	make func(keys []string) sequence.Policy
}

// All lists the named policies, sorted. "only" and "file" are beside them: see Read.
func All() []Named {
	out := []Named{
		{"crash-before-send", "", "keeps crashes only before what others can see or a disk keeps (PreFail Figure 14)", filter("crash-before-send", crashBeforeSend)},
		{"during-recovery", "", "keeps sequences whose later faults are each at a point that no clean run has (FATE §4.3.1)", filter("during-recovery", duringRecovery)},
		{"first-only", "", "keeps faults at the first of several equal points, as of the reads of one message (PreFail §4.5.3)", filter("first-only", firstOnly)},
		{"ignore-nodes", "", "one of the sequences that differ in their nodes alone (PreFail Figure 9)", cluster("ignore-nodes", func([]string) keyFunc { return ignoreNodes })},
		{"leader-first", "", "keeps sequences whose first fault isolates whoever leads (NEAT study, Table 10)", filter("leader-first", leaderFirst)},
		{"new-location", "", "keeps sequences whose last fault is where no fault has occurred so far (PreFail Figure 4)", filter("new-location", newLocation)},
		{"not-to-crashed", "", "keeps no crash before a message to a node that a fault before crashed (PreFail Figure 15)", filter("not-to-crashed", notToCrashed)},
		{"prioritised", "keys", "FATE's strategy (FATE §4.3)", func(keys []string) sequence.Policy { return sequence.Prioritised(pointKeys(keys)) }},
		{"recovery", "keys", "one of the sequences with equal last faults whose prefixes lead to the same recovery, by these keys (PreFail Figure 13)", cluster("recovery", recovery)},
		{"recovery-pairs", "keys", "keeps sequences enough for each point of a recovery, by these keys, to come before each last fault (pairwise coverage)", func(keys []string) sequence.Policy { return sequence.Pairs(pointKeys(keys)) }},
		{"same-first", "keys", "of single faults with equal points, by these keys (default node), the first one; the later faults are what is searched", sameFirst},
		{"same-last", "keys", "one of the sequences with equal last faults, by these keys (PreFail Figures 6 and 10)", cluster("same-last", sameLast)},
	}
	return out
}

type keyFunc = func(c sequence.Candidate, k *sequence.Known) string

func filter(name string, keep func(c sequence.Candidate, k *sequence.Known) string) func([]string) sequence.Policy {
	return func([]string) sequence.Policy {
		return sequence.Filter{Title: name, Keep: func(c sequence.Candidate, k *sequence.Known) (string, error) { return keep(c, k), nil }}
	}
}

func cluster(name string, by func(keys []string) keyFunc) func([]string) sequence.Policy {
	return func(keys []string) sequence.Policy {
		key, title := by(keys), name
		if len(keys) > 0 {
			title += " by " + strings.Join(keys, ", ")
		}
		return sequence.Cluster{Title: title, Key: func(c sequence.Candidate, k *sequence.Known) (string, bool, error) { return key(c, k), false, nil }}
	}
}

// pointKeys are the keys of points among those named; a key of the paper stands for
// those that it is made of.
func pointKeys(keys []string) []model.PointKey {
	var out []model.PointKey
	for _, k := range keys {
		of := []string{k}
		if a, ok := aliases[k]; ok {
			of = a.of
		}
		for _, n := range of {
			if p := model.PointKey(n); slices.Contains(model.PointKeys(), p) && !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	return out
}

func crashBeforeSend(c sequence.Candidate, _ *sequence.Known) string {
	for _, f := range c.Faults {
		if f.Kind == model.PointCrash && (ioType(f.Point) != "write" || f.Place != model.PlaceBefore) {
			return "a crash " + string(f.Place) + " " + string(f.Side) + " changes what the node alone knows"
		}
	}
	return ""
}

func notToCrashed(c sequence.Candidate, _ *sequence.Known) string {
	for i, f := range c.Faults {
		if f.Kind != model.PointCrash || f.Side != model.SideSend {
			continue
		}
		if slices.ContainsFunc(c.Faults[:i], func(g model.PointFault) bool { return g.Kind == model.PointCrash && g.Node == f.Peer }) {
			return fmt.Sprintf("a message of %s that does not reach %s, which crashed before", f.Node, f.Peer)
		}
	}
	return ""
}

func firstOnly(c sequence.Candidate, _ *sequence.Known) string {
	for _, f := range c.Faults {
		if f.Nth > 1 {
			return "number " + f.Value(model.KeyNth) + " of equal points"
		}
	}
	return ""
}

func duringRecovery(c sequence.Candidate, k *sequence.Known) string {
	for i, id := range c.IDs[1:] {
		if k.Independent(id) {
			return fmt.Sprintf("fault %d is at a point that a clean run has", i+2)
		}
	}
	return ""
}

func newLocation(c sequence.Candidate, k *sequence.Known) string {
	loc := location(c.Last().Point)
	if k.Explored(func(f model.PointFault) bool { return location(f.Point) == loc }) {
		return "a fault at " + loc + " has occurred"
	}
	return ""
}

// ignoreNodes leaves out who both ends are: the peer is a node, too.
func ignoreNodes(c sequence.Candidate, k *sequence.Known) string {
	return identities(c.Faults, slices.DeleteFunc(slices.Clone(k.Keys()), func(k model.PointKey) bool { return k == model.KeyNode || k == model.KeyPeer }))
}

func identities(faults []model.PointFault, keys []model.PointKey) string {
	var b strings.Builder
	for _, f := range faults {
		fmt.Fprintf(&b, "%s %s %s\n", f.Kind, f.Place, f.Identity(keys))
	}
	return b.String()
}

func sameFirst(keys []string) sequence.Policy {
	c := cluster("same-first", func(keys []string) keyFunc {
		by := pointKeys(keys)
		if len(by) == 0 {
			by = []model.PointKey{model.KeyNode}
		}
		return func(c sequence.Candidate, k *sequence.Known) string {
			if len(c.IDs) > 1 {
				return c.IDs.String()
			}
			return identities(c.Faults, by)
		}
	})(keys).(sequence.Cluster)
	c.First = true
	return c
}

func sameLast(keys []string) keyFunc {
	by := pointKeys(keys)
	return func(c sequence.Candidate, k *sequence.Known) string {
		if len(by) == 0 {
			return string(c.IDs[len(c.IDs)-1])
		}
		return identities(c.Faults[len(c.Faults)-1:], by)
	}
}

func recovery(keys []string) keyFunc {
	by := pointKeys(keys)
	if len(by) == 0 {
		by = pointKeys([]string{"loc"})
	}
	return func(c sequence.Candidate, k *sequence.Known) string {
		var rec []string
		if len(c.IDs) > 1 {
			rec, _ = k.Recovery(c.Prefix(), by)
		}
		return strings.Join(rec, "\n") + "\n\n" + string(c.IDs[len(c.IDs)-1])
	}
}
