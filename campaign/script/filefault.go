package script

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"netsplit/model"
	"netsplit/sut"
)

func (c *checker) fault(at string, f *FaultStep) {
	if f.Name == "" {
		c.bad(at+".name", "the message fault has no name: give one, for end and await")
	}
	if _, acts := c.faults[f.Name]; acts {
		c.bad(at+".name", "a message fault named %q acts here already: end it first, or take another name", f.Name)
	}
	ok := true
	bad := func(key, format string, args ...any) {
		ok = false
		c.bad(at+"."+key, format, args...)
	}
	m := f.model(func(key, text string) time.Duration {
		d, err := spanOf(text, func(name string) (time.Duration, error) {
			return sut.PeriodOf(c.t, sut.ExpandInput{Args: c.f.Set}, name)
		})
		if err != nil {
			bad(key, "%v", err)
		}
		return d
	})
	match, fine := c.match(at+".match", &f.Match)
	m.Match, ok = match, ok && fine
	if !slices.Contains(model.FaultKinds(), m.Kind) {
		bad("kind", "unknown kind %q: use one of %v", f.Kind, model.FaultKinds())
	}
	if ok {
		if err := m.Validate(c.hosts); err != nil {
			c.bad(at, "%s", strings.TrimPrefix(err.Error(), "message fault: "))
		}
	}
	if f.Name != "" {
		c.faults[f.Name] = m.Most()
	}
}

// match checks which messages are meant, and whether that is in order. A name for a host is
// left out of what it returns.
func (c *checker) match(at string, m *MatchStep) (out model.MessageMatch, ok bool) {
	ok = true
	bad := func(key, format string, args ...any) {
		ok = false
		c.bad(at+"."+key, format, args...)
	}
	if out.Type = m.Type; m.Type == "" {
		bad("type", "type is missing: say which messages, such as type: \"tcp syn *\"; a run's report lists the types, and * is any text")
	}
	for _, end := range []struct {
		key, word string
		host      *model.NodeID
		role      *string
	}{{"from", m.From, &out.From, &out.FromRole}, {"to", m.To, &out.To, &out.ToRole}} {
		switch k := c.nameOf(at+"."+end.key, end.word); {
		case k == aHost || end.word == "":
		case k == "unknown":
			ok = false
		case k != "":
			bad(end.key, "%s is %s: name a host or a role", end.word, k)
		case slices.Contains(c.hosts, Host(end.word)):
			*end.host = Host(end.word)
		case slices.Contains(c.roles(), end.word):
			*end.role = end.word
		default:
			bad(end.key, "no host and no role %q: the target has hosts %s and roles %s", end.word, names(c.hosts), orNone(c.roles()))
		}
	}
	return out, ok
}

func (c *checker) roles() []string { return slices.Sorted(maps.Keys(c.t.Roles)) }

func (c *checker) awaitFault(at string, a *AwaitStep) {
	most, acts := c.faults[a.Fault]
	if !acts {
		c.bad(at+".fault", "no message fault named %q acts at this step: there are %s", a.Fault, orNone(slices.Sorted(maps.Keys(c.faults))))
		return
	}
	switch n := a.packets(); {
	case n < 1:
		c.bad(at+".packets", "packets %d: wait for one or more", n)
	case most > 0 && n > most:
		c.bad(at+".packets", "it acts on %d packet(s) at most, and %d never come: give the fault times: %d or more", most, n, n)
	}
	if a.As != "" {
		c.bad(at+".as", "a message fault gives no value: leave out as")
	}
}

func (a *AwaitStep) packets() int {
	if a.Packets == nil {
		return 1
	}
	return *a.Packets
}

// model is the fault as the engine knows it, without its match.
func (f *FaultStep) model(span func(key, text string) time.Duration) model.MessageFault {
	of := func(key, text string) time.Duration {
		if text == "" {
			return 0
		}
		return span(key, text)
	}
	return model.MessageFault{
		Kind: model.FaultKind(f.Kind),
		Nth:  f.Nth, Every: f.Every, Times: f.Times, For: of("for", f.For), Copies: f.Copies, Gap: of("gap", f.Gap),
		Behind: f.Behind, Limit: of("limit", f.Limit), Lose: model.Loss(f.Lose), Again: f.Again,
	}
}

func (p *player) fault(f *FaultStep) {
	m := f.model(func(_, text string) time.Duration { return p.span(text) })
	m.Match = p.match(&f.Match)
	p.faults[f.Name] = p.s.Fault(f.Name, m)
}

func (p *player) match(m *MatchStep) model.MessageMatch {
	return model.MessageMatch{Type: m.Type, From: p.host(m.From), To: p.host(m.To)} // or roles, which the run tells
}

// awaitFault waits for a fault; without one the script ends.
func (p *player) awaitFault(a *AwaitStep, limit time.Duration) {
	f := p.faults[a.Fault]
	if f == nil {
		p.s.step("await", "await message fault "+a.Fault, func() (string, error) {
			return "", fmt.Errorf("the step that begins it was left out (%s): give this one the same if", p.left[faultPrefix+a.Fault])
		})
	}
	p.s.AwaitFault(limit, f, a.packets())
}
