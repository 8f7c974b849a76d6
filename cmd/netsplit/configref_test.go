package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

const configReference = "../../docs/configuration.md"

// TestConfigurationReference: the reference lists all keys of a configuration file, as its schema
// does.
func TestConfigurationReference(t *testing.T) {
	_, out, errs := cli(t, "config", "schema")
	var s struct {
		Properties map[string]struct {
			Description string `json:"description"`
			Type        any    `json:"type"`
			Default     string `json:"default"`
		} `json:"properties"`
	}
	if err := json.Unmarshal([]byte(out), &s); err != nil || len(s.Properties) < 20 {
		t.Fatalf("%d keys, %v: %s", len(s.Properties), err, errs)
	}
	var b strings.Builder
	b.WriteString("# Configuration file: reference\n\nGenerated from what the program says of them, by `go test ./cmd/netsplit -run ConfigurationReference -rewrite`.\n" +
		"[operating.md](operating.md#configuration-file) has an example. The file is YAML, one line for each key; a key stands for the flag of\n" +
		"`netsplit serve` with its name, and every key may be left out. `netsplit config check FILE` checks a file.\n\n| key | value | default | |\n|---|---|---|---|\n")
	for _, key := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[key]
		kind, def := "a text, or a list of texts", ""
		switch v := p.Type.(type) {
		case string:
			kind = map[string]string{"string": "a text", "boolean": "true or false"}[v]
		case []any:
			kind = "a text; 0 is no bound"
		}
		if p.Default != "" {
			def = "`" + p.Default + "`"
		}
		if kind == "" {
			t.Errorf("%s is of a kind %v that this page has no word for", key, p.Type)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", key, kind, def, strings.NewReplacer("|", `\|`, "\n", " ").Replace(p.Description))
	}
	if *rewrite {
		if err := os.WriteFile(configReference, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(configReference); err != nil || string(have) != b.String() {
		t.Errorf("%s is not what the program says (%v): run go test ./cmd/netsplit -run ConfigurationReference -rewrite", configReference, err)
	}
}
