package report

import (
	"fmt"
	"html/template"
	"slices"
	"strings"

	"netsplit/model"
)

// runChart has the runs of a campaign, in their order, from left to right.
type runChart struct {
	drawing
	runs int
}

const chartLeft, chartRight, chartTop, chartBottom = 64.0, 1140.0, 20.0, 150.0

func newRunChart(runs, highest int) *runChart {
	c := &runChart{runs: runs}
	for _, k := range slices.Compact([]int{0, (highest + 1) / 2, highest}) {
		y := c.y(k, highest)
		c.line("grid", chartLeft, y, chartRight, y)
		c.text("lane-name end", chartLeft-10, y+4, fmt.Sprint(k))
	}
	return c
}

func (c *runChart) step() float64 { return (chartRight - chartLeft) / float64(c.runs) }

// x is the middle of a run, from 1.
func (c *runChart) x(run int) float64 { return chartLeft + c.step()*(float64(run)-0.5) }

func (c *runChart) y(k, highest int) float64 {
	return chartBottom - float64(k)/float64(max(1, highest))*(chartBottom-chartTop-10)
}

// sum draws how many there were up to each run; counts[k] came with run k, from 1.
func (c *runChart) sum(class string, counts []int, highest int) {
	c.upTo(class, counts, highest, c.runs)
}

// upTo is sum, up to a run.
func (c *runChart) upTo(class string, counts []int, highest, last int) {
	var path strings.Builder
	fmt.Fprintf(&path, "M%s %s", num(chartLeft), num(c.y(0, highest)))
	sum := 0
	for k := 1; k <= last; k++ {
		if counts[k] > 0 {
			fmt.Fprintf(&path, "H%s", num(c.x(k)))
			sum += counts[k]
			fmt.Fprintf(&path, "V%s", num(c.y(sum, highest)))
		}
	}
	fmt.Fprintf(&path, "H%s", num(chartLeft+c.step()*float64(last)))
	c.tag("path", "class", class, "d", path.String())
}

// numbers writes the number of every few runs below the chart.
func (c *runChart) numbers(y float64) {
	every := max(1, c.runs/24)
	for i := 1; i <= c.runs; i++ {
		if i%every == 0 || i == 1 {
			c.text("tick", c.x(i), y, fmt.Sprint(i))
		}
	}
}

// maxMarks bounds the marks of a chart: more would be thinner than a reader can tell apart.
const maxMarks = 250

// marks draws the verdict of each run, or of as many runs together as there is room for: a
// failed one among them is seen.
func (c *runChart) marks(runs []model.RunSummary) {
	each := (len(runs) + maxMarks - 1) / maxMarks
	for from := 0; from < len(runs); from += each {
		some := runs[from:min(from+each, len(runs))]
		worst, count := some[0].Verdict.Value, map[model.VerdictValue]int{}
		for _, r := range some {
			v := r.Verdict.Value
			count[v]++
			if v == model.VerdictFail || worst == model.VerdictPass {
				worst = v
			}
		}
		c.open("g", "class", "run-mark")
		if r := some[0]; len(some) == 1 {
			c.title(fmt.Sprintf("run %d, %s: %s. %s", from+1, r.Run, r.Verdict.Value, r.Verdict.Reason))
		} else {
			var words []string
			for _, v := range []model.VerdictValue{model.VerdictPass, model.VerdictFail, model.VerdictUnknown, model.VerdictVacuous} {
				if count[v] > 0 {
					words = append(words, fmt.Sprintf("%d %s", count[v], v))
				}
			}
			c.title(fmt.Sprintf("runs %d to %d: %s", from+1, from+len(some), list(words)))
		}
		size := min(5, c.step()*float64(each)*0.4)
		cx, cy := (c.x(from+1)+c.x(from+len(some)))/2, chartBottom+22
		switch worst {
		case model.VerdictFail:
			c.tag("path", "class", "cross", "d", fmt.Sprintf("M%s %sl%s %sm0 -%sl-%s %s", num(cx-size), num(cy-size), num(2*size), num(2*size), num(2*size), num(2*size), num(2*size)))
		case model.VerdictPass:
			c.tag("circle", "class", "dot-pass", "cx", cx, "cy", cy, "r", size)
		default:
			c.rect("dot-unknown", cx-size, cy-size, 2*size, 2*size)
		}
		c.close("g")
	}
}

// findingsChart draws, run by run, the verdict and how many distinct findings
// had been seen.
func findingsChart(in *CampaignInput) template.HTML {
	n := len(in.Runs)
	if n == 0 {
		return ""
	}
	total := max(1, len(in.Findings))
	d := newRunChart(n, total)
	// Findings are numbered by the run after which they were first seen.
	all, admitted := make([]int, n+1), make([]int, n+1)
	for _, f := range in.Findings {
		k := min(max(f.FirstAfter, 1), n)
		all[k]++
		admitted[k] += b2i(f.Class == model.Documented)
	}
	if !slices.Equal(all, admitted) {
		d.sum("step", all, total)
	}
	if slices.Max(admitted) > 0 {
		d.sum("step documented", admitted, total)
	}
	d.marks(in.Runs)
	d.numbers(chartBottom + 44)
	d.text("legend", chartLeft, 12, "distinct findings by run (red: all, amber: documented ones)  ● pass  ✕ fail  ■ unknown or vacuous")
	return d.done(runWidth, chartBottom+52, fmt.Sprintf("%s after %s", model.Count(len(in.Findings), "finding", "findings"), model.Count(n, "run", "runs")), "wide")
}

// coverageChart draws, run by run, how many fields of the partition map a fault had met,
// against all that runs had. A campaign without faults has none.
func coverageChart(in *CampaignInput) template.HTML {
	n := len(in.Runs)
	place := map[string]int{}
	for i := range in.Runs {
		place[in.Runs[i].Run] = i + 1
	}
	met := make([]int, n+1)
	firsts := firstMet(in.Map, func(run string) int { return place[run] })
	for _, k := range firsts {
		met[k]++
	}
	sum := len(firsts)
	if sum == 0 {
		return ""
	}
	d := newRunChart(n, len(in.Map.Cells))
	d.sum("step met", met, len(in.Map.Cells))
	d.numbers(chartBottom + 20)
	words := fmt.Sprintf("cells of the map that a fault has met: %d of %d after %s", sum, len(in.Map.Cells), model.Count(n, "run", "runs"))
	d.text("legend", chartLeft, 12, words)
	return d.done(runWidth, chartBottom+28, words, "wide")
}
