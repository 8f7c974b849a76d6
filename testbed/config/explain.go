package config

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"netsplit/model"
)

var (
	unknownKey = regexp.MustCompile(`^line (\d+): field (\S+) not found in type \S+\.(\S+)$`)
	noList     = regexp.MustCompile("^line (\\d+): cannot unmarshal (?:!!\\S+ )?`?(.+?)`? into \\[\\]string$")
)

var knownKeys = map[string]string{
	"Testbed":     "name, backend, hosts, links, mirrors, gates, cuts, roles, hooks",
	"TestbedHost": "name, datapath, port, mac, ip, exec, agent, labels",
	"Role":        "hosts, probe, match",
	"SwitchLink":  "a, b",
	"SwitchPort":  "datapath, port",
	"Hooks":       "start, stop, crash, pause, resume, reset, timeout",
	"Probe":       "command, tcp, send, until, http, limit",
	"MirrorPort":  "datapath, port, interface, netns",
	"GatePort":    "datapath, port, interface, netns",
}

// explain turns what package yaml says into what the writer of the file needs.
func explain(err error, l lines) error {
	var te *yaml.TypeError
	if !errors.As(err, &te) {
		if errs := l.unreadable(); len(errs) > 0 { // yaml gives no line for these
			return errors.Join(errs...)
		}
		return errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	var errs []error
	for _, e := range te.Errors {
		if m := unknownKey.FindStringSubmatch(e); m != nil {
			e = fmt.Sprintf("line %s: unknown key %q; known here: %s", m[1], m[2], knownKeys[m[3]])
		} else if m := noList.FindStringSubmatch(e); m != nil {
			e = fmt.Sprintf("line %s: %q stands where a list of words is wanted; write it as in [ssh, root@n1]", m[1], m[2])
		}
		errs = append(errs, errors.New(strings.ReplaceAll(e, "model.", "")))
	}
	return errors.Join(append(errs, l.unreadable()...)...)
}

// lines finds where in the file something stands.
type lines struct{ doc *yaml.Node }

// top is the value of a key of the file; nil where there is none.
func (l lines) top(key string) *yaml.Node {
	if l.doc == nil || len(l.doc.Content) == 0 {
		return nil
	}
	top := l.doc.Content[0].Content
	for k := 0; k+1 < len(top); k += 2 {
		if top[k].Value == key {
			return top[k+1]
		}
	}
	return nil
}

// at gives "line 7: " for element i of the list, "" where there is no file.
func (l lines) at(list string, i int) string {
	if n := l.top(list); n != nil && i < len(n.Content) {
		return fmt.Sprintf("line %d: ", n.Content[i].Line)
	}
	return ""
}

func (l lines) of(key, name string) string {
	if n := l.top(key); n != nil {
		for k := 0; k+1 < len(n.Content); k += 2 {
			if n.Content[k].Value == name {
				return fmt.Sprintf("line %d: ", n.Content[k].Line)
			}
		}
	}
	return ""
}

// unreadable lists the addresses and datapath ids that are none.
func (l lines) unreadable() (errs []error) {
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		for k, c := range n.Content {
			value := n.Kind == yaml.MappingNode && k%2 == 1
			if value && n.Content[k-1].Value == "labels" {
				continue // their names are the writer's own
			}
			walk(c)
			if !value || c.Kind != yaml.ScalarNode {
				continue
			}
			switch n.Content[k-1].Value {
			case "ip":
				if _, err := netip.ParseAddr(c.Value); err != nil && c.Value != "" {
					errs = append(errs, fmt.Errorf("line %d: ip %q is no address; write it as 192.0.2.1", c.Line, c.Value))
				}
			case "datapath":
				if _, err := model.ParseDatapathID(c.Value); err != nil {
					errs = append(errs, fmt.Errorf("line %d: %w", c.Line, err))
				}
			}
		}
	}
	if l.doc != nil {
		walk(l.doc)
	}
	return errs
}
