package check

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"netsplit/model"
	"netsplit/record"
)

// maxExcusedLines bounds the log lines that a verdict lists as excused.
const maxExcusedLines = 50

// excusedLines finds and keeps the log lines that Logs.Disturbed allows, and those that tell
// of a disk that failed.
type excusedLines struct {
	disks        []diskFault // that fail operations
	patterns     []*regexp.Regexp
	within       []time.Duration // by pattern
	disturbances []disturbance
	list         []model.ExcusedLine
	index        map[excusedKey]int      // in list
	last         map[said]record.LogLine // that was listed
}

// excusedKey is what lines of one entry have in common.
type excusedKey struct {
	host          model.NodeID
	process, what string
	pattern       int // noPattern: the disk of the server failed
}

const noPattern = -1

// disturbedLines compiles Logs.Disturbed. Disturbances are those that check
// operations sees.
func disturbedLines(r *Record) (*excusedLines, error) {
	x := &excusedLines{disks: slices.DeleteFunc(r.diskFaults(), func(f diskFault) bool { return f.Kills() }), index: map[excusedKey]int{}, last: map[said]record.LogLine{}}
	var patterns []string
	for _, d := range r.Target.Logs.Disturbed {
		patterns = append(patterns, d.Match)
		x.within = append(x.within, d.Within)
	}
	var err error
	if x.patterns, err = compile(patterns); err != nil {
		return nil, err
	}
	x.disturbances = slices.DeleteFunc(disturbances(r, 0, 0), func(d disturbance) bool { return d.unborn })
	return x, nil
}

// allows says whether the disk of the line's server fails at that moment, or a pattern matches
// the line, and a disturbance held or was over for no longer than the pattern's Within; if so
// it is listed. Lines come in order of time.
func (x *excusedLines) allows(l record.LogLine) bool {
	for _, f := range x.disks {
		if d := f.disturbance(); f.Of(l.Host, l.Process) && d.holds(l.At) {
			x.excuse(l, d.what, noPattern)
			return true
		}
	}
	text := strings.Join(append([]string{l.Line}, l.Context...), "\n")
	for p, re := range x.patterns {
		i := slices.IndexFunc(x.disturbances, func(d disturbance) bool {
			return d.from <= l.At && (d.to == forever || l.At <= d.to+x.within[p])
		})
		if i < 0 || !re.MatchString(text) {
			continue
		}
		x.excuse(l, x.disturbances[i].what, p)
		return true
	}
	return false
}

// excuse lists a line, once where it was both printed and written to a file.
func (x *excusedLines) excuse(l record.LogLine, what string, pattern int) {
	first, ok := x.last[said{l.Host, l.Line}]
	if !ok || !twice(&first, &l) {
		x.last[said{l.Host, l.Line}] = l
		x.note(l, excusedKey{l.Host, l.Process, what, pattern})
	}
}

func (x *excusedLines) note(l record.LogLine, k excusedKey) {
	i, ok := x.index[k]
	if !ok {
		if len(x.list) == maxExcusedLines {
			return
		}
		i = len(x.list)
		x.index[k] = i
		x.list = append(x.list, model.ExcusedLine{Host: l.Host, Process: l.Process, Line: model.Excerpt(l.Line), Why: k.what, First: l.At})
	}
	x.list[i].Count++
	x.list[i].Last = l.At
}
