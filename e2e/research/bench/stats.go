package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// number is what a table holds: figures, and durations in a unit of choice.
type number interface {
	~int | ~int64 | ~uint64 | ~float64
}

// quantile is the value below which a part q of the sorted copy of vs lies,
// by nearest rank; zero without values.
func quantile[T cmp.Ordered](vs []T, q float64) T {
	if len(vs) == 0 {
		var zero T
		return zero
	}
	s := slices.Sorted(slices.Values(vs))
	return s[int(q*float64(len(s)-1)+.5)]
}

// spread is median, least and greatest of so many repeated measurements.
type spread struct {
	mid, min, max float64
	of            int
}

func spreadOf[T number](vs []T) spread {
	if len(vs) == 0 {
		return spread{}
	}
	return spread{float64(quantile(vs, .5)), float64(slices.Min(vs)), float64(slices.Max(vs)), len(vs)}
}

// text is "median (least to greatest)", each printed with format; "none" of nothing.
func (s spread) text(format string) string {
	if s.of == 0 {
		return "none"
	}
	return fmt.Sprintf(format+" ("+format+" to "+format+")", s.mid, s.min, s.max)
}

// ratios divides pair by pair; pairs whose divisor is not positive are left
// out.
func ratios[T, U number](a []T, b []U) []float64 {
	var out []float64
	for i := range min(len(a), len(b)) {
		if b[i] > 0 {
			out = append(out, float64(a[i])/float64(b[i]))
		}
	}
	return out
}

// ratioText is the spread of what ratios gives; where pairs are left out or
// missing it says how many it is of.
func ratioText[T, U number](a []T, b []U) string {
	r, all := ratios(a, b), max(len(a), len(b))
	text := spreadOf(r).text("%.2f")
	if len(r) < all {
		text += fmt.Sprintf(", of %d of %d pairs", len(r), all)
	}
	return text
}

// minus subtracts pair by pair. It is nil where a pair is incomplete.
func minus(a, b []time.Duration) []time.Duration {
	if len(a) != len(b) {
		return nil
	}
	var out []time.Duration
	for i := range a {
		out = append(out, a[i]-b[i])
	}
	return out
}

func micros(ds []time.Duration) []float64 {
	out := make([]float64, len(ds))
	for i, d := range ds {
		out[i] = float64(d) / float64(time.Microsecond)
	}
	return out
}

// row is one line of the table.
type row struct {
	what, ours, beside, ratio, goal string
	met                             mark
}

func print(w io.Writer, rows []row) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "WHAT\tNETSPLIT\tBESIDE\tRATIO\tGOAL\t")
	fmt.Fprintln(t, strings.Repeat("-\t", 6))
	for _, r := range rows {
		fmt.Fprintln(t, strings.Join([]string{r.what, r.ours, r.beside, r.ratio, r.goal, string(r.met)}, "\t"))
	}
	return t.Flush()
}
