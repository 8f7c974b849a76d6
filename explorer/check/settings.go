package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"netsplit/model"
)

// setting describes one key of CheckSpec.With.
type setting struct {
	def  string
	help string
	// kind is "", "duration", "bool", "count" or "variable".
	kind string
	// min is the smallest count that makes sense.
	min int
}

// settings are the values of one check, defaults filled in and checked.
type settings map[string]string

func (s settings) duration(k string) time.Duration { d, _ := time.ParseDuration(s[k]); return d }

func (s settings) count(k string) int { n, _ := strconv.Atoi(s[k]); return n }

func (s settings) bool(k string) bool { return s[k] == "true" }

// list splits a value at commas and spaces.
func (s settings) list(k string) []string {
	return strings.FieldsFunc(s[k], func(r rune) bool { return r == ',' || r == ' ' })
}

// settings fills in defaults and says what is wrong with the given values.
func (c checker) settings(spec model.CheckSpec) (settings, []SettingProblem) {
	out := settings{}
	for k, v := range c.with {
		out[k] = v.def
	}
	var problems []SettingProblem
	for _, k := range sortedKeys(spec.With) {
		d, ok := c.with[k]
		v := spec.With[k]
		if !ok {
			problems = append(problems, SettingProblem{k, fmt.Sprintf("check %s has no setting %q", c.name, k), k, sortedKeys(c.with)})
			continue
		}
		out[k] = v
		var err error
		want := ""
		if v == "" && d.def == "" {
			continue // not set
		}
		switch d.kind {
		case "duration":
			want = "a duration such as 1.5s"
			_, err = time.ParseDuration(v)
		case "count":
			want = fmt.Sprintf("a count of %d or more", d.min)
			if n, e := strconv.Atoi(v); e != nil || n < d.min {
				err = strconv.ErrSyntax
			}
		case "bool":
			want = "true or false"
			if v != "true" && v != "false" {
				err = strconv.ErrSyntax
			}
		}
		if err != nil {
			problems = append(problems, SettingProblem{Setting: k, Text: fmt.Sprintf("want %s, found %q", want, v)})
		}
	}
	return out, problems
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
