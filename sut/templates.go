package sut

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
)

// templateProblem is a template that cannot be filled in.
type templateProblem struct {
	path string // where it stands in the target file
	line int    // of the template, from 1
	text string
}

func (p *templateProblem) Error() string { return "template of " + p.path + ": " + p.text }

// valueNames lists the names of Values as templates write them.
const valueNames = ".Host .IP .IPs .Dir .TargetDir .Bin .Args .Seed .RunStart .WorkloadFor .Version .Lib .Files .Java .JavaHome .Cache .Netsplit .Work .Building .Op"

var (
	templateRE = regexp.MustCompile(`^(\d+)(?::\d+)?: (?:executing .*? at )?(?:<(.*?)>: )?(.*)$`)
	noFieldRE  = regexp.MustCompile(`can't evaluate field (\S+) in type sut\.Values`)
	noKeyRE    = regexp.MustCompile(`map has no entry for key "(.*)"`)
)

func (v Values) filled(path, s string) (string, *templateProblem) {
	t, err := template.New(path).Option("missingkey=error").Funcs(functions).Parse(s)
	var b strings.Builder
	if err == nil {
		err = t.Execute(&b, v)
	}
	if err == nil {
		return b.String(), nil
	}
	p := &templateProblem{path: path, line: 1, text: err.Error()}
	m := templateRE.FindStringSubmatch(strings.TrimPrefix(p.text, "template: "+path+":"))
	if m == nil {
		return "", p
	}
	p.line, _ = strconv.Atoi(m[1])
	p.text = m[3] + ": see docs/target-reference.md#templates"
	if f := noFieldRE.FindStringSubmatch(m[3]); f != nil {
		p.text = fmt.Sprintf("no value .%s%s: there are %s", f[1], DidYouMean("."+f[1], strings.Fields(valueNames)), valueNames)
	}
	if k := noKeyRE.FindStringSubmatch(m[3]); k != nil {
		what, where, have := "setting", "args has", v.Args
		switch {
		case strings.HasPrefix(m[2], ".IPs"):
			what, where, have = "host", "there are", v.IPs
		case strings.HasPrefix(m[2], ".Op"):
			what, where, have = "argument", "takes has", v.Op
		}
		names := slices.Sorted(maps.Keys(have))
		p.text = fmt.Sprintf("no %s %q%s: %s %s", what, k[1], DidYouMean(k[1], names), where, orNone(names))
	}
	return "", p
}
