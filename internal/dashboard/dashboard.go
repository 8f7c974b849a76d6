// Package dashboard reads the queries of the dashboards in deploy/grafana, for tests
// that ask them of Prometheus.
package dashboard

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"netsplit/deploy/grafana"
)

// Query is one expression of a dashboard with its variables filled in.
type Query struct {
	Dashboard string
	Panel     string // title of the panel, "annotation …" or "variable …"
	RefID     string
	Expr      string // PromQL
	// Instant says that Grafana asks for one point and not for a range.
	Instant bool
}

// Queries returns every expression of all dashboards, annotations and variables
// included, in order of appearance. vars gives the values of $-variables without the
// dollar; those left out are __rate_interval and __range (1m), __interval (15s), and host,
// instance and testbed (.*). A variable without a value is an error.
func Queries(vars map[string]string) ([]Query, error) {
	var out []Query
	for _, name := range grafana.Names() {
		qs, err := queries(name, vars)
		if err != nil {
			return nil, fmt.Errorf("dashboard %s: %w", name, err)
		}
		out = append(out, qs...)
	}
	return out, nil
}

func queries(name string, vars map[string]string) ([]Query, error) {
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct {
				RefID   string
				Expr    string
				Instant bool
			}
		}
		Annotations struct {
			List []struct{ Name, Expr string }
		}
		Templating struct {
			List []struct{ Name, Definition string }
		}
	}
	if err := json.Unmarshal(grafana.Dashboard(name), &d); err != nil {
		return nil, err
	}
	var out []Query
	for _, p := range d.Panels {
		for _, t := range p.Targets {
			out = append(out, Query{Panel: p.Title, RefID: t.RefID, Expr: t.Expr, Instant: t.Instant})
		}
	}
	for _, a := range d.Annotations.List {
		if a.Expr != "" {
			out = append(out, Query{Panel: "annotation " + a.Name, Expr: a.Expr})
		}
	}
	for _, v := range d.Templating.List {
		if m := labelValues.FindStringSubmatch(v.Definition); m != nil {
			out = append(out, Query{Panel: "variable " + v.Name, Expr: fmt.Sprintf("group by (%s) (%s)", m[2], m[1]), Instant: true})
		}
	}
	for i := range out {
		expr, err := fill(out[i].Expr, vars)
		if err != nil {
			return nil, fmt.Errorf("panel %q, query %s: %w", out[i].Panel, out[i].RefID, err)
		}
		out[i].Dashboard, out[i].Expr = name, expr
	}
	return out, nil
}

var (
	labelValues = regexp.MustCompile(`^label_values\((.+), *(\w+)\)$`)
	variable    = regexp.MustCompile(`\$(\w+)|\$\{(\w+)\}`)
	defaults    = map[string]string{"__rate_interval": "1m", "__range": "1m", "__interval": "15s", "host": ".*", "instance": ".*", "testbed": ".*"}
)

func fill(expr string, vars map[string]string) (string, error) {
	var missing []string
	out := variable.ReplaceAllStringFunc(expr, func(v string) string {
		name := strings.Trim(v, "${}")
		if s, ok := vars[name]; ok {
			return s
		}
		if s, ok := defaults[name]; ok {
			return s
		}
		missing = append(missing, name)
		return v
	})
	if len(missing) > 0 {
		slices.Sort(missing)
		return "", fmt.Errorf("no value for %v", slices.Compact(missing))
	}
	return out, nil
}
