package sut

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// schema walks YAML nodes along the Go types they will be decoded into. It
// collects what does not fit and remembers at which line each path stands, so
// that later problems have a line too.
type schema struct {
	what     string // kind of file, such as "target file"
	lines    map[string]int
	blocks   map[string]int // where the first line of a text of several lines stands
	problems []Problem
	nodes    int // visited, aliases followed
	merging  map[*yaml.Node]bool
}

func newSchema() *schema {
	return &schema{what: "target file", lines: map[string]int{"": 1}, blocks: map[string]int{}, merging: map[*yaml.Node]bool{}}
}

// error returns the collected problems by line, then path.
func (s *schema) error(file string) *Error {
	slices.SortStableFunc(s.problems, func(a, b Problem) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return strings.Compare(a.Path, b.Path)
	})
	s.problems = slices.Compact(s.problems)
	return &Error{File: file, Problems: s.problems}
}

// addf notes a problem at a path; its line is that of the path or of the
// nearest part of it that stands in the file.
func (s *schema) addf(path, format string, args ...any) {
	s.addfIn(path, 1, format, args...)
}

func (s *schema) addfIn(path string, line int, format string, args ...any) {
	at := s.lineOf(path)
	if first, ok := s.blocks[path]; ok {
		at = first + line - 1
	}
	s.problems = append(s.problems, Problem{Line: at, Path: path, Text: fmt.Sprintf(format, args...)})
}

// lineOf is the line at which a path stands in the file, or the nearest part of
// it that does.
func (s *schema) lineOf(path string) int {
	for p := path; ; {
		if l, ok := s.lines[p]; ok {
			return l
		}
		i := strings.LastIndexAny(p, ".[")
		if i < 0 {
			return 1
		}
		p = p[:i]
	}
}

func (s *schema) wrongType(n *yaml.Node, path, want string) {
	s.problems = append(s.problems, Problem{Line: n.Line, Path: path, Text: fmt.Sprintf("want %s, found %s", want, describe(n))})
}

var durationType = reflect.TypeFor[time.Duration]()

// maxDepth and maxNodes stop alias loops and hostile nesting; a target file is
// 6 deep and has a few hundred values.
const (
	maxDepth = 20
	maxNodes = 20000
)

func (s *schema) walk(n *yaml.Node, t reflect.Type, path string, depth int) {
	n = followed(n)
	if s.nodes++; s.nodes > maxNodes {
		if s.nodes == maxNodes+1 {
			s.wrongType(n, path, fmt.Sprintf("a %s of at most %d values", s.what, maxNodes))
		}
		return
	}
	if depth > maxDepth {
		s.wrongType(n, path, fmt.Sprintf("a %s that is at most %d levels deep", s.what, maxDepth))
		return
	}
	if _, ok := s.lines[path]; !ok || path == "" {
		s.lines[path] = n.Line
	}
	if n.Kind == yaml.MappingNode {
		s.merge(n, path)
	}
	if n.Style&yaml.LiteralStyle != 0 {
		s.blocks[path] = n.Line + 1
	}
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" && path != "" {
		return // a key without a value is a key left out
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == durationType:
		if n.Kind != yaml.ScalarNode {
			s.wrongType(n, path, "a duration such as 1.5s")
		} else if d, err := time.ParseDuration(n.Value); err != nil {
			s.wrongType(n, path, "a duration with a unit, such as 1.5s or 200ms")
		} else if d < 0 {
			s.wrongType(n, path, "a duration that is not negative")
		}
	case t.Kind() == reflect.Struct:
		s.walkStruct(n, t, path, depth)
	case t.Kind() == reflect.Map:
		if n.Kind != yaml.MappingNode {
			s.wrongType(n, path, "a mapping (name: value)")
			return
		}
		seen := map[string]int{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := n.Content[i]
			if s.duplicate(k, seen, path) {
				continue
			}
			sub := join(path, k.Value)
			s.lines[sub] = k.Line
			s.walk(n.Content[i+1], t.Elem(), sub, depth+1)
		}
	case t.Kind() == reflect.Slice:
		if n.Kind != yaml.SequenceNode {
			want := "a list"
			if t.Elem().Kind() == reflect.String {
				want = "a list, such as [a, b]"
			}
			s.wrongType(n, path, want)
			return
		}
		for i, c := range n.Content {
			s.walk(c, t.Elem(), fmt.Sprintf("%s[%d]", path, i), depth+1)
		}
	case n.Kind != yaml.ScalarNode:
		s.wrongType(n, path, scalarName(t))
	case t.Kind() == reflect.Bool:
		if n.Tag != "!!bool" {
			s.wrongType(n, path, "true or false")
		}
	case (t.Kind() == reflect.Uint16 || t.Kind() == reflect.Int) && n.Tag == "!!str" && strings.Trim(n.Value, "0123456789") == "":
		s.wrongType(n, path, "a number without quotes")
	case t.Kind() == reflect.Uint16:
		if _, err := strconv.ParseUint(n.Value, 10, 16); err != nil {
			s.wrongType(n, path, "a number from 0 to 65535")
		}
	case t.Kind() == reflect.Int:
		if i, err := strconv.ParseInt(n.Value, 10, 32); err != nil || i < 0 {
			s.wrongType(n, path, "a whole number that is not negative")
		}
	}
}

