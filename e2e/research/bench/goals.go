package main

import "fmt"

// mark says whether a goal was met.
type mark string

const (
	met    mark = "met"
	missed mark = "MISSED"
	noMark mark = "" // there is no goal, or too little was measured to tell
)

func is(ok bool) mark {
	if ok {
		return met
	}
	return missed
}

// goalTrials is how many trials it takes to meet a goal of none at all: that
// nothing was seen in a few shows little.
const goalTrials = 1000

// noneGoal is that goal in words.
var noneGoal = fmt.Sprintf("0 in %d", goalTrials)

// seen is how much of what is not to be was seen in so many trials of one kind.
type seen struct{ trials, events int }

// none judges the goal of none at all. One event misses it, however few trials
// there were; it is met where every kind had goalTrials of them.
func none(kinds ...seen) mark {
	out := met
	for _, k := range kinds {
		switch {
		case k.events > 0:
			return missed
		case k.trials < goalTrials:
			out = noMark
		}
	}
	if len(kinds) == 0 {
		return noMark
	}
	return out
}

// less subtracts times b from a, pair by pair. It is nil where a pair is
// incomplete.
func less(a, b []float64, times float64) []float64 {
	if len(a) != len(b) {
		return nil
	}
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] - times*b[i]
	}
	return out
}

// atLeast judges whether, pair by pair, a is at least so many times b in the
// middle. There is no mark where a pair is incomplete or its b is not positive,
// and thus was not measured.
func atLeast(a, b []float64, times float64) mark {
	d := less(a, b, times)
	if len(d) == 0 || len(ratios(a, b)) < len(d) {
		return noMark
	}
	return is(spreadOf(d).mid >= 0)
}

// noMore judges whether, pair by pair, a is no more than b in the middle. Both
// may be negative, as times that another one was taken off. There is no mark
// where a pair is incomplete.
func noMore(a, b []float64) mark {
	d := less(a, b, 1)
	if len(d) == 0 {
		return noMark
	}
	return is(spreadOf(d).mid <= 0)
}

// addsUnder judges whether, pair by pair, a is less than limit more than b in the
// middle. There is no mark where a pair is incomplete.
func addsUnder(a, b []float64, limit float64) mark {
	d := less(a, b, 1)
	if len(d) == 0 {
		return noMark
	}
	return is(spreadOf(d).mid < limit)
}
