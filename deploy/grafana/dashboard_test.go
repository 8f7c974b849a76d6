package grafana_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"netsplit/deploy/grafana"
	queries "netsplit/internal/dashboard"
)

type datasource struct{ Type, UID string }

type panel struct {
	ID                       int
	Type, Title, Description string
	Datasource               datasource
	GridPos                  struct{ X, Y, W, H int }
	Targets                  []struct {
		RefID, Expr, LegendFormat, Format string
		Instant, Range                    bool
		Datasource                        datasource
	}
	FieldConfig struct {
		Defaults struct {
			Unit  string
			Color struct{ Mode string }
		}
		Overrides []struct {
			Matcher    struct{ ID, Options string }
			Properties []struct {
				ID    string
				Value any
			}
		}
	}
	Options map[string]any
}

type dashboard struct {
	UID           string
	Title         string
	SchemaVersion int
	Panels        []panel
	Templating    struct {
		List []struct{ Name, Type, AllValue string }
	}
	Annotations struct {
		List []struct {
			Name, Expr string
			Datasource datasource
			BuiltIn    int
		}
	}
}

// Panel types of Grafana 11 and 12. What went (graph, singlestat,
// table-old, heatmap-old) is not among them.
var panelTypes = []string{"stat", "gauge", "bargauge", "timeseries", "state-timeline", "status-history", "table", "heatmap", "barchart", "text"}

var verdictColor = map[string]string{"pass": "green", "fail": "red", "unknown": "orange", "vacuous": "purple"}

var (
	counter   = regexp.MustCompile(`netsplit_\w+(_total|_bucket)\b`)
	inRate    = regexp.MustCompile(`(?:rate|increase)\(netsplit_\w+(?:_total|_bucket)(?:\{[^}]*\})?\[\$__(?:rate_interval|range)\]\)`)
	selector  = regexp.MustCompile(`\b(?:netsplit|process|go)_\w+(?:\{[^}]*\})?`)
	histogram = regexp.MustCompile(`\bnetsplit_(gate_delay|heal)_seconds\b`)
)

