package reference

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const root = "../.."

// section is one struct type of a file, or its top level.
type section struct {
	title string
	paths []string // where it stands: protocols[].frames
	text  string
	keys  []key
}

type key struct {
	name, kind, def, text, example string
	inner                          reflect.Type // whose keys are in a section of their own; nil: none
}

// generator walks the types of a file as its decoder does.
type generator struct {
	tag      string // yaml or json
	docs     map[string]comments
	sections []*section
	at       map[reflect.Type]*section
}

// comments are those on the types, fields and constants of a package.
type comments map[string]string

func newGenerator(tag string) *generator {
	return &generator{tag: tag, docs: map[string]comments{}, at: map[reflect.Type]*section{}}
}

// file adds the sections of a file that is decoded into t.
func (g *generator) file(tb testing.TB, t reflect.Type, title, path string) {
	g.walk(tb, t, path)
	g.at[t].title = title
	for _, s := range g.sections {
		if s.title == "" {
			s.title = g.titleOf(s)
		}
	}
}

// titleOf is the key at which a section stands, or what its type is called where there are several.
func (g *generator) titleOf(s *section) string {
	var last []string
	for _, p := range s.paths {
		p = strings.TrimSuffix(strings.TrimSuffix(p, "[]"), ".NAME")
		last = append(last, p[strings.LastIndexByte(p, '.')+1:])
	}
	if slices.Sort(last); len(slices.Compact(last)) == 1 {
		return last[0]
	}
	for t, o := range g.at {
		if o == s {
			return strings.ToLower(t.Name())
		}
	}
	return ""
}

func (g *generator) walk(tb testing.TB, t reflect.Type, path string) {
	if s := g.at[t]; s != nil {
		if !slices.Contains(s.paths, path) {
			s.paths = append(s.paths, path)
		}
		if strings.Count(path, ".") > 12 {
			return
		}
		g.fields(tb, t, path, nil)
		return
	}
	s := &section{text: g.comment(tb, t, t.Name())}
	if path != "" {
		s.paths = []string{path}
	}
	g.at[t] = s
	g.sections = append(g.sections, s)
	g.fields(tb, t, path, s)
}

// fields goes through the keys of a struct and adds them to s, if s is not nil.
func (g *generator) fields(tb testing.TB, t reflect.Type, path string, s *section) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, rest, _ := strings.Cut(f.Tag.Get(g.tag), ",")
		if rest == "inline" {
			g.fields(tb, f.Type, path, s)
			if o := g.at[f.Type]; o == nil {
				g.at[f.Type] = &section{text: g.comment(tb, f.Type, f.Type.Name()), title: strings.ToLower(f.Type.Name())}
				g.sections = append(g.sections, g.at[f.Type])
			}
			continue
		}
		if name == "" || name == "-" {
			continue
		}
		at := strings.TrimPrefix(path+"."+name, ".")
		kind, inner, suffix := g.kindOf(f.Type)
		if s != nil {
			k := g.key(tb, t, f, name)
			k.kind, k.inner = kind, inner
			s.keys = append(s.keys, k)
		}
		if inner != nil {
			g.walk(tb, inner, at+suffix)
		}
	}
}

// readsItself says that a type decodes its own values.
func readsItself(t reflect.Type) bool {
	_, yaml := reflect.PointerTo(t).MethodByName("UnmarshalYAML")
	_, text := reflect.PointerTo(t).MethodByName("UnmarshalText")
	return yaml || text
}

// kindOf says what a value looks like; where it has keys, also of which type it is and
// what stands behind its path.
func (g *generator) kindOf(t reflect.Type) (kind string, inner reflect.Type, suffix string) {
	switch {
	case t.Kind() == reflect.Pointer:
		return g.kindOf(t.Elem())
	case t == reflect.TypeFor[time.Duration]() && g.tag == "yaml" || slices.Contains([]string{"Duration", "Span"}, t.Name()) && t.PkgPath() != "time":
		return "duration", nil, ""
	case readsItself(t):
		return map[string]string{"Addr": "address", "Port": "number or name", "DatapathID": "datapath id"}[t.Name()], nil, ""
	}
	switch t.Kind() {
	case reflect.Struct:
		return "keys", t, ""
	case reflect.Slice:
		k, inner, s := g.kindOf(t.Elem())
		return "list of " + k, inner, "[]" + s
	case reflect.Map:
		k, inner, s := g.kindOf(t.Elem())
		return "NAME: " + k, inner, ".NAME" + s
	case reflect.Bool:
		return "true or false", nil, ""
	case reflect.String:
		return "text", nil, ""
	}
	return "number", nil, ""
}

var (
	exampleRE = regexp.MustCompile(`(?s)^(.*?)\s*\bExample: (.*)$`)
	defaultRE = regexp.MustCompile(`(?s)^(.*?)\s*\bDefault: (.*)\.$`)
)

