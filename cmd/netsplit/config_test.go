package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// config writes a configuration file.
func configFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "netsplit.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAConfigurationIsChecked(t *testing.T) {
	for text, want := range map[string]struct {
		code int
		says string
	}{
		"": {exitPass, "is right"},
		"# nothing\nrunss-dir: x\nkeep-age: soon\nallowed-host: {a: b}\nlisten:\nsocket: [a]\n": {exitUsage, ":2: unknown key \"runss-dir\": use one of"},
		"listen: 127.0.0.1:1\n---\nkeep-age: 30d\n":                                             {exitUsage, "a configuration is one document"},
		"api-cert: /nowhere\n":                            {exitFailed, "--api-key"},
		"api-cert: /nowhere.pem\napi-key: /nowhere.pem\n": {exitFailed, "/nowhere.pem"},
		"insecure: true\n":                                {exitFailed, "leave it out"},
		"keep-size: 200\n":                                {exitUsage, "a size with a unit"},
		"keep-size: 0\n":                                  {exitPass, "is right"},
		"keep-age: soon\n":                                {exitUsage, ":1: invalid argument \"soon\" for \"--keep-age\" flag: use a time such as 36h, 30d or 8w"},
		"\nallowed-host: {a: b}\n":                        {exitUsage, ":2: allowed-host: write a value or a list of values"},
		"listen:\n":                                       {exitUsage, ":1: listen: it has no value"},
		"socket: [a]\n":                                   {exitUsage, ":1: socket: write one value"},
		"gate: port\ngate: port\n":                        {exitUsage, ":2: gate is there twice"},
		"[a, b]":                                          {exitUsage, ":1: write a line for each key"},
		"a: [":                                            {exitUsage, "yaml"},
		"config: x\n":                                     {exitUsage, `unknown key "config"`},
		"gate: both\n":                                    {exitUsage, "--gate"},
		"log-format: xml\n":                               {exitUsage, `--log-format "xml": want text or json`},
		"testbed: /nowhere.yaml\n":                        {exitUsage, "/nowhere.yaml"},
		"cluster-address: 127.0.0.1\n":                    {exitUsage, "missing port"},
		"cluster: true\nrole: equal\n":                    {exitUsage, "runners drive the switches"},
		"token-file: /nowhere.token\n":                    {exitFailed, "/nowhere.token"},
		"runs-dir: r\nallowed-host: [a.b, c.d]\nverbose: true\nkeep-age: 30d\nkeep-size: 20 GB\n": {exitPass, "allowed-host: [a.b,c.d]\nkeep-age: 30d\nkeep-size: 20 GB\nruns-dir: r\nverbose: true\n"},
	} {
		code, out, errs := cli(t, "config", "check", configFile(t, text))
		if code != want.code || !strings.Contains(out+errs, want.says) {
			t.Errorf("%q: status %d, %s%s; want %d and %q", text, code, out, errs, want.code, want.says)
		}
		if strings.HasPrefix(text, "# nothing") {
			for _, line := range []string{":2: ", ":3: ", ":4: ", ":5: ", ":6: "} { // all mistakes
				if !strings.Contains(errs, line) {
					t.Errorf("%q: nothing about line %s: %s", text, line, errs)
				}
			}
		}
	}
}

// TestAConfigurationThatOthersCanChangeIsRefused: it says what a daemon does that is root.
func TestAConfigurationThatOthersCanChangeIsRefused(t *testing.T) {
	path := configFile(t, "runs-dir: r\n")
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"config", "check", path}, {"serve", "--config", path}} {
		if code, _, errs := cli(t, command...); code != exitUsage || !strings.Contains(errs, "chmod go-w") {
			t.Errorf("%v: status %d, %s", command, code, errs)
		}
	}
	if code, _, errs := cli(t, "config", "check", t.TempDir()); code != exitUsage || !strings.Contains(errs, "no regular file") {
		t.Errorf("a folder: status %d, %s", code, errs)
	}
	if os.Geteuid() == 0 {
		mine := configFile(t, "runs-dir: r\n")
		if err := os.Chown(mine, 12345, 12345); err != nil {
			t.Fatal(err)
		}
		if code, _, errs := cli(t, "config", "check", mine); code != exitUsage || !strings.Contains(errs, "another user") {
			t.Errorf("another user's: status %d, %s", code, errs)
		}
	}
}

// TestFlagsOverrideTheConfiguration, and the daemon uses what neither says by default.
func TestFlagsOverrideTheConfiguration(t *testing.T) {
	var c daemonConfig
	f := serveFlags(&c)
	if err := errors.Join(f.Parse([]string{"--runs-dir", "mine", "--allowed-host", "x.y"}), applyConfig(f, configFile(t, "runs-dir: its\nallowed-host: [a.b]\nkeep-age: 2w\nverbose: true\n"))); err != nil {
		t.Fatal(err)
	}
	if c.runsDir != "mine" || strings.Join(c.allowed, " ") != "x.y" || c.keep.model().Age.Hours() != 14*24 || !c.logs.verbose || c.openflow != "127.0.0.1:6653" {
		t.Errorf("%+v", c)
	}
}

func TestTheSchemaHasAllKeys(t *testing.T) {
	code, out, errs := cli(t, "config", "schema")
	var schema struct {
		AdditionalProperties bool
		Properties           map[string]struct {
			Type        any
			Description string
		}
	}
	if err := json.Unmarshal([]byte(out), &schema); err != nil || code != exitPass {
		t.Fatalf("status %d, %v, %s", code, err, errs)
	}
	var c daemonConfig
	keys := configKeys(serveFlags(&c))
	for _, k := range keys {
		if schema.Properties[k].Description == "" {
			t.Errorf("no property %s", k)
		}
	}
	if len(schema.Properties) != len(keys) || schema.Properties["insecure"].Type != "boolean" || schema.Properties["runs-dir"].Type != "string" || fmt.Sprint(schema.Properties["keep-age"].Type) != "[string integer]" {
		t.Errorf("%d properties for %d keys: %s", len(schema.Properties), len(keys), out)
	}
}
