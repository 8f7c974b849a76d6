package policy

import (
	"math/rand/v2"
	"time"

	"netsplit/model"
)

// Offsets draws when a random scenario cuts and heals, as offsets from the
// start of the workload: the first uniform in [0, longest], the second uniform
// in [first, longest] (CoFI §5.1.3). It applies to every target.
func Offsets(r *rand.Rand, longest time.Duration) (cut, heal time.Duration) {
	longest = max(longest, 0)
	cut = time.Duration(r.Int64N(int64(longest) + 1))
	heal = cut + time.Duration(r.Int64N(int64(longest-cut)+1))
	return cut, max(heal, 1) // 0 would mean that no offset heals
}

// Node draws the host that a random scenario isolates, uniformly. It applies
// where nodes is not empty and returns "" where it is.
func Node(r *rand.Rand, nodes []model.NodeID) model.NodeID {
	if len(nodes) == 0 {
		return ""
	}
	return nodes[r.IntN(len(nodes))]
}