// key reads what is said of a field, in the comment on it or in the tags of package api/wire.
func (g *generator) key(tb testing.TB, t reflect.Type, f reflect.StructField, name string) key {
	k := key{name: name, def: f.Tag.Get("default"), example: f.Tag.Get("example")}
	if k.example != "" && k.example[0] != '[' {
		k.example = strconv.Quote(k.example)
	}
	s := strings.TrimSpace(strings.ReplaceAll(g.comment(tb, t, t.Name()+"."+f.Name), "\n", " "))
	if doc := f.Tag.Get("doc"); doc != "" {
		s = doc + "."
	}
	if m := exampleRE.FindStringSubmatch(s); m != nil {
		s, k.example = m[1], m[2]
	}
	if before, ok := strings.CutSuffix(s, " Required."); ok || s == "Required." {
		s, k.def = before, "required"
	} else if m := defaultRE.FindStringSubmatch(s); m != nil {
		s, k.def = m[1], m[2]
	}
	if v := f.Tag.Get("enum"); v != "" {
		s += " One of `" + strings.ReplaceAll(v, ",", "`, `") + "`."
	}
	if v := f.Tag.Get("maximum"); v != "" {
		s += fmt.Sprintf(" %s to %s.", cmp.Or(f.Tag.Get("minimum"), "0"), v)
	}
	if t.PkgPath() == "netsplit/api/wire" && !strings.Contains(f.Tag.Get(g.tag), ",omitempty") {
		k.def = "required"
	}
	k.text = strings.TrimSpace(s)
	return k
}

// comment is that on a type, a field ("Type.Field") or a constant of t's package.
func (g *generator) comment(tb testing.TB, t reflect.Type, name string) string {
	return g.commentsOf(tb, strings.TrimPrefix(t.PkgPath(), "netsplit/"))[name]
}

func (g *generator) commentsOf(tb testing.TB, dir string) comments {
	if c, ok := g.docs[dir]; ok {
		return c
	}
	c := comments{}
	g.docs[dir] = c
	files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil {
		tb.Fatal(err)
	}
	for _, f := range files {
		file, err := parser.ParseFile(token.NewFileSet(), f, nil, parser.ParseComments)
		if err != nil {
			tb.Fatal(err)
		}
		for _, d := range file.Decls {
			if gen, ok := d.(*ast.GenDecl); ok {
				for _, spec := range gen.Specs {
					c.add(gen, spec)
				}
			}
		}
	}
	return c
}

func (c comments) add(gen *ast.GenDecl, spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		c[spec.Name.Name] = cmp.Or(spec.Doc.Text(), gen.Doc.Text())
		if st, ok := spec.Type.(*ast.StructType); ok {
			for _, f := range st.Fields.List {
				for _, n := range f.Names {
					c[spec.Name.Name+"."+n.Name] = cmp.Or(f.Doc.Text(), f.Comment.Text())
				}
			}
		}
	case *ast.ValueSpec:
		for i, n := range spec.Names {
			if i < len(spec.Values) {
				if v, ok := spec.Values[i].(*ast.BasicLit); ok {
					c[n.Name] = strings.Trim(v.Value, `"`) + "\n" + spec.Doc.Text()
				}
			}
		}
	}
}

// markdown writes sections.
func (g *generator) markdown(b *strings.Builder, sections []*section) {
	for _, s := range sections {
		fmt.Fprintf(b, "## %s\n\n", s.title)
		if len(s.paths) > 0 && (len(s.paths) > 1 || s.paths[0] != s.title) {
			fmt.Fprintf(b, "At `%s`.\n\n", strings.Join(s.paths, "`, `"))
		}
		b.WriteString(prose(affix.ReplaceAllString(s.text, "$1")))
		if len(s.keys) == 0 {
			continue
		}
		b.WriteString("| key | value | default | meaning | example |\n|---|---|---|---|---|\n")
		for _, k := range s.keys {
			kind := k.kind
			if o := g.at[k.inner]; o != nil {
				kind = strings.Replace(kind, "keys", "["+o.title+"](#"+anchor(o.title)+")", 1)
			}
			fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s |\n", k.name, kind, cell(k.def), cell(k.text), code(k.example))
		}
		b.WriteString("\n")
	}
}

// affix is what the name of a type says beside the word of the file.
var affix = regexp.MustCompile(`^(?:Var|Target|Client|Testbed)?([A-Z][a-z]+)(?:Setting|Spec|Step|Line|Failure)?\b`)

func anchor(title string) string { return strings.ReplaceAll(strings.ToLower(title), " ", "-") }

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

func code(s string) string {
	if s == "" {
		return ""
	}
	if strings.Contains(s, "`") {
		return "`` " + cell(s) + " ``"
	}
	return "`" + cell(s) + "`"
}

// prose turns a comment into Markdown: what is indented is code.
func prose(s string) string {
	var b strings.Builder
	for _, block := range strings.Split(strings.TrimSpace(s), "\n\n") {
		if strings.HasPrefix(block, "\t") {
			b.WriteString("```\n" + strings.ReplaceAll(strings.TrimPrefix(block, "\t"), "\n\t", "\n") + "\n```\n\n")
			continue
		}
		b.WriteString(block + "\n\n")
	}
	return b.String()
}