// faults says what is wrong with a dashboard, sorted.
func faults(raw []byte) (out []string) {
	var d dashboard
	bad := func(format string, a ...any) { out = append(out, fmt.Sprintf(format, a...)) }
	if err := json.Unmarshal(raw, &d); err != nil {
		return []string{err.Error()}
	}
	if d.UID == "" || len(d.UID) > 40 || d.Title == "" || d.SchemaVersion < 36 || len(d.Panels) == 0 {
		bad("no uid, title, schemaVersion or panels")
	}
	ds := datasource{"prometheus", "${datasource}"}
	ids := map[int]bool{}
	grid := map[[2]int]string{}
	for _, p := range d.Panels {
		name := fmt.Sprintf("panel %d %q", p.ID, p.Title)
		if ids[p.ID] || p.ID <= 0 {
			bad("%s: id is used twice or not positive", name)
		}
		ids[p.ID] = true
		if !slices.Contains(panelTypes, p.Type) {
			bad("%s: type %q", name, p.Type)
		}
		if p.Title == "" || len(p.Description) < 20 {
			bad("%s: no title or description", name)
		}
		if p.Datasource != ds {
			bad("%s: data source %v", name, p.Datasource)
		}
		if p.FieldConfig.Defaults.Unit == "" {
			bad("%s: no unit", name)
		}
		if p.GridPos.W < 1 || p.GridPos.H < 1 || p.GridPos.X < 0 || p.GridPos.X+p.GridPos.W > 24 {
			bad("%s: off the grid", name)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other, taken := grid[[2]int{x, y}]; taken && other != name {
					bad("%s: overlaps %s", name, other)
				}
				grid[[2]int{x, y}] = name
			}
		}
		refs := map[string]bool{}
		if len(p.Targets) == 0 {
			bad("%s: no query", name)
		}
		byVerdict := false
		for _, t := range p.Targets {
			if refs[t.RefID] || t.RefID == "" {
				bad("%s: refId %q is used twice or empty", name, t.RefID)
			}
			refs[t.RefID] = true
			if t.Datasource != ds {
				bad("%s: data source of query %s is %v", name, t.RefID, t.Datasource)
			}
			if t.Instant == t.Range {
				bad("%s: query %s is neither instant nor range, or both", name, t.RefID)
			}
			if got, all := len(inRate.FindAllString(t.Expr, -1)), len(counter.FindAllString(t.Expr, -1)); got != all {
				bad("%s: a counter outside of rate or increase in %s", name, t.Expr)
			}
			if strings.Contains(t.Expr, "$__range") && !t.Instant {
				bad("%s: $__range in a range query", name)
			}
			if histogram.MatchString(t.Expr) {
				bad("%s: a native histogram in %s", name, t.Expr)
			}
			if (p.Type == "heatmap") != (t.Format == "heatmap") {
				bad("%s: format %q", name, t.Format)
			}
			byVerdict = byVerdict || strings.Contains(t.Expr, "netsplit_runs_total")
		}
		if byVerdict {
			colors := map[string]string{}
			for _, o := range p.FieldConfig.Overrides {
				for _, prop := range o.Properties {
					if v, ok := prop.Value.(map[string]any); ok && prop.ID == "color" && v["mode"] == "fixed" {
						colors[o.Matcher.Options], _ = v["fixedColor"].(string)
					}
				}
			}
			if !maps.Equal(colors, verdictColor) {
				bad("%s: colours of verdicts %v", name, colors)
			}
		}
	}
	vars := map[string]string{}
	for _, v := range d.Templating.List {
		vars[v.Name] = v.Type
		if v.Name == "instance" && v.AllValue != "" { // All is then what the testbed's daemons are, and no other program's
			bad("all instances are those of every job")
		}
	}
	if vars["datasource"] != "datasource" || vars["instance"] != "query" || vars["testbed"] != "query" {
		bad("no variable datasource, instance or testbed")
	}
	for _, s := range selector.FindAllString(string(raw), -1) {
		if !strings.Contains(s, `{instance=~\"$instance\"`) && !strings.Contains(s, "netsplit_testbed_info") {
			bad("every daemon counts in %s", s)
		}
	}
	for _, v := range regexp.MustCompile(`\$\{?([a-z]\w*)`).FindAllStringSubmatch(string(raw), -1) {
		if vars[v[1]] == "" {
			bad("no variable %s", v[1])
		}
	}
	for _, a := range d.Annotations.List {
		if a.BuiltIn == 0 && a.Datasource != ds {
			bad("annotation %s: data source %v", a.Name, a.Datasource)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func TestDashboard(t *testing.T) {
	uids := map[string]bool{}
	for _, name := range grafana.Names() {
		for _, f := range faults(grafana.Dashboard(name)) {
			t.Errorf("%s: %s", name, f)
		}
		var d dashboard
		if err := json.Unmarshal(grafana.Dashboard(name), &d); err != nil || uids[d.UID] {
			t.Errorf("%s: %v, or uid %q is used twice", name, err, d.UID)
		}
		uids[d.UID] = true
	}
	if files, err := os.ReadDir("dashboards"); err != nil || len(files) != len(uids) {
		t.Errorf("%d files for %d dashboards: %v", len(files), len(uids), err)
	}
}

// The check above finds what it is for.
func TestDashboardCheckFindsFaults(t *testing.T) {
	for name, c := range map[string]struct{ old, new, says string }{
		"type that went":     {`"type": "timeseries"`, `"type": "graph"`, `type "graph"`},
		"overlap":            {`"x": 4,`, `"x": 0,`, "overlaps"},
		"same id":            {`"id": 2,`, `"id": 1,`, "used twice"},
		"same refId":         {`"refId": "B"`, `"refId": "A"`, "refId"},
		"fixed data source":  {`"uid": "${datasource}"`, `"uid": "P1809F7CD0C75ACF3"`, "data source"},
		"no unit":            {`"unit": "pps"`, `"unit": ""`, "no unit"},
		"no description":     {`"description": "Every finding`, `"descripcion": "Every finding`, "description"},
		"counter as it is":   {`rate(netsplit_link_cut_seconds_total{instance=~\"$instance\",src=~\"$host\"}[$__rate_interval])`, `netsplit_link_cut_seconds_total`, "outside of rate"},
		"fixed interval":     {`(rate(netsplit_messages_total{instance=~\"$instance\"}[$__rate_interval]))`, `(rate(netsplit_messages_total{instance=~\"$instance\"}[15s]))`, "outside of rate"},
		"green for vacuous":  {`"fixedColor": "purple"`, `"fixedColor": "green"`, "colours of verdicts"},
		"native histogram":   {`sum by (le) (increase(netsplit_gate_delay_seconds_bucket{instance=~\"$instance\"}[$__rate_interval]))`, `increase(netsplit_gate_delay_seconds[$__rate_interval])`, "native"},
		"of all daemons":     {`netsplit_cuts_total{instance=~\"$instance\"}`, `netsplit_cuts_total`, "every daemon counts"},
		"unknown variable":   {`$host`, `$hots`, "no variable hots"},
		"range in time":      {`increase(netsplit_heals_total{instance=~\"$instance\"}[$__rate_interval])`, `increase(netsplit_heals_total{instance=~\"$instance\"}[$__range])`, "$__range in a range query"},
		"heatmap without it": {`"format": "heatmap"`, `"format": "time_series"`, "format"},
	} {
		raw := string(grafana.Dashboard(grafana.Partitions))
		changed := strings.ReplaceAll(raw, c.old, c.new)
		if changed == raw {
			t.Errorf("%s: %q is not in the dashboard", name, c.old)
			continue
		}
		if got := strings.Join(faults([]byte(changed)), "\n"); !strings.Contains(got, c.says) {
			t.Errorf("%s: found %q, want %q", name, got, c.says)
		}
	}
}

func TestQueriesNeedEveryVariable(t *testing.T) {
	qs, err := queries.Queries(map[string]string{"__rate_interval": "7s"})
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range qs {
		if strings.Contains(q.Expr, "$") || q.Expr == "" || q.Panel == "" {
			t.Errorf("%+v", q)
		}
	}
	if len(qs) < 15 || !slices.ContainsFunc(qs, func(q queries.Query) bool { return strings.Contains(q.Expr, "[7s]") }) {
		t.Errorf("%d queries: %+v", len(qs), qs)
	}
}

func TestProvisioningIsYAMLThatNamesWhatIsThere(t *testing.T) {
	n := 0
	err := fs.WalkDir(os.DirFS("."), "provisioning", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		n++
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var v struct {
			APIVersion  int `yaml:"apiVersion"`
			Datasources []struct{ Name, Type, URL string }
			Providers   []struct {
				Name, Type string
				Options    struct{ Path string }
			}
		}
		if err := yaml.Unmarshal(b, &v); err != nil {
			return err
		}
		if v.APIVersion != 1 || len(v.Datasources)+len(v.Providers) != 1 {
			t.Errorf("%s: %+v", path, v)
		}
		for _, ds := range v.Datasources {
			if ds.Type != "prometheus" || ds.URL == "" {
				t.Errorf("%s: %+v", path, ds)
			}
		}
		for _, p := range v.Providers {
			if p.Type != "file" || p.Options.Path == "" {
				t.Errorf("%s: %+v", path, p)
			}
		}
		return nil
	})
	if err != nil || n != 2 {
		t.Errorf("%d files, %v", n, err)
	}
}
