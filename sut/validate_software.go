package sut

import (
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"netsplit/explorer/check"
	"netsplit/model"
)

var releaseRE = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]*$`)

// software checks what says where the programs come from. Whether the catalogue
// has the releases is not asked here: it may be a file of its own.
func (v *validator) software() {
	s := v.t.Software
	if s == nil {
		return
	}
	if !releaseRE.MatchString(s.Product) {
		v.addf("software.product", "%q: name a product of the catalogue, such as cassandra: letters, digits, dots and dashes", s.Product)
	}
	if s.Catalog != "" && !filepath.IsLocal(s.Catalog) {
		v.addf("software.catalog", "%q must stand beside the target file: use a relative path without ..", s.Catalog)
	}
	if len(s.Versions) == 0 {
		v.addf("software.versions", "no versions: list the releases that this file is made for, such as versions: [3.3.0, 3.4.1]")
	}
	for i, r := range s.Versions {
		at := fmt.Sprintf("software.versions[%d]", i)
		if !releaseRE.MatchString(r) {
			v.addf(at, "release %q: use letters, digits, dots and dashes", r)
		}
		if slices.Index(s.Versions, r) < i {
			v.addf(at, "release %q stands twice: keep one", r)
		}
	}
	switch {
	case s.Default == "":
		v.addf("software.default", "no default: say which release runs when none is named")
	case !slices.Contains(s.Versions, s.Default):
		v.addf("software.default", "release %q is not in versions%s: they are %s", s.Default, DidYouMean(s.Default, s.Versions), orNone(s.Versions))
	}
}

func (v *validator) globs(at string, patterns []string) {
	for i, p := range patterns {
		if _, err := path.Match(p, ""); err != nil {
			v.addf(fmt.Sprintf("%s[%d]", at, i), "bad pattern %q: * matches any text without /, [a-z] one letter", p)
		} else if !filepath.IsLocal(p) {
			v.addf(fmt.Sprintf("%s[%d]", at, i), "pattern %q must stay inside the host's directory: use a relative path without ..", p)
		}
	}
}

func (v *validator) template() {
	v.globs("template.keep", v.t.Template.Keep)
	if len(v.t.Template.Keep) == 0 {
		return // what is once runs each time
	}
	for i, p := range v.t.Processes {
		if !p.Once {
			v.written(fmt.Sprintf("processes[%d].command", i), p.Command, p.Hosts...)
		}
	}
	for i, w := range v.t.Workloads {
		v.written(fmt.Sprintf("workloads[%d].command", i), w.Command, w.Host)
	}
	for i, w := range v.t.Final {
		v.written(fmt.Sprintf("final[%d].command", i), w.Command, w.Host)
	}
}

// written says of the files that a command names in {{.Dir}} which ones only a set-up command
// writes there: runs that start from the template skip it.
func (v *validator) written(at string, command []string, hosts ...model.NodeID) {
	text := strings.Join(command, "\n")
	for _, h := range hosts {
		once, always := map[string]string{}, map[string]bool{}
		for _, p := range v.t.Processes {
			for f := range p.Files {
				switch {
				case !slices.Contains(p.Hosts, h):
				case p.Once:
					once[f] = p.Name
				default:
					always[f] = true
				}
			}
		}
		for _, f := range slices.Sorted(maps.Keys(once)) {
			if strings.Contains(text, "{{.Dir}}/"+f) && !always[f] && !kept(v.t.Template.Keep, f) {
				v.addf(at, "{{.Dir}}/%s is written on %s by process %q alone, and runs that start from the template skip it, as it is once: have another process of %s write it, or add it to template.keep", f, h, once[f], h)
			}
		}
	}
}

// kept says whether a template keeps a file, or a folder that it is in.
func kept(keep []string, file string) bool {
	return slices.ContainsFunc(keep, func(pattern string) bool {
		for f := filepath.Clean(file); f != "."; f = filepath.Dir(f) {
			if ok, _ := path.Match(filepath.Clean(pattern), f); ok {
				return true
			}
		}
		return false
	})
}

func (v *validator) logs() {
	v.globs("logs.files", v.t.Logs.Files)
	for key, list := range map[string][]string{"logs.fatal": v.t.Logs.Fatal, "logs.allow": v.t.Logs.Allow} {
		for i, p := range list {
			v.regexp(fmt.Sprintf("%s[%d]", key, i), p, nil)
		}
	}
	v.disturbed()
}

// disturbed checks the lines that are allowed after a disturbance.
func (v *validator) disturbed() {
	for i, d := range v.t.Logs.Disturbed {
		at := fmt.Sprintf("logs.disturbed[%d]", i)
		if d.Match == "" {
			v.addf(at+".match", "no match: give the regular expression of the line")
		} else if re := v.regexp(at+".match", d.Match, nil); re != nil && re.MatchString("") {
			v.addf(at+".match", "%q matches every line: write what identifies this one", d.Match)
		}
		if d.Within <= 0 {
			v.addf(at+".within", "missing: say how long after a cut was healed, or a server started again, the line may still come, such as 20s")
		}
	}
}

func (v *validator) known() {
	seen := map[string]int{}
	for i, k := range v.t.Known {
		at := fmt.Sprintf("known[%d]", i)
		if strings.TrimSpace(k.ID) == "" {
			v.addf(at+".id", "no id: give the number of its report, such as CASSANDRA-2115")
		} else if first, dup := seen[k.ID+" "+k.Check]; dup {
			v.addf(at+".id", "%q stands twice for one check (first at known[%d]): put both signatures into one match, as a|b", k.ID, first)
		} else {
			seen[k.ID+" "+k.Check] = i
		}
		if k.Check != "" && !slices.Contains(check.Names(), k.Check) {
			v.addf(at+".check", "unknown check %q%s: there are %s", k.Check, DidYouMean(k.Check, check.Names()), strings.Join(check.Names(), ", "))
		}
		if len(k.Documented) > 0 && k.By != "" {
			v.addf(at+".documented", "a symptom alone does not identify the documented failure: write words of the report, without by")
		}
		if k.By != "" && k.By != model.KnownBySymptom {
			v.addf(at+".by", "%q: write symptom if the match has only the symptom, and nothing if it has words of the report", k.By)
		}
		if k.Match == "" {
			v.addf(at+".match", "no match: give the regular expression that the failure's text must match")
		} else if re := v.regexp(at+".match", k.Match, nil); re != nil && re.MatchString("") {
			v.addf(at+".match", "%q matches every failure: write what identifies this one", k.Match)
		}
	}
}
