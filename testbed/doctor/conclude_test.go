package doctor

import (
	"slices"
	"testing"

	"netsplit/model"
)

// TestWhatWillNotWorkSaysWhy in a few words: what was found up to its details, whole
// addresses included.
func TestWhatWillNotWorkSaysWhy(t *testing.T) {
	for found, want := range map[string]string{
		"none has MAC 02:00:00:00:00:01; there are eth0": "host a: interface: none has MAC 02:00:00:00:00:01",
		"no switch: it refused the session":              "host a: interface: no switch",
		"gone":                                           "host a: interface: gone",
	} {
		var d model.Diagnosis
		d.Checks = append(d.Checks, model.DiagnosisCheck{About: "host a", Name: "interface", Found: found, Level: model.CheckFail, Affects: []model.Ability{model.AbilityCut}})
		Conclude(&d, nil)
		i := slices.IndexFunc(d.Abilities, func(a model.AbilityStatus) bool { return a.Ability == model.AbilityCut })
		if why := d.Abilities[i].Why; d.Abilities[i].Level != model.CheckFail || !slices.Equal(why, []string{want}) {
			t.Errorf("%q: %q", found, why)
		}
	}
}
