package main

import (
	"testing"

	"netsplit/api/wire"
)

// TestAStepSaysWhoHadItsRoleOrThatNobodyHad.
func TestAStepSaysWhoHadItsRoleOrThatNobodyHad(t *testing.T) {
	for want, s := range map[string]wire.StepResult{
		"crash n2: never began":                                 {Text: "crash n2"},
		"crash leader: could not begin: nobody had role leader": {Text: "crash leader", Lacked: "nobody had role leader"},
		"crash the machine n2: began at 1.000 s (time); its host went on to send 3 packets; a was n2; b was n3": {Text: "crash the machine n2", By: "time", Began: 1e9, Slip: 3, Roles: map[string]string{"b": "n3", "a": "n2"}},
	} {
		if got := stepWords(&s); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
