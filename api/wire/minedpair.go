package wire

import "netsplit/model"

// MinedPairs are the pairs of variables in the clean runs of a campaign.
type MinedPairs struct {
	Items     []MinedPair `json:"items" doc:"Those that are invariants first"`
	CleanRuns int         `json:"cleanRuns" doc:"Clean runs that were mined"`
	Kept      int         `json:"kept" doc:"Pairs that are invariants"`
	Points    int         `json:"points" doc:"The same if each message type counts, as in the CoFI paper"`
	Rejected  int         `json:"rejected" doc:"Pairs that are none"`
	Scarce    int         `json:"scarce" doc:"Of these: those that changed and never differed"`
	Torn      []string    `json:"torn,omitempty" doc:"Clean runs that were not mined, with what their records lack"`
}

// MinedPair is what the miner made of two variables.
type MinedPair struct {
	A    string `json:"a" example:"status[n1]@n2"`
	B    string `json:"b" example:"status[n1]@n3"`
	Kept string `json:"kept" enum:"yes,weak,no" doc:"weak: it may be chance; a campaign uses weak invariants only if it has no others"`
	Why  string `json:"why" doc:"Where it was seen; of one that was not kept: what it lacks, at the message where it came nearest to an invariant"`
}

// FromMinedPairs converts an answer.
func FromMinedPairs(m model.MinedPairs) MinedPairs {
	return MinedPairs{CleanRuns: m.CleanRuns, Kept: m.Kept, Points: m.Points, Rejected: m.Rejected, Scarce: m.Scarce, Torn: m.Torn,
		Items: each(m.Pairs, func(p model.MinedPair) MinedPair {
			return MinedPair{A: p.A.String(), B: p.B.String(), Kept: string(p.Kept), Why: p.Why}
		})}
}
