package sequence

import "netsplit/model"

// points are the distinct points of all runs of a search: a run is then a list of
// numbers, however long its record is. A point has its identity, and nothing under other
// keys: what that would be depends on the run that had it first.
type points struct {
	keys  []model.PointKey
	known []model.Point
	place map[string]int // by identity
}

func newPoints(keys []model.PointKey) *points { return &points{keys: keys, place: map[string]int{}} }

func (t *points) at(i int) model.Point { return t.known[i] }

// of lists the points of a profile that were seen after a step or later ones, as first
// met, and those of them at which a fault could have begun.
func (t *points) of(p model.Profile, step int) (all, open []int) {
	seen := map[int]bool{}
	for _, s := range p.Points {
		if s.Step < step {
			continue
		}
		id := s.Identity(t.keys)
		i, ok := t.place[id]
		if !ok {
			i = len(t.known)
			t.place[id] = i
			t.known = append(t.known, t.restricted(s.Point))
		}
		if !seen[i] {
			seen[i] = true
			all = append(all, i)
			if !s.Beyond { // later ones are, too
				open = append(open, i)
			}
		}
	}
	return all, open
}

// restricted is a point without what is not its identity.
func (t *points) restricted(p model.Point) model.Point {
	var out model.Point
	for _, k := range t.keys {
		switch k {
		case model.KeySide:
			out.Side = p.Side
		case model.KeyNode:
			out.Node = p.Node
		case model.KeyPeer:
			out.Peer = p.Peer
		case model.KeyType:
			out.Type = p.Type
		case model.KeyPort:
			out.Port = p.Port
		case model.KeyAfter:
			out.After = p.After
		case model.KeyNth:
			out.Nth = min(p.Nth, model.PointMore)
		case model.KeyStage:
			out.Stage = p.Stage
		}
	}
	return out
}
