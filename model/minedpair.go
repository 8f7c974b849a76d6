package model

// MinedPair says what the miner made of two variables of one kind.
type MinedPair struct {
	A, B VarRef
	Kept PairKept
	Why  string
}

// PairKept says whether a pair of variables is an invariant.
type PairKept string

// What a pair can be. A weak invariant may be chance: a campaign uses weak ones only if it has
// no others.
const (
	PairKeptYes  PairKept = "yes"
	PairKeptWeak PairKept = "weak"
	PairKeptNo   PairKept = "no"
)

// MinedPairs are the pairs of variables in the clean runs of a campaign, those that are
// invariants first.
type MinedPairs struct {
	Pairs     []MinedPair
	CleanRuns int // that were mined
	// Kept and Rejected count the pairs. Points counts those kept once for each message type, as
	// the CoFI paper does; Scarce the rejected that changed and never differed.
	Kept, Points, Rejected, Scarce int
	// Torn says which clean runs were not mined, as their records lack something.
	Torn []string
}
