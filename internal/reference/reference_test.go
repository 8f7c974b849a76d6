package reference

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"netsplit/api/wire"
	"netsplit/campaign/script"
	"netsplit/deploy/targets"
	"netsplit/explorer/check"
	"netsplit/inference/classify"
	"netsplit/model"
	"netsplit/sut"
	"netsplit/sut/software"
	"netsplit/testbed/config"
)

var rewrite = flag.Bool("rewrite", false, "write the references in docs anew")

// page is one reference.
type page struct {
	file, title string
	files       []kindOfFile
	more        func(tb testing.TB, g *generator, b *strings.Builder)
}

// kindOfFile is a kind of file, and its decoder without checks of what values mean.
type kindOfFile struct {
	title, tag string
	t          reflect.Type
	decode     func(doc string) error
}

// strict decodes as sut.Load and script.Load do.
func strict[T any](doc string) error {
	_, _, err := sut.Decode("f", []byte(doc), "file", "docs", func(*T, func(string, string, ...any)) {})
	return err
}

// known decodes strictly with package yaml.
func known[T any](doc string) error {
	d := yaml.NewDecoder(strings.NewReader(doc))
	d.KnownFields(true)
	return d.Decode(new(T))
}

// fromJSON decodes as scenario files are.
func fromJSON[T any](doc string) error {
	var v any
	if err := yaml.Unmarshal([]byte(doc), &v); err != nil {
		return err
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode(new(T))
}

var pages = []page{
	{
		file: "docs/target-reference.md", title: "Target files: reference", more: targetMore,
		files: []kindOfFile{
			{"target file", "yaml", reflect.TypeFor[model.Target](), strict[model.Target]},
			{"catalogue file", "yaml", reflect.TypeFor[software.Catalog](), known[software.Catalog]},
			{"history", "json", reflect.TypeFor[model.Operation](), fromJSON[model.Operation]},
		},
	},
	{file: "docs/testbed-reference.md", title: "Testbed files: reference", files: []kindOfFile{{"testbed file", "yaml", reflect.TypeFor[model.Testbed](), known[model.Testbed]}}},
	{file: "docs/script-reference.md", title: "Scripts: reference", files: []kindOfFile{{"script", "yaml", reflect.TypeFor[script.File](), strict[script.File]}}},
	{file: "docs/scenario-reference.md", title: "Scenario files: reference", files: []kindOfFile{{"scenario file", "json", reflect.TypeFor[wire.ScenarioSpec](), fromJSON[wire.ScenarioSpec]}}},
}

const intro = `Generated from the types that read these files, by ` + "`go test ./internal/reference -rewrite`" + `; edit the comments there.
Durations have a unit (` + "`200ms`, `1.5s`, `2m`" + `). An empty default means that the key may be left out.

`

// TestTheReferencesAreThoseOfTheTypes fails when one is stale.
func TestTheReferencesAreThoseOfTheTypes(t *testing.T) {
	for _, p := range pages {
		var b strings.Builder
		fmt.Fprintf(&b, "# %s\n\n%s", p.title, intro)
		var g *generator
		for _, f := range p.files {
			g = newGenerator(f.tag)
			g.file(t, f.t, f.title, "")
			g.markdown(&b, g.sections)
		}
		if p.more != nil {
			p.more(t, g, &b)
		}
		want := strings.TrimRight(b.String(), "\n") + "\n"
		file := filepath.Join(root, p.file)
		if *rewrite {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		have, err := os.ReadFile(file)
		if err != nil || string(have) != want {
			t.Errorf("%s is not what the types say (%v): run go test ./internal/reference -rewrite", p.file, err)
		}
	}
}

// rows are the keys of a reference: the cells of each line of each table, by section.
func rows(t *testing.T, file string) map[string][][]string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][][]string{}
	title := ""
	for _, line := range strings.Split(string(b), "\n") {
		if s, ok := strings.CutPrefix(line, "## "); ok {
			title = s
		} else if strings.HasPrefix(line, "| `") {
			cells := strings.Split(strings.ReplaceAll(line, `\|`, "\x00"), " | ")
			for i, c := range cells {
				cells[i] = strings.ReplaceAll(strings.Trim(c, "| `"), "\x00", "|")
			}
			out[title] = append(out[title], cells)
		}
	}
	return out
}

