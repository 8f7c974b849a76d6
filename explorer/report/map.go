package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"netsplit/model"
)

// mapView is a campaign's partition map.
type mapView struct {
	Note  string
	Kinds []mapTable
}

// mapTable is the map of one kind of fault.
type mapTable struct {
	Name, Sum, More string
	Open            bool
	Links           []mapLink
	Rows            []mapRow
}

type mapLink struct{ From, To string }

type mapRow struct {
	Type   string
	Fields []mapField
}

type mapField struct{ Class, Text, Title string }

// maxMapRows bounds the rows of a table. Those that no fault met are left out first.
const maxMapRows = 100

// maxMapLinks bounds its columns.
const maxMapLinks = 60

var metWords = map[model.MetKind]string{
	model.MetCut: "Cut", model.MetCrash: "A server crashed at it", model.MetPause: "A server was paused at it", model.MetDisk: "A disk fault began at it",
	model.MetKind(model.FaultDelay): "Delayed", model.MetKind(model.FaultDuplicate): "Duplicated", model.MetKind(model.FaultReorder): "Reordered", model.MetKind(model.FaultLose): "Lost",
}

// newMapView is nil where no fault met a message that was read.
func newMapView(m model.PartitionMap) *mapView {
	cells := m.Cells
	v := &mapView{Note: "Each cell is a type of message on a directed link, as read while workloads ran. " +
		"✕ a/b: of b runs in which the fault met such a message, a broke a promise. △ a/b: a failed as documented. A number: so many runs, all passed. " +
		"a/b: a passed, the others could not be judged. ?: none could. ·: seen, never met. A run counts in every cell that its fault met, so a failure is evidence, not proof, against a cell."}
	var links []model.Link
	for _, c := range cells {
		links = append(links, model.Link{Src: c.From, Dst: c.To})
	}
	slices.SortFunc(links, func(a, b model.Link) int { return cmp.Or(cmp.Compare(a.Src, b.Src), cmp.Compare(a.Dst, b.Dst)) })
	links = slices.Compact(links)
	if more := len(links) - maxMapLinks; more > 0 {
		links = links[:maxMapLinks]
		cells = slices.DeleteFunc(slices.Clone(cells), func(c model.MapCell) bool { return !slices.Contains(links, model.Link{Src: c.From, Dst: c.To}) })
		v.Note += fmt.Sprintf(" %s more are not shown; netsplit campaign map lists all.", model.Count(more, "link", "links"))
	}
	if m.LeftOut > 0 {
		v.Note += fmt.Sprintf(" The map is full: what runs had of %s is left out.", model.Count(m.LeftOut, "further cell", "further cells"))
	}
	for _, kind := range model.MetKinds() {
		if slices.ContainsFunc(cells, func(c model.MapCell) bool { return c.Of(kind).Runs() > 0 }) {
			v.Kinds = append(v.Kinds, newMapTable(kind, links, cells))
		}
	}
	if len(v.Kinds) == 0 {
		return nil
	}
	v.Kinds[0].Open = true
	return v
}

func newMapTable(kind model.MetKind, links []model.Link, cells []model.MapCell) mapTable {
	t := mapTable{Name: metWords[kind]}
	column := map[model.Link]int{}
	for i, l := range links {
		column[l] = i
		t.Links = append(t.Links, mapLink{clean(string(l.Src)), clean(string(l.Dst))})
	}
	type line struct {
		mapRow
		failed, met int
	}
	byType := map[string]*line{}
	var lines []*line
	failed, met := 0, 0
	for _, c := range cells {
		l := byType[c.Type]
		if l == nil {
			l = &line{mapRow: mapRow{Type: clean(c.Type), Fields: make([]mapField, len(links))}}
			byType[c.Type], lines = l, append(lines, l)
		}
		o := c.Of(kind)
		l.Fields[column[model.Link{Src: c.From, Dst: c.To}]] = newMapField(c, o)
		l.failed, l.met = l.failed+b2i(o.Failed > 0), l.met+b2i(o.Runs() > 0)
		failed, met = failed+b2i(o.Failed > 0), met+b2i(o.Runs() > 0)
	}
	slices.SortStableFunc(lines, func(a, b *line) int { return cmp.Or(cmp.Compare(b.failed, a.failed), cmp.Compare(b.met, a.met)) })
	t.Sum = fmt.Sprintf("%d of %s met, %d of them in runs that broke a promise", met, model.Count(len(cells), "cell", "cells"), failed)
	if more := len(lines) - maxMapRows; more > 0 {
		lines = lines[:maxMapRows]
		t.More = fmt.Sprintf("%s more, less often met; netsplit campaign map lists all.", model.Count(more, "type", "types"))
	}
	for _, l := range lines {
		t.Rows = append(t.Rows, l.mapRow)
	}
	return t
}

func newMapField(c model.MapCell, o model.MapOutcome) mapField {
	n := o.Runs()
	if n == 0 {
		return mapField{Class: "never", Text: "·"}
	}
	f := mapField{Class: "pass", Text: fmt.Sprint(n)}
	switch {
	case o.Failed > 0:
		f = mapField{Class: "fail", Text: fmt.Sprintf("✕ %d/%d", o.Failed, n)}
	case o.Documented > 0:
		f = mapField{Class: "documented", Text: fmt.Sprintf("△ %d/%d", o.Documented, n)}
	case o.Passed == 0:
		f = mapField{Class: "unknown", Text: "?"}
	case o.Undecided > 0:
		f = mapField{Class: "pass", Text: fmt.Sprintf("%d/%d", o.Passed, n)}
	}
	var words []string
	for _, part := range []struct {
		n    int
		word string
	}{{o.Failed, "broke a promise"}, {o.Documented, "failed as documented"}, {o.Passed, "passed"}, {o.Undecided, "unknown or vacuous"}} {
		if part.n > 0 {
			words = append(words, fmt.Sprintf("%d %s", part.n, part.word))
		}
	}
	f.Title = clean(fmt.Sprintf("%s, %s → %s, in %s: %s; first %s", c.Type, c.From, c.To, model.Count(n, "run", "runs"), strings.Join(words, ", "), o.First))
	return f
}
