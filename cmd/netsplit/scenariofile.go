package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"netsplit/api/wire"
	"netsplit/model"
)

// scenarioFile is a scenario with the lines of its steps.
type scenarioFile struct {
	name  string
	spec  *wire.ScenarioSpec
	lines []int
}

// parseScenario reads a scenario of YAML or JSON. It refuses keys that there are not, and says
// where what it refuses stands.
func parseScenario(name string, b []byte) (*scenarioFile, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(b, &doc); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	f := &scenarioFile{name: name, spec: &wire.ScenarioSpec{}}
	if len(doc.Content) == 0 {
		return nil, fmt.Errorf("%s: it is empty: give it steps", name)
	}
	if err := decodeNode(doc.Content[0], reflect.ValueOf(f.spec).Elem()); err != nil {
		return nil, fmt.Errorf("%s:%w", name, err)
	}
	f.lines = stepLines(doc.Content[0])
	return f, nil
}

// stepLines are the lines of the steps, or of what is read as steps.
func stepLines(n *yaml.Node) (out []int) {
	at := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		at[n.Content[i].Value] = n.Content[i+1]
	}
	for _, key := range []string{"steps", "faults"} {
		if at[key] != nil {
			for _, s := range at[key].Content {
				out = append(out, s.Line)
			}
		}
	}
	if at["cut"] != nil {
		out = append(out, at["cut"].Line)
	}
	return out
}

var namedStep = regexp.MustCompile(`step (\d+)|(?:steps|faults)\[(\d+)\]`)

// located says where the steps stand that an answer names.
func (f *scenarioFile) located(err error) error {
	if !errors.Is(err, model.ErrInvalid) {
		return err
	}
	at, others := f.where(err.Error())
	if at == "" {
		return err
	}
	return fmt.Errorf("%s%w%s", at, err, others)
}

// where is the place of the first step that a text names, "FILE:LINE: ", and the lines of the
// others, " (step 1: line 2)".
func (f *scenarioFile) where(text string) (at, others string) {
	var seen []int
	for _, m := range namedStep.FindAllStringSubmatch(text, -1) {
		i, _ := strconv.Atoi(m[1] + m[2])
		if m[1] != "" {
			i--
		}
		switch {
		case i < 0 || i >= len(f.lines) || slices.Contains(seen, i):
			continue
		case len(seen) == 0:
			at = fmt.Sprintf("%s:%d: ", f.name, f.lines[i])
		default:
			others += fmt.Sprintf(" (step %d: line %d)", i+1, f.lines[i])
		}
		seen = append(seen, i)
	}
	return at, others
}

// decodeNode fills v, whose fields are named by their JSON tags. Errors begin with the line.
func decodeNode(n *yaml.Node, v reflect.Value) error {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	_, own := v.Addr().Interface().(json.Unmarshaler)
	switch {
	case v.Kind() == reflect.Pointer:
		if n.Tag == "!!null" {
			return nil
		}
		v.Set(reflect.New(v.Type().Elem()))
		return decodeNode(n, v.Elem())
	case v.Kind() == reflect.Struct && !own:
		if n.Kind != yaml.MappingNode {
			return fmt.Errorf("%d: keys and values are expected here: %s", n.Line, strings.Join(keysOf(v), ", "))
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := n.Content[i]
			f := fieldOf(v, k.Value)
			if !f.IsValid() {
				return fmt.Errorf("%d: unknown key %q: there are %s", k.Line, k.Value, strings.Join(keysOf(v), ", "))
			}
			if err := decodeNode(n.Content[i+1], f); err != nil {
				return err
			}
		}
		return nil
	case v.Kind() == reflect.Slice && !own:
		if n.Kind != yaml.SequenceNode {
			return fmt.Errorf("%d: a list is expected here", n.Line)
		}
		for _, c := range n.Content {
			e := reflect.New(v.Type().Elem()).Elem()
			if err := decodeNode(c, e); err != nil {
				return err
			}
			v.Set(reflect.Append(v, e))
		}
		return nil
	}
	var value any
	err := n.Decode(&value)
	if _, text := value.(string); v.Kind() == reflect.String && !text && n.Kind == yaml.ScalarNode {
		value = n.Value // a word that YAML takes for a number
	}
	var b []byte
	if err == nil {
		b, err = json.Marshal(value)
	}
	if err == nil {
		err = json.Unmarshal(b, v.Addr().Interface())
	}
	if err != nil {
		return fmt.Errorf("%d: %s: %w", n.Line, n.Value, err)
	}
	return nil
}

// fieldOf is the field of a struct with a JSON name; invalid: it has none.
func fieldOf(v reflect.Value, key string) reflect.Value {
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if name == key {
			return v.Field(i)
		}
	}
	return reflect.Value{}
}

func keysOf(v reflect.Value) (out []string) {
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