// at is a document that has a value at a path such as protocols[].frames.fields.NAME.
func at(path, value string) string {
	doc := value
	for path != "" {
		if p, ok := strings.CutSuffix(path, "[]"); ok {
			path, doc = p, "["+doc+"]"
			continue
		}
		i := strings.LastIndexByte(path, '.')
		doc, path = "{"+strings.Replace(path[i+1:], "NAME", "x", 1)+": "+doc+"}", path[:max(i, 0)]
	}
	return doc
}

var allowed = regexp.MustCompile(`unknown key "zz"[^;]*; allowed here: (.*)$`)

// TestEveryKeyOfTheDecodersIsInTheReference, and no other: at each place that the reference names
// the decoder takes each of its keys, with its example, and says itself which it knows.
func TestEveryKeyOfTheDecodersIsInTheReference(t *testing.T) {
	for _, p := range pages {
		tables := rows(t, p.file)
		for _, f := range p.files {
			g := newGenerator(f.tag)
			g.file(t, f.t, f.title, "")
			for _, s := range g.sections {
				var keys []string
				for _, row := range tables[s.title] {
					keys = append(keys, row[0])
				}
				paths := s.paths
				if len(keys) > 0 && len(paths) == 0 {
					paths = []string{""}
				}
				for _, path := range paths {
					for _, row := range tables[s.title] {
						value := row[4]
						if value == "" {
							value = "null"
						}
						if err := f.decode(at(path, "{"+row[0]+": "+value+"}")); err != nil {
							t.Errorf("%s: %s: the decoder does not take %s: %s at %q: %v", p.file, s.title, row[0], value, path, err)
						}
						if row[3] == "" {
							t.Errorf("%s: %s: nothing is said of %s", p.file, s.title, row[0])
						}
						if row[4] == "" && !strings.Contains(row[1], "](#") && f.t.PkgPath() != "netsplit/api/wire" {
							t.Errorf("%s: %s: %s has no example", p.file, s.title, row[0])
						}
					}
					err := f.decode(at(path, "{zz: 1}"))
					if err == nil {
						t.Errorf("%s: the decoder takes an unknown key at %q", p.file, path)
					}
					var e *sut.Error
					if !errors.As(err, &e) {
						continue
					}
					m := allowed.FindStringSubmatch(e.Problems[0].Text)
					if m == nil || !slices.Equal(sorted(strings.Split(m[1], ", ")), sorted(keys)) {
						t.Errorf("%s: %s: at %q the decoder says %q, the reference has %v", p.file, s.title, path, e.Problems[0].Text, keys)
					}
				}
			}
		}
	}
}

func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }

// TestTestbedFilesNameTheKeysOfTheReference: what the error of an unknown key lists is kept by hand.
func TestTestbedFilesNameTheKeysOfTheReference(t *testing.T) {
	g := newGenerator("yaml")
	g.file(t, reflect.TypeFor[model.Testbed](), "testbed file", "")
	for _, s := range g.sections {
		path := ""
		if len(s.paths) > 0 {
			path = s.paths[0]
		}
		file := filepath.Join(t.TempDir(), "t.yaml")
		if err := os.WriteFile(file, []byte(at(path, "{zz: 1}")), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := config.Read(file)
		var keys []string
		for _, k := range s.keys {
			keys = append(keys, k.name)
		}
		if want := "known here: " + strings.Join(keys, ", "); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", s.title, err, want)
		}
	}
}