func (s *schema) walkStruct(n *yaml.Node, t reflect.Type, path string, depth int) {
	if n.Kind != yaml.MappingNode {
		s.wrongType(n, path, "a mapping with the keys "+strings.Join(keysOf(t), ", "))
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if s.duplicate(k, seen, path) {
			continue
		}
		ft, ok := fieldOf(t, k.Value)
		if !ok {
			keys := keysOf(t)
			s.problems = append(s.problems, Problem{Line: k.Line, Path: path, Text: fmt.Sprintf("unknown key %q%s; allowed here: %s",
				k.Value, DidYouMean(k.Value, keys), strings.Join(keys, ", "))})
			continue
		}
		sub := join(path, k.Value)
		s.lines[sub] = k.Line
		s.walk(n.Content[i+1], ft, sub, depth+1)
	}
}

func (s *schema) duplicate(k *yaml.Node, seen map[string]int, path string) bool {
	if first, dup := seen[k.Value]; dup {
		s.problems = append(s.problems, Problem{Line: k.Line, Path: join(path, k.Value), Text: fmt.Sprintf("stands twice (first at line %d): keep one", first)})
		return true
	}
	seen[k.Value] = k.Line
	return false
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// keysOf lists a struct's YAML keys in the order of its fields.
func keysOf(t reflect.Type) []string {
	var out []string
	for i := range t.NumField() {
		name, how, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
		if how == "inline" {
			out = append(out, keysOf(t.Field(i).Type)...)
		}
		if name != "" && name != "-" {
			out = append(out, name)
		}
	}
	return out
}

func fieldOf(t reflect.Type, key string) (reflect.Type, bool) {
	for i := range t.NumField() {
		name, how, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
		if name == key && key != "-" && key != "" {
			return t.Field(i).Type, true
		}
		if how == "inline" {
			if ft, ok := fieldOf(t.Field(i).Type, key); ok {
				return ft, true
			}
		}
	}
	return nil, false
}

func scalarName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Uint16:
		return "a number from 0 to 65535"
	case reflect.Int:
		return "a whole number"
	}
	return "a text"
}

func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	if len(n.Value) > 40 {
		return strconv.Quote(n.Value[:40] + "…")
	}
	return strconv.Quote(n.Value)
}

// DidYouMean names the candidate nearest to a word, as ` (did you mean "one"?)`; "" if none is
// near.
func DidYouMean(word string, candidates []string) string {
	if len(word) < 3 {
		return "" // n4 is as near to n1 as to any
	}
	best, bestDist := "", 1+len(word)/3
	for _, c := range candidates {
		if d := distance(strings.ToLower(word), strings.ToLower(c)); d <= bestDist && (best == "" || d < bestDist) {
			best, bestDist = c, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}

func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diag := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			diag, row[j] = row[j], min(row[j]+1, row[j-1]+1, diag+cost)
		}
	}
	return row[len(b)]
}
