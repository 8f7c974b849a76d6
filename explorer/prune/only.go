package prune

import (
	"fmt"
	"slices"
	"strings"

	"netsplit/explorer/sequence"
	"netsplit/model"
)

// OnlyName is the name of the policy that Only makes.
const OnlyName = "only"

// Only is the policy that keeps sequences all of whose faults have, of each key, one of the
// values; * stands for any text (FATE §4.2.3, filters). Keys are those of fits, fault, and id, that
// of the fault.
func Only(want map[string][]string) (sequence.Policy, error) {
	of := map[string][]string{}
	for name, values := range want {
		k, err := onlyKey(name)
		if err != nil {
			return nil, err
		}
		if len(values) == 0 {
			return nil, fmt.Errorf("only %s: no value is given", name)
		}
		of[k] = values
	}
	return only(of), nil
}

// onlyKey is the key of a fit that a user means.
func onlyKey(name string) (string, error) {
	if name == "fault" {
		return keyFailure, nil
	}
	if name == keyID {
		return name, nil
	}
	if !slices.Contains(allKeys(), name) {
		return "", fmt.Errorf("a fault has no key %q: there are fault, id, %s", name, strings.Join(allKeys()[1:], ", "))
	}
	return name, nil
}

// keyID is the key of Only that is no key of a fit.
const keyID = "id"

func only(want map[string][]string) sequence.Policy {
	return sequence.Filter{Title: OnlyName, Keep: func(c sequence.Candidate, _ *sequence.Known) (string, error) {
		for i, f := range c.Faults {
			for _, k := range append(allKeys(), keyID) {
				v := string(c.IDs[i])
				if k != keyID {
					v = value(f, k)
				}
				if vs, asked := want[k]; asked && !slices.ContainsFunc(vs, func(p string) bool { return model.MatchType(p, v) }) {
					return fmt.Sprintf("%s %q is not asked for", k, v), nil
				}
			}
		}
		return "", nil
	}}
}
