package run

import (
	"testing"
	"time"

	"netsplit/model"
)

// The proofs of a script's cuts together are those of all their links.
func TestMergedProofs(t *testing.T) {
	ab, cd := model.Link{Src: "a", Dst: "b"}, model.Link{Src: "c", Dst: "d"}
	cut := func(at time.Duration, known bool, links ...model.LinkProof) model.CutProof {
		c := model.CutProof{Proof: model.Proof{CutAt: at, InForceAt: at + 1, HealAt: at + 5, HealedAt: at + 6, LeakKnown: known, PerLink: links}}
		for _, l := range links {
			c.Proof.Links = append(c.Proof.Links, l.Link)
			c.Proof.Wanted, c.Proof.Dropped, c.Proof.Leaked = c.Proof.Wanted+l.Wanted, c.Proof.Dropped+l.Dropped, c.Proof.Leaked+l.Leaked
		}
		return c
	}
	cuts := []model.CutProof{cut(10, true, model.LinkProof{Link: cd, Wanted: 3, Dropped: 3}),
		cut(20, false, model.LinkProof{Link: ab, Wanted: 4, Dropped: 3, Leaked: 1}, model.LinkProof{Link: cd, Wanted: 1, Dropped: 1})}
	p := mergeProofs(cuts)
	if p.CutAt != 10 || p.InForceAt != 11 || p.HealAt != 25 || p.HealedAt != 26 || p.Wanted != 8 || p.Dropped != 7 || p.Leaked != 1 || p.LeakKnown {
		t.Errorf("%+v", p)
	}
	if len(p.Links) != 2 || p.Links[0] != ab || len(p.PerLink) != 2 || p.PerLink[1] != (model.LinkProof{Link: cd, Wanted: 4, Dropped: 4}) {
		t.Errorf("%+v", p)
	}
	if len(cuts[0].Proof.Links) != 1 || cuts[0].Proof.PerLink[0].Wanted != 3 {
		t.Errorf("merging changed what was merged: %+v", cuts[0])
	}
}
