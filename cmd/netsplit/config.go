package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

const (
	configFlag = "config"
	// maxConfig bounds a configuration file.
	maxConfig = 64 << 10
)

// notInConfig are flags of serve that a configuration file cannot have.
var notInConfig = []string{configFlag, "help"}

// configKeys lists the keys of a configuration file: the flags of serve.
func configKeys(f *pflag.FlagSet) (out []string) {
	f.VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(notInConfig, f.Name) {
			out = append(out, f.Name)
		}
	})
	return out
}

// applyConfig sets the flags that a configuration file has and the command line has not. The
// error lists all mistakes with their lines.
func applyConfig(f *pflag.FlagSet, path string) error {
	b, err := readConfig(path)
	if err != nil {
		return err
	}
	var doc yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(b))
	if err := decoder.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		return usage("%s: %w", path, err)
	}
	if more := (yaml.Node{}); !errors.Is(decoder.Decode(&more), io.EOF) {
		return usage("%s:%d: leave out what follows ---: a configuration is one document", path, more.Line)
	}
	if len(doc.Content) == 0 {
		return nil // nothing but comments
	}
	top := doc.Content[0]
	if top.Kind != yaml.MappingNode {
		return usage("%s:%d: write a line for each key (key: value)", path, top.Line)
	}
	var errs []error
	bad := func(n *yaml.Node, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s:%d: %w", path, n.Line, fmt.Errorf(format, args...)))
	}
	seen := map[string]bool{}
	keys := configKeys(f)
	for i := 0; i+1 < len(top.Content); i += 2 {
		key, value := top.Content[i], top.Content[i+1]
		name := key.Value
		switch {
		case seen[name]:
			bad(key, "%s is there twice", name)
			continue
		case !slices.Contains(keys, name):
			bad(key, "unknown key %q: use one of %s", name, strings.Join(keys, ", "))
			continue
		}
		seen[name] = true
		flag := f.Lookup(name)
		if flag.Changed {
			continue // the command line has the last word
		}
		words, err := configValue(flag, value)
		if err != nil {
			bad(value, "%s: %w", name, err)
			continue
		}
		for _, w := range words {
			if err := f.Set(name, w); err != nil {
				bad(value, "%w", err)
			}
		}
	}
	if len(errs) > 0 {
		return usage("%w", errors.Join(errs...))
	}
	return nil
}

// configValue is the value of a key as the flag takes it; a list has several.
func configValue(flag *pflag.Flag, n *yaml.Node) ([]string, error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	_, many := flag.Value.(pflag.SliceValue)
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		return nil, errors.New("it has no value: leave out the key, or write one")
	case n.Kind == yaml.ScalarNode:
		return []string{n.Value}, nil
	case n.Kind == yaml.SequenceNode && many:
		var out []string
		for _, c := range n.Content {
			if c.Kind != yaml.ScalarNode {
				return nil, errors.New("a list has plain values")
			}
			out = append(out, c.Value)
		}
		return out, nil
	case many:
		return nil, errors.New("write a value or a list of values")
	}
	return nil, errors.New("write one value")
}

// readConfig reads a file that only its owner can change, this user or root: it says what a
// daemon does that may be root.
func readConfig(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO must not hang
	if errors.Is(err, os.ErrNotExist) {
		return nil, usage("configuration %s does not exist", path)
	}
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	owner, ok := st.Sys().(*syscall.Stat_t)
	switch {
	case !st.Mode().IsRegular():
		return nil, usage("configuration %s is no regular file", path)
	case !ok || owner.Uid != 0 && int(owner.Uid) != os.Geteuid():
		return nil, usage("configuration %s belongs to another user, who could change what this daemon does: copy it to a file of your own", path)
	case st.Mode().Perm()&0o022 != 0:
		return nil, usage("other users can change configuration %s (mode %03o): chmod go-w %s", path, st.Mode().Perm(), path)
	case st.Size() > maxConfig:
		return nil, usage("configuration %s is longer than %d KiB", path, maxConfig>>10)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	return b, nil
}

func configCommand() *cobra.Command {
	c := &cobra.Command{Use: "config", Short: "check a configuration file of the daemon, or print its schema"}
	c.AddCommand(configCheckCommand(), configSchemaCommand())
	return c
}

// checkedConfig is what config check says of a configuration without mistakes.
type checkedConfig struct {
	File string         `json:"file"`
	Keys map[string]any `json:"keys"` // those that it has: a string, or a list of strings
}

func configCheckCommand() *cobra.Command {
	var o output
	c := &cobra.Command{
		Use: "check FILE", Short: "check a configuration file, and the files that it names; starts and changes nothing",
		Args: exactArgs(1, "a configuration file"),
		RunE: func(c *cobra.Command, args []string) error {
			var d daemonConfig
			serve := serveFlags(&d)
			if err := applyConfig(serve, args[0]); err != nil {
				return err
			}
			if _, _, _, err := d.load(); err != nil {
				return err
			}
			if _, err := d.runners(); err != nil {
				return err
			}
			if err := d.doors.check(); err != nil {
				return err
			}
			x := checkedConfig{File: args[0], Keys: map[string]any{}}
			for _, key := range configKeys(serve) {
				f := serve.Lookup(key)
				if !f.Changed {
					continue
				}
				x.Keys[key] = f.Value.String()
				if list, ok := f.Value.(pflag.SliceValue); ok {
					x.Keys[key] = list.GetSlice()
				}
			}
			return printOne(o, c.OutOrStdout(), x, func(out io.Writer, _ checkedConfig) error {
				for _, key := range configKeys(serve) {
					if f := serve.Lookup(key); f.Changed {
						fmt.Fprintf(out, "%s: %s\n", key, f.Value)
					}
				}
				_, err := fmt.Fprintf(out, "%s is right; other keys have their defaults (netsplit serve --help)\n", args[0])
				return err
			})
		},
	}
	o.register(c.Flags())
	return c
}

func configSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "print the JSON schema of a configuration file, for editors", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var d daemonConfig
			f := serveFlags(&d)
			properties := map[string]any{}
			for _, key := range configKeys(f) {
				flag := f.Lookup(key)
				p := map[string]any{"description": flag.Usage}
				switch _, many := flag.Value.(pflag.SliceValue); {
				case many:
					p["anyOf"] = []any{map[string]any{"type": "string"}, map[string]any{"type": "array", "items": map[string]any{"type": "string"}}}
				case flag.Value.Type() == "bool":
					p["type"] = "boolean"
				case flag.Value.Type() == "size" || flag.Value.Type() == "duration":
					p["type"] = []string{"string", "integer"} // 0 is no bound
				default:
					p["type"] = "string"
				}
				if flag.DefValue != "" && flag.DefValue != "[]" && flag.DefValue != "false" {
					p["default"] = flag.DefValue
				}
				properties[key] = p
			}
			e := json.NewEncoder(c.OutOrStdout())
			e.SetEscapeHTML(false)
			e.SetIndent("", "  ")
			return e.Encode(map[string]any{"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "netsplit serve --config", "type": "object",
				"additionalProperties": false, "properties": properties})
		},
	}
}
