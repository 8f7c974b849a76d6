package relation

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"netsplit/model"
)

// File is a file of relations: facts read out of messages, views, and checks.
type File struct {
	Name   string // as errors name it
	Facts  []Fact
	Views  []View
	Checks []Check
}

// Fact is a table with a row for each message of a type, and for each of its values
// where a message has several fields of one name. Beside its own columns it has those
// of FactColumns.
type Fact struct {
	Name    string
	Message string // type; * stands for any text
	Columns []FactColumn
	// Each, where set, gives a row for each match in a field instead, and a column for each
	// of its named groups.
	Each *FactMatch
	line int
}

// FactColumn is the value of a field, NULL where a message lacks it.
type FactColumn struct {
	Name, Field string
	Int         bool // a number where the value is a whole one
	Optional    bool // that no message has it is no mistake
	line        int
}

// FactMatch are the matches of a regular expression in a field. The value of a group that
// is a whole number is one.
type FactMatch struct {
	Field  string
	Regexp *regexp.Regexp
	line   int
}

// FactColumns are the columns of table message that every fact has.
var FactColumns = []string{"n", "num", "t", "type", "src", "dst", "src_port", "dst_port", "fate", "passed_n"}

// View is a named query.
type View struct {
	Name string
	sql  source
}

// Check is a rule: each row that its query returns is a violation. It sees the record as
// of then at each of its moments.
type Check struct {
	Name  string
	Class model.FailureClass
	Quote string // sentence of the documentation
	// At is the table whose n are the moments at which it runs; "" is the end of the run.
	At string
	// WarnUntil, where set, is the table of the moments at which a row is a violation; at
	// those of At it is a warning.
	WarnUntil string
	// Unless, where set, is a table that says why rows are no violations: where it has rows
	// itself, over the whole run, nobody knows whether the check holds.
	Unless string
	// Line of the file at which it begins, from 1.
	Line int
	sql  source
}

// source is SQL and where it stands in its file.
type source struct {
	text string
	line int // of the first line of text
}

