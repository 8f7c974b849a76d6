package sut

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"netsplit/model"
)

// Operation is an operation of the target file as in.Host does it, with its
// arguments, in the order of Takes, filled in. The error names an operation
// that the target does not have, or says how many arguments it takes.
func Operation(t *model.Target, in ExpandInput, name string, args []string) (model.ClientOperation, error) {
	i := slices.IndexFunc(t.Operations, func(o model.ClientOperation) bool { return o.Name == name })
	if i < 0 {
		return model.ClientOperation{}, fmt.Errorf("target %s has no operation %q%s: it has %s", t.Name, name, DidYouMean(name, operationNames(t)), orNone(operationNames(t)))
	}
	op := t.Operations[i]
	if len(args) != len(op.Takes) {
		return op, fmt.Errorf("operation %s takes %d argument(s), %s, but has %d here", name, len(op.Takes), orNone(op.Takes), len(args))
	}
	x, err := scriptExpander(t, in)
	if err != nil {
		return op, err
	}
	x.v.Op = map[string]string{}
	for j, k := range op.Takes {
		x.v.Op[k] = args[j]
	}
	at := fmt.Sprintf("operations[%d]", i)
	op.Command, op.Env = x.list(at+".command", op.Command), x.mapping(at+".env", op.Env)
	if len(x.errs) > 0 {
		return op, x.errs[0]
	}
	return op, nil
}

func scriptExpander(t *model.Target, in ExpandInput) (*expander, error) {
	args, err := Args(t, in.Args)
	if err != nil {
		return nil, err
	}
	x := &expander{v: values(t, in, args)}
	if ip, ok := in.Hosts[in.Host]; ok {
		x.v.IP = ip.String()
	}
	return x, nil
}

func operationNames(t *model.Target) []string {
	var out []string
	for _, o := range t.Operations {
		out = append(out, o.Name)
	}
	return out
}

// PeriodOf is how long a period of the target is under its settings. The error
// names a period that the target does not have.
func PeriodOf(t *model.Target, in ExpandInput, name string) (time.Duration, error) {
	p, ok := t.Periods[name]
	if !ok {
		names := slices.Sorted(maps.Keys(t.Periods))
		return 0, fmt.Errorf("target %s has no period %q%s: it has %s", t.Name, name, DidYouMean(name, names), orNone(names))
	}
	x, err := scriptExpander(t, in)
	if err != nil {
		return 0, err
	}
	return x.period(name, p)
}

func (x *expander) period(name string, p model.Period) (time.Duration, error) {
	text := x.text("periods."+name+".length", p.Length)
	if len(x.errs) > 0 {
		return 0, x.errs[0]
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("period %s: %q: want a duration with a unit, such as 1.5s or {{.Args.name}}ms", name, text)
	}
	return d, nil
}

// RoleOf is a role of the target file as a host is asked about it. The error
// names a role that the target does not have.
func RoleOf(t *model.Target, in ExpandInput, name string) (model.Role, error) {
	r, ok := t.Roles[name]
	if !ok {
		names := slices.Sorted(maps.Keys(t.Roles))
		return r, fmt.Errorf("target %s has no role %q%s: it has %s", t.Name, name, DidYouMean(name, names), orNone(names))
	}
	x, err := scriptExpander(t, in)
	if err != nil {
		return r, err
	}
	r.Probe, r.Match = x.probe("roles."+name+".probe", r.Probe), x.text("roles."+name+".match", r.Match)
	if len(x.errs) > 0 {
		return r, x.errs[0]
	}
	return r, nil
}

var argumentRE = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

func (v *validator) scripts() {
	v.unique("operations", "operation", len(v.t.Operations), func(i int) string { return v.t.Operations[i].Name })
	for i, o := range v.t.Operations {
		at := fmt.Sprintf("operations[%d]", i)
		v.command(at+".command", o.Command)
		v.regexp(at+".ok", o.OK, []string{"value"})
		v.regexp(at+".refused", o.Refused, []string{})
		for j, a := range o.Takes {
			if !argumentRE.MatchString(a) {
				v.addf(fmt.Sprintf("%s.takes[%d]", at, j), "argument %q: use letters, digits and _, since templates write .Op.%s", a, a)
			}
			if slices.Index(o.Takes, a) < j {
				v.addf(fmt.Sprintf("%s.takes[%d]", at, j), "argument %q stands twice: give each a name of its own", a)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v.t.Periods)) {
		if !nameRE.MatchString(name) {
			v.addf("periods."+name, "%q: use letters, digits, - and _", name)
		}
		if v.t.Periods[name].Length == "" {
			v.addf("periods."+name+".length", "period %q has no length: give a duration, such as 1.5s", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v.t.Roles)) {
		r, at := v.t.Roles[name], "roles."+name
		if model.MomentRole(name) {
			v.addf(at, "role %q: %s are names of netsplit's own: choose another name", name, strings.Join(model.MomentRoles(), ", "))
		}
		if len(r.Hosts) == 0 {
			v.addf(at+".hosts", "role %q has no hosts: name those that may have it", name)
		}
		v.declared(at+".hosts", r.Hosts...)
		v.probe(at+".probe", r.Probe)
		if r.Match == "" {
			v.addf(at+".match", "role %q has no match: give the regular expression that the answer of a host with the role must match", name)
		}
		v.regexp(at+".match", r.Match, nil)
	}
}

// expandScripts fills the templates of what scripts use, with made-up values.
func (v *validator) expandScripts(x *expander, say func(at, text string)) {
	for _, name := range slices.Sorted(maps.Keys(v.t.Periods)) {
		own := &expander{v: x.v}
		if _, err := own.period(name, v.t.Periods[name]); err != nil {
			say("periods."+name+".length", err.Error())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v.t.Roles)) {
		r := v.t.Roles[name]
		x.probe("roles."+name+".probe", r.Probe)
		match := x.text("roles."+name+".match", r.Match)
		if strings.Contains(r.Match, "{{") {
			for _, p := range patternProblems(match, nil) {
				say("roles."+name+".match", p)
			}
		}
	}
	for i, o := range v.t.Operations {
		at := fmt.Sprintf("operations[%d]", i)
		x.v.Op = map[string]string{}
		for _, a := range o.Takes { // node, as those that look up its address
			x.v.Op[a] = x.v.Host
		}
		x.list(at+".command", o.Command)
		x.mapping(at+".env", o.Env)
	}
	x.v.Op = nil
}
