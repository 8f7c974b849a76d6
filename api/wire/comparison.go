package wire

import "netsplit/model"

// Comparison says how the findings of a campaign differ from those of an earlier one.
// Findings are the same if check and signature are. They have no detail and no quote.
type Comparison struct {
	Campaign Compared  `json:"campaign"`
	Before   Compared  `json:"before"`
	New      []Finding `json:"new" doc:"Findings that the earlier campaign lacks"`
	Still    []Finding `json:"still" doc:"Findings of both, as in the later campaign"`
	Gone     []Finding `json:"gone" doc:"Findings of the earlier campaign that the later one did not show, which is no proof that they are mended"`
}

// Compared is what a comparison says of a campaign.
type Compared struct {
	ID     string `json:"id"`
	Judged int    `json:"judged" doc:"Number of fault runs that pass or fail"`
}

// FromComparison converts a comparison.
func FromComparison(c model.Comparison) Comparison {
	return Comparison{Campaign: Compared(c.Campaign), Before: Compared(c.Before), New: All(c.New, FromFinding), Still: All(c.Still, FromFinding), Gone: All(c.Gone, FromFinding)}
}
