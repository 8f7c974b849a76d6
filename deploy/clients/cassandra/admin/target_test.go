package admin

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"netsplit/model"
)

// answers holds what Jolokia answered on n1 (10.64.0.1) of clusters of these
// releases before and after n3 (10.64.0.3) was decommissioned:
// testdata/answers.json, by release, then "before ATTRIBUTE".
func answers(t *testing.T) map[string]map[string]string {
	t.Helper()
	b, err := os.ReadFile("testdata/answers.json")
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]map[string]string
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func load(t *testing.T, path string) *model.Target {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out model.Target
	if err := yaml.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return &out
}

// attribute is the last part of a probe's address.
func attribute(p *model.Probe) string { return p.HTTP[strings.LastIndex(p.HTTP, "/")+1:] }

// TestProbesFitTheAnswersOfAllReleases reads recorded answers with the target
// files' patterns.
func TestProbesFitTheAnswersOfAllReleases(t *testing.T) {
	all := answers(t)
	for path, releases := range map[string][]string{"../../../targets/cassandra/target.yaml": {"4.1.7", "5.0.4"}, "../../../targets/cassandra-thrift/target.yaml": {"0.7.0", "1.0.8"}} {
		target := load(t, path)
		for _, release := range releases {
			read := map[string]map[string]string{"before": {}, "after": {}} // variable[about] -> value
			for when, got := range read {
				for _, v := range target.Variables {
					for _, s := range v.Sources {
						if s.Probe == nil {
							continue
						}
						text, ok := all[release][when+" "+attribute(s.Probe)]
						if !ok {
							continue
						}
						re := regexp.MustCompile(s.Regexp)
						for _, m := range re.FindAllStringSubmatch(text, -1) {
							name, value := v.Name, m[0]
							if i := re.SubexpIndex("about"); i >= 0 {
								name += "[" + m[i] + "]"
							}
							if i := re.SubexpIndex("value"); i >= 0 {
								value = m[i]
							}
							if s.Value != "" {
								value = s.Value
							}
							got[name] = value
						}
					}
				}
				for _, c := range target.Stable {
					text, ok := all[release][when+" "+attribute(&c.Probe)]
					if ok && !regexp.MustCompile(c.Match).MatchString(text) {
						t.Errorf("%s %s: condition %s does not match %s", release, when, c.Name, text)
					}
				}
			}
			for _, n := range []string{"10.64.0.1", "10.64.0.2", "10.64.0.3"} {
				for _, v := range []string{"status", "alive", "token"} {
					if read["before"][v+"["+n+"]"] == "" {
						t.Errorf("%s: no %s of %s in %v", release, v, n, slices.Sorted(maps.Keys(read["before"])))
					}
				}
				if s := read["before"]["status["+n+"]"]; s != "NORMAL" {
					t.Errorf("%s: status of %s is %q before anything happened", release, n, s)
				}
			}
			left := read["after"]["status[10.64.0.3]"]
			if want := map[bool]string{true: "", false: "LEFT"}[strings.Contains(path, "thrift")]; left != want {
				t.Errorf("%s: status of the node that left is %q, want %q", release, left, want)
			}
			if tok := read["after"]["token[10.64.0.3]"]; tok != "" {
				t.Errorf("%s: the node that left still has token %s", release, tok)
			}
		}
	}
}