var (
	tableName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,62}$`)
	checkName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)
)

// MaxFile bounds a file of relations, in bytes.
const MaxFile = 256 << 10

// Parse reads a file of relations. The error lists all mistakes, with their lines, and
// wraps model.ErrInvalid. Whether the queries are right is for Compile to say.
func Parse(name string, b []byte) (*File, error) {
	p := &parser{file: &File{Name: name}, names: map[string]bool{"now": true}}
	for _, t := range Tables {
		p.names[t.Name] = true
	}
	if len(b) > MaxFile {
		return nil, fmt.Errorf("%w: %s is longer than %d KiB", model.ErrInvalid, name, MaxFile>>10)
	}
	var doc yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(b))
	if err := d.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: %s: %w", model.ErrInvalid, name, err)
	}
	if len(doc.Content) == 0 {
		return nil, fmt.Errorf("%w: %s is empty: write facts, views and checks", model.ErrInvalid, name)
	}
	p.top(doc.Content[0])
	if len(p.errs) > 0 {
		return nil, errors.Join(p.errs...)
	}
	return p.file, nil
}

type parser struct {
	file  *File
	names map[string]bool // of tables, in lower case as SQLite compares them
	errs  []error
}

func (f *File) errorf(line int, format string, args ...any) error {
	return fmt.Errorf("%w: %s:%d: %w", model.ErrInvalid, f.Name, line, fmt.Errorf(format, args...))
}

func (p *parser) addf(n *yaml.Node, format string, args ...any) {
	p.errs = append(p.errs, p.file.errorf(n.Line, format, args...))
}

// keys calls f with each key of a mapping and its value.
func (p *parser) keys(n *yaml.Node, what string, f func(key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		p.addf(n, "%s must be a mapping (key: value)", what)
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if seen[k.Value] {
			p.addf(k, "%s has %s twice", what, k.Value)
		}
		seen[k.Value] = true
		f(k, n.Content[i+1])
	}
}

func (p *parser) text(n *yaml.Node, what string) string {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.ScalarNode || strings.TrimSpace(n.Value) == "" {
		p.addf(n, "%s must be text", what)
		return ""
	}
	return n.Value
}

func (p *parser) query(n *yaml.Node, what string) source {
	s := source{p.text(n, what), n.Line}
	if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		s.line++
	}
	return s
}

func (p *parser) table(n *yaml.Node) string {
	switch name := strings.ToLower(n.Value); {
	case !tableName.MatchString(n.Value):
		p.addf(n, "%q is no name of a table: use letters, digits and _, a letter first", n.Value)
	case p.names[name]:
		p.addf(n, "there is a table %s already: take another name", n.Value)
	default:
		p.names[name] = true
	}
	return n.Value
}

func (p *parser) top(n *yaml.Node) {
	p.keys(n, "the file", func(k, v *yaml.Node) {
		switch k.Value {
		case "facts":
			p.keys(v, "facts", p.fact)
		case "views":
			p.keys(v, "views", func(k, v *yaml.Node) {
				p.file.Views = append(p.file.Views, View{p.table(k), p.query(v, "view "+k.Value)})
			})
		case "checks":
			if v.Kind != yaml.SequenceNode {
				p.addf(v, "checks must be a list")
				return
			}
			for _, c := range v.Content {
				p.check(c)
			}
		default:
			p.addf(k, "unknown key %q: a file of relations has facts, views and checks", k.Value)
		}
	})
}

func (p *parser) fact(k, v *yaml.Node) {
	f := Fact{Name: p.table(k), line: k.Line}
	var each FactMatch
	p.keys(v, "fact "+k.Value, func(k, v *yaml.Node) {
		switch k.Value {
		case "message":
			f.Message = p.text(v, "message")
		case "columns":
			if v.Kind != yaml.SequenceNode {
				p.addf(v, "columns must be a list, such as [block, node=target, term int]")
				return
			}
			for _, c := range v.Content {
				f.Columns = append(f.Columns, p.column(&f, c))
			}
		case "field":
			each.Field, each.line = p.text(v, "field"), v.Line
		case "regexp":
			var err error
			if each.Regexp, err = regexp.Compile(p.text(v, "regexp")); err != nil {
				p.addf(v, "fact %s: %v", f.Name, err)
			}
		default:
			p.addf(k, "unknown key %q: a fact has message, columns, field and regexp", k.Value)
		}
	})
	if each != (FactMatch{}) {
		f.Each = &each
		p.groups(k, f)
	}
	if f.Message == "" {
		p.addf(k, "fact %s lacks message, the type of the messages", f.Name)
	}
	p.file.Facts = append(p.file.Facts, f)
}

// groups examines the named groups of a fact's regular expression, which are columns.
func (p *parser) groups(n *yaml.Node, f Fact) {
	if f.Each.Field == "" || f.Each.Regexp == nil {
		p.addf(n, "fact %s has one of field and regexp, and needs both", f.Name)
		return
	}
	names := slices.DeleteFunc(slices.Clone(f.Each.Regexp.SubexpNames()), func(s string) bool { return s == "" })
	if len(names) == 0 {
		p.addf(n, "fact %s: regexp has no named group, such as (?P<node>\\S+), which would be a column", f.Name)
	}
	for i, name := range names {
		same := func(other string) bool { return strings.EqualFold(other, name) }
		if slices.ContainsFunc(FactColumns, same) || slices.ContainsFunc(names[:i], same) || slices.ContainsFunc(f.Columns, func(c FactColumn) bool { return same(c.Name) }) {
			p.addf(n, "fact %s has a column %s already: give the group of regexp another name", f.Name, name)
		}
	}
}

// column reads "NAME", "NAME=FIELD", with " optional" and " int" behind it.
func (p *parser) column(f *Fact, n *yaml.Node) FactColumn {
	c := FactColumn{line: n.Line}
	spec := strings.TrimSpace(p.text(n, "a column"))
	for more := true; more; {
		if spec, more = strings.CutSuffix(spec, " int"); more {
			c.Int = true
		} else if spec, more = strings.CutSuffix(spec, " optional"); more {
			c.Optional = true
		}
	}
	name, field, renamed := strings.Cut(spec, "=")
	if c.Name, c.Field = strings.TrimSpace(name), strings.TrimSpace(field); !renamed {
		c.Field = c.Name
	}
	same := func(other string) bool { return strings.EqualFold(other, c.Name) }
	switch {
	case !tableName.MatchString(c.Name) || c.Field == "":
		p.addf(n, "%q is no column: write NAME or NAME=FIELD, with optional where no message may have it, int for a number", n.Value)
	case slices.ContainsFunc(FactColumns, same) || slices.ContainsFunc(f.Columns, func(o FactColumn) bool { return same(o.Name) }):
		p.addf(n, "fact %s has a column %s already: write NAME=%s with another NAME", f.Name, c.Name, c.Field)
	}
	return c
}

func (p *parser) check(n *yaml.Node) {
	c := Check{Line: n.Line}
	p.keys(n, "a check", func(k, v *yaml.Node) {
		switch k.Value {
		case "name":
			if c.Name = p.text(v, "name"); !checkName.MatchString(c.Name) {
				p.addf(v, "%q is no name of a check: use small letters, digits and -, a letter first", c.Name)
			}
		case "class":
			if c.Class = model.FailureClass(p.text(v, "class")); c.Class != model.Broken && c.Class != model.Documented {
				p.addf(v, "unknown class %q: use %s or %s", c.Class, model.Broken, model.Documented)
			}
		case "quote":
			c.Quote = p.text(v, "quote")
		case "at":
			c.At = p.text(v, "at")
		case "warn until":
			c.WarnUntil = p.text(v, "warn until")
		case "unless":
			c.Unless = p.text(v, "unless")
		case "select":
			c.sql = p.query(v, "select")
		default:
			p.addf(k, "unknown key %q: a check has name, class, quote, at, warn until, unless and select", k.Value)
		}
	})
	for _, lack := range []struct{ key, value string }{{"name", c.Name}, {"class", string(c.Class)}, {"quote", c.Quote}, {"select", c.sql.text}} {
		if lack.value == "" {
			p.addf(n, "check %s lacks %s", c.Name, lack.key)
		}
	}
	if slices.ContainsFunc(p.file.Checks, func(o Check) bool { return o.Name == c.Name }) {
		p.addf(n, "there is a check %s already", c.Name)
	}
	p.file.Checks = append(p.file.Checks, c)
}
