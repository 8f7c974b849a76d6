package doctor

import (
	"slices"
	"strings"

	"netsplit/model"
)

func worse(a, b model.CheckLevel) model.CheckLevel {
	if order := []model.CheckLevel{model.CheckOK, model.CheckWarn, model.CheckFail}; slices.Index(order, a) < slices.Index(order, b) {
		return b
	}
	return a
}

// gist is what was found up to its details: those stand with the check. Addresses have
// colons, too.
func gist(found string) string {
	found, _, _ = strings.Cut(found, ";")
	found, _, _ = strings.Cut(found, ": ")
	return found
}

// Conclude derives the abilities from the checks; absent lists those that the
// testbed has nothing for, and why.
func Conclude(d *model.Diagnosis, absent map[model.Ability]string) {
	level := map[model.Ability]model.CheckLevel{}
	d.Abilities = nil
	for _, a := range []model.Ability{model.AbilityCut, model.AbilityProof, model.AbilityPacketIn, model.AbilityPort, model.AbilityMirror, model.AbilityOnly, model.AbilityOpening} {
		st := model.AbilityStatus{Ability: a, Level: model.CheckOK}
		for _, c := range d.Checks {
			for _, x := range c.Affects {
				if x == a && c.Level != model.CheckOK {
					st.Level = worse(st.Level, c.Level)
					st.Why = append(st.Why, c.About+": "+c.Name+": "+gist(c.Found))
				}
			}
		}
		if why, is := absent[a]; is {
			st = model.AbilityStatus{Ability: a, Level: model.CheckWarn, Absent: true, Why: []string{why}}
		}
		level[a] = st.Level
		if st.Absent {
			level[a] = model.CheckFail
		}
		d.Abilities = append(d.Abilities, st)
	}
	d.OK = level[model.AbilityCut] != model.CheckFail && level[model.AbilityProof] != model.CheckFail &&
		(level[model.AbilityPacketIn] != model.CheckFail || level[model.AbilityPort] != model.CheckFail)
}
