package wire

import "netsplit/model"

// DiagnosisCheck is one thing that was looked at in a testbed.
type DiagnosisCheck struct {
	About   string   `json:"about" doc:"switch DATAPATH or host NAME"`
	Name    string   `json:"name"`
	Level   string   `json:"level" enum:"ok,warn,fail"`
	Found   string   `json:"found"`
	Means   string   `json:"means,omitempty" doc:"What follows for what will work, and what to do"`
	Affects []string `json:"affects,omitempty" doc:"Abilities that depend on it"`
}

// Ability is how well something will work.
type Ability struct {
	Ability string   `json:"ability" doc:"cut, proof, gate-packet-in, gate-port, mirror, only or only-opening"`
	Level   string   `json:"level" enum:"ok,warn,fail"`
	Absent  bool     `json:"absent,omitempty" doc:"The testbed has nothing for it"`
	Why     []string `json:"why,omitempty"`
}

// Diagnosis is what a testbed is good for.
type Diagnosis struct {
	Testbed   string           `json:"testbed"`
	OK        bool             `json:"ok" doc:"The main job can be done: cuts, their proof, and the gate in one of its two ways"`
	Checks    []DiagnosisCheck `json:"checks"`
	Abilities []Ability        `json:"abilities"`
}

// FromDiagnosis converts a diagnosis.
func FromDiagnosis(d model.Diagnosis) Diagnosis {
	return Diagnosis{Testbed: d.Testbed, OK: d.OK,
		Checks: each(d.Checks, func(c model.DiagnosisCheck) DiagnosisCheck {
			return DiagnosisCheck{c.About, c.Name, string(c.Level), c.Found, c.Means, each(c.Affects, func(a model.Ability) string { return string(a) })}
		}),
		Abilities: each(d.Abilities, func(a model.AbilityStatus) Ability {
			return Ability{string(a.Ability), string(a.Level), a.Absent, a.Why}
		})}
}

// Model converts it back.
func (d Diagnosis) Model() model.Diagnosis {
	return model.Diagnosis{Testbed: d.Testbed, OK: d.OK,
		Checks: each(d.Checks, func(c DiagnosisCheck) model.DiagnosisCheck {
			return model.DiagnosisCheck{About: c.About, Name: c.Name, Level: model.CheckLevel(c.Level), Found: c.Found, Means: c.Means,
				Affects: each(c.Affects, func(a string) model.Ability { return model.Ability(a) })}
		}),
		Abilities: each(d.Abilities, func(a Ability) model.AbilityStatus {
			return model.AbilityStatus{Ability: model.Ability(a.Ability), Level: model.CheckLevel(a.Level), Absent: a.Absent, Why: a.Why}
		})}
}