// targetMore adds what is no key: readers, checks, values of templates.
func targetMore(tb testing.TB, g *generator, b *strings.Builder) {
	b.WriteString("## when\n\n" + prose(g.commentsOf(tb, "model")["When"]))

	b.WriteString("## readers\n\nThe values of `dissector`. [Fields](fields.md) lists what each reads.\n\n| reader | reads |\n|---|---|\n")
	readers := map[string]string{}
	for name, c := range g.commentsOf(tb, "inference/classify") {
		if value, doc, ok := strings.Cut(c, "\n"); ok && strings.HasPrefix(name, "Name") {
			readers[value] = strings.TrimSpace(strings.ReplaceAll(doc, "\n", " "))
		}
	}
	for _, name := range classify.Names() {
		if readers[name] == "" {
			tb.Errorf("nothing is said of reader %s", name)
		}
		fmt.Fprintf(b, "| `%s` | %s |\n", name, cell(readers[name]))
	}

	b.WriteString("\n## checks and their settings\n\n`f` is that of the operations in the [history](#history). Settings that are lists are separated by commas.\n\n")
	for _, c := range check.Docs() {
		if c.Name == "script" {
			continue // netsplit gives it to scripted runs
		}
		fmt.Fprintf(b, "### %s\n\n%s\n\n", c.Name, sentence(c.Help))
		if len(c.Settings) == 0 {
			continue
		}
		b.WriteString("| setting | default | meaning |\n|---|---|---|\n")
		for _, s := range c.Settings {
			fmt.Fprintf(b, "| `%s` | %s | %s |\n", s.Name, code(s.Default), cell(sentence(s.Help)))
		}
		b.WriteString("\n")
	}

	b.WriteString("## templates\n\nValues marked *Template* are [Go templates](https://pkg.go.dev/text/template). An unknown name is an error. `{{if atLeast .Version \"3.0\"}}` compares releases; `{{times .Args.tick 4}}ms` multiplies.\n\n| name | meaning |\n|---|---|\n")
	for f := range reflect.TypeFor[sut.Values]().Fields() {
		doc := g.commentsOf(tb, "sut")["Values."+f.Name]
		fmt.Fprintf(b, "| `.%s` | %s |\n", f.Name, cell(sentence(strings.TrimSpace(doc))))
	}
}

// sentence is a text that begins and ends as one.
func sentence(s string) string {
	if s == "" || strings.HasPrefix(s, "`") {
		return s
	}
	return strings.ToUpper(s[:1]) + strings.TrimSuffix(s[1:], ".") + "."
}

// TestRequiredKeysAreRequired: a shipped target without one is refused.
func TestRequiredKeysAreRequired(t *testing.T) {
	g := newGenerator("yaml")
	g.file(t, reflect.TypeFor[model.Target](), "target file", "")
	tried := map[string]bool{}
	for _, name := range sut.Builtin(targets.FS) {
		b, err := targets.FS.ReadFile(name + "/target.yaml")
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range g.sections {
			for _, k := range s.keys {
				for _, path := range append(s.paths, "")[:max(len(s.paths), 1)] {
					at := strings.TrimPrefix(path+"."+k.name, ".")
					if k.def != "required" || tried[at] {
						continue
					}
					var doc map[string]any
					if err := yaml.Unmarshal(b, &doc); err != nil {
						t.Fatal(err)
					}
					if !remove(doc, at) {
						continue
					}
					tried[at] = true
					without, err := yaml.Marshal(doc)
					if err != nil {
						t.Fatal(err)
					}
					if _, err := sut.Parse("f", without); err == nil {
						t.Errorf("%s without %s is taken, and the reference says that it is required", name, at)
					}
				}
			}
		}
	}
	if len(tried) < 30 {
		t.Errorf("only %d keys were tried: %v", len(tried), tried)
	}
}

// remove takes away what stands at a path, the first time, and says whether it was there.
func remove(v any, path string) bool {
	head, rest, more := strings.Cut(path, ".")
	key, list := strings.CutSuffix(head, "[]")
	m, ok := v.(map[string]any)
	if !ok {
		return false
	}
	if key == "NAME" {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if remove(m[k], rest) {
				return true
			}
		}
		return false
	}
	inner, ok := m[key]
	switch {
	case !ok:
		return false
	case !more:
		delete(m, key)
		return true
	case !list:
		return remove(inner, rest)
	}
	elements, _ := inner.([]any)
	return slices.ContainsFunc(elements, func(e any) bool { return remove(e, rest) })
}
