package api_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

const restReference = "../docs/rest.md"

// schema is what the reference tells of a JSON Schema.
type schema struct {
	Ref         string            `json:"$ref"`
	Type        any               `json:"type"` // a word, or a list of words
	Format      string            `json:"format"`
	Description string            `json:"description"`
	Enum        []any             `json:"enum"`
	Default     any               `json:"default"`
	Items       *schema           `json:"items"`
	Properties  map[string]schema `json:"properties"`
	Required    []string          `json:"required"`
	Additional  json.RawMessage   `json:"additionalProperties"`
}

type described struct {
	Description string `json:"description"`
	Content     map[string]struct {
		Schema schema `json:"schema"`
	} `json:"content"`
}

type operation struct {
	Summary     string `json:"summary"`
	Description string `json:"description"`
	Parameters  []struct {
		Name, In, Description string
		Required              bool
		Schema                schema
	} `json:"parameters"`
	Body      *described           `json:"requestBody"`
	Responses map[string]described `json:"responses"`
}

// object names the schema that a reference stands for, with a link; "" if it is none.
func object(ref string) string {
	name := ref[strings.LastIndexByte(ref, '/')+1:]
	if name == "" {
		return ""
	}
	return "[" + name + "](#" + strings.ToLower(name) + ")"
}

// kind says in words what values a schema allows.
func (s schema) kind() string {
	if s.Ref != "" {
		return object(s.Ref)
	}
	var words []string
	switch t := s.Type.(type) {
	case string:
		words = []string{t}
	case []any: // or null
		for _, w := range t {
			words = append(words, fmt.Sprint(w))
		}
	}
	out := strings.Join(words, " or ")
	var values schema
	switch {
	case s.Items != nil:
		out = strings.Replace(out, "array", "array of "+s.Items.kind(), 1)
	case json.Unmarshal(s.Additional, &values) == nil && values.kind() != "":
		out = strings.Replace(out, "object", "object of "+values.kind(), 1)
	case s.Format == "date-time":
		out = "time (RFC 3339)"
	case out == "":
		out = "any"
	}
	return out
}

// words are the description of a value, with what it may be.
func (s schema) words(also string) string {
	out := []string{cmp.Or(s.Description, also)}
	if len(s.Enum) > 0 {
		var all []string
		for _, v := range s.Enum {
			all = append(all, fmt.Sprintf("`%v`", v))
		}
		out = append(out, "one of "+strings.Join(all, ", "))
	}
	if s.Default != nil {
		out = append(out, fmt.Sprintf("default `%v`", s.Default))
	}
	out = slices.DeleteFunc(out, func(w string) bool { return w == "" })
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;").Replace(strings.Join(out, "; "))
}

func (d described) body() string {
	var out []string
	for _, kind := range slices.Sorted(maps.Keys(d.Content)) {
		switch s := d.Content[kind].Schema; {
		case kind == "application/json":
			out = append(out, s.kind())
		default:
			out = append(out, "`"+kind+"`")
		}
	}
	return strings.Join(out, ", ")
}

// TestRESTReference: the reference lists all routes and objects as the daemon describes them.
func TestRESTReference(t *testing.T) {
	raw, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var spec struct {
		Paths      map[string]map[string]operation `json:"paths"`
		Components struct {
			Schemas map[string]schema `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(raw, &spec); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("# REST API: reference\n\nGenerated from what the daemon serves at `/v1/openapi.json`, by `go test ./api -run RESTReference -rewrite`.\n" +
		"[api.md](api.md) says who may do what, and how lists, retries and errors work: an error is a [problem](#errormodel).\n\n| route | |\n|---|---|\n")
	n := 0
	each := func(do func(method, path string, o operation)) {
		for _, path := range slices.Sorted(maps.Keys(spec.Paths)) {
			for _, method := range []string{"get", "post", "put", "delete"} {
				if o, ok := spec.Paths[path][method]; ok {
					do(strings.ToUpper(method), path, o)
				}
			}
		}
	}
	anchor := func(method, path string) string {
		return strings.ToLower(method) + "-" + strings.NewReplacer("/", "", "{", "", "}", "").Replace(path)
	}
	each(func(method, path string, o operation) {
		n++
		fmt.Fprintf(&b, "| [`%s %s`](#%s) | %s |\n", method, path, anchor(method, path), o.Summary)
	})
	if n < 60 {
		t.Errorf("only %d routes", n)
	}
	each(func(method, path string, o operation) {
		fmt.Fprintf(&b, "\n## %s %s\n\n%s.\n", method, path, o.Summary)
		if o.Description != "" {
			fmt.Fprintf(&b, "%s\n", o.Description)
		}
		if len(o.Parameters) > 0 {
			b.WriteString("\n| parameter | in | value | |\n|---|---|---|---|\n")
			for _, p := range o.Parameters {
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", p.Name, p.In, p.Schema.kind(), p.Schema.words(p.Description))
			}
		}
		if o.Body != nil {
			fmt.Fprintf(&b, "\nBody: %s.\n", o.Body.body())
		}
		b.WriteString("\n| answer | body | |\n|---|---|---|\n")
		for _, code := range slices.Sorted(maps.Keys(o.Responses)) {
			if r := o.Responses[code]; code != "default" {
				fmt.Fprintf(&b, "| %s | %s | %s |\n", code, r.body(), r.Description)
			}
		}
	})
	b.WriteString("\n# Objects\n\nA field in bold is always there.\n")
	for _, name := range slices.Sorted(maps.Keys(spec.Components.Schemas)) {
		s := spec.Components.Schemas[name]
		fmt.Fprintf(&b, "\n## %s\n", name)
		if s.Description != "" {
			fmt.Fprintf(&b, "\n%s.\n", strings.TrimSuffix(s.Description, "."))
		}
		if len(s.Properties) == 0 {
			fmt.Fprintf(&b, "\n%s\n", s.kind())
			continue
		}
		b.WriteString("\n| field | value | |\n|---|---|---|\n")
		for _, field := range slices.Sorted(maps.Keys(s.Properties)) {
			name := "`" + field + "`"
			if slices.Contains(s.Required, field) {
				name = "**" + name + "**"
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", name, s.Properties[field].kind(), s.Properties[field].words(""))
		}
	}
	if *rewrite {
		if err := os.WriteFile(restReference, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(restReference); err != nil || string(have) != b.String() {
		t.Errorf("%s is not what the daemon says (%v): run go test ./api -run RESTReference -rewrite", restReference, err)
	}
}
