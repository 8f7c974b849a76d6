package model

// Comparison says how the findings of a campaign differ from those of an earlier one on the
// same target. Findings are the same if check and signature are.
type Comparison struct {
	Campaign, Before Compared
	// New are findings of the campaign that Before lacks, Still those of both, and Gone those
	// of Before that the campaign lacks: it did not show them, which is no proof that they are
	// mended. Rows (Finding.Row), the costliest first.
	New, Still, Gone []Finding
}

// Compared is what a comparison says of a campaign.
type Compared struct {
	ID string
	// Judged counts the fault runs that pass or fail.
	Judged int
}
