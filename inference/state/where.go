package state

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"netsplit/model"
)

// condition is what a field of a message must match for a source to read it.
type condition struct {
	field string
	re    *regexp.Regexp
}

func conditions(where map[string]string) ([]condition, error) {
	var out []condition
	for _, field := range slices.Sorted(maps.Keys(where)) {
		re, err := regexp.Compile(where[field])
		if err != nil {
			return nil, fmt.Errorf("where, field %s: %w", field, err)
		}
		out = append(out, condition{field, re})
	}
	return out, nil
}

// failed is the first field that a message lacks, or that is not as it must be; ""
// if all are.
func failed(cs []condition, m *model.Message) string {
	for _, c := range cs {
		if v, ok := m.Field(c.field); !ok || !c.re.MatchString(v) {
			return c.field
		}
	}
	return ""
}

// Reads compiles which messages a message source reads: those of its type (typed)
// of which no field fails its conditions.
func Reads(s model.VarSource) (func(m *model.Message) (typed bool, field string), error) {
	cs, err := conditions(s.Where)
	if err != nil {
		return nil, err
	}
	pattern, types := typePattern(s.Type), map[string]bool{}
	return func(m *model.Message) (bool, string) {
		typed, known := types[m.Type]
		if !known {
			typed = pattern.MatchString(m.Type)
			types[m.Type] = typed
		}
		if !typed {
			return false, ""
		}
		return true, failed(cs, m)
	}, nil
}
