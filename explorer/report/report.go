package report

import (
	"crypto/sha256"
	_ "embed" // the page, its style and its script
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"time"

	"netsplit/model"
	"netsplit/record"
)

// Input is all that the report of one run is made from.
type Input struct {
	Summary model.RunSummary
	Title   string         // of the target, e.g. "Redis + Sentinel, 3 nodes"
	Hosts   []model.NodeID // all of the testbed, in its order
	Nodes   []model.NodeID // those that run servers

	Events    []model.Event
	Decisions []model.Decision
	History   []record.Entry
	// Cuts are those of a run with several, with what each did.
	Cuts []model.CutProof

	Recovery   record.Recovery
	Exits      []record.Exit
	Incomplete []string          // why the run cannot be judged
	Ports      []record.PortRead // how much of each port was read
	LogLines   []record.LogLine  // that the target's file calls fatal

	// Known are the described failures of the target (Target.Known), for their
	// titles.
	Known []model.KnownFailure

	// Invariants are those the run observed; empty: Summary.Scenario.Observe.
	Invariants []model.Invariant
	// MaxAge is, by variable, after how long an observation is out of date; 0 or
	// none: never.
	MaxAge map[string]time.Duration
	// ReplayCommand repeats the run, e.g. "netsplit replay c-1-r0008 -n 10".
	ReplayCommand string
}

//go:embed style.css
var styleText string

//go:embed view.js
var viewText string

//go:embed run.html
var runText string

var runPage = template.Must(template.New("run").Parse(runText))

// runView is what the template of a run's page is filled with.
type runView struct {
	CSP    string
	Style  template.CSS
	Script template.JS

	Name, Title, Verdict, VerdictWord, Reason string
	Story                                     []string
	Faults                                    []string // what each message fault did
	Failures                                  []failureView
	Problems                                  []problemView
	Replay                                    string
	Facts                                     []fact

	PictureTitle, PictureNote string
	Picture, Lanes, Ops       template.HTML
	LaneNote                  string
	LaneRows                  []laneRow
	OpRows                    []opRow
	OpNote                    string
	Lost                      []string
	Excuses                   []excuseRow
	Legal                     int
	Lines                     []lineRow
	Cost                      template.HTML
	CostRows                  []fact
	Steps, Plan               []stepRow // of the script, of the scenario
	Decisions                 []decisionRow
	DecisionNote              string
	Invariants                []invariantRow
	Types                     []typeRow
	Left                      int  // messages whose fields are left out of the table
	Empty                     bool // nothing to draw: no message, no cut
	Data                      viewData
}

// Write writes the report of one run: one HTML page that needs nothing else.
// The error is the writer's or the template's.
func Write(w io.Writer, in Input) error {
	if len(in.Invariants) == 0 {
		in.Invariants = in.Summary.Scenario.Observe
	}
	tl := newTimeline(&in)
	v := runView{
		Style: template.CSS(styleText), Script: template.JS(viewText),
		CSP:  policy([]string{viewText}, []string{styleText}),
		Name: clean(in.Summary.Run), Title: clean(in.Title), Replay: clean(in.ReplayCommand),
		Verdict: verdictClass(in.Summary.Verdict), VerdictWord: verdictWord(in.Summary.Verdict),
		Reason: clean(in.Summary.Verdict.Reason),
		Story:  story(&in, tl), Faults: faultStory(&in), Failures: failures(&in), Problems: problems(&in), Facts: facts(&in),
		Invariants: invariantRows(&in, tl), Types: typeRows(in.Summary.Messages, tl),
	}
	pic := newPicture(tl)
	v.PictureTitle, v.PictureNote, v.Picture = pic.title, pic.note, pic.svg()
	v.Empty = len(tl.items) == 0 && tl.cut == nil
	v.Lanes, v.LaneNote, v.LaneRows = lanes(&in, tl)
	ops := newOperations(&in, tl)
	v.Ops, v.OpRows, v.OpNote, v.Lost = ops.svg(tl), ops.rows, ops.note, ops.lost
	v.Excuses, v.Legal = excuseRows(in.Summary.Verdict.Excuses), in.Summary.Verdict.Legal
	v.Lines = lineRows(in.Summary.Verdict.Lines)
	v.Cost, v.CostRows = costSplit([]model.RunSummary{in.Summary})
	if v.Steps = stepRows(&in); len(v.Steps) == 0 { // the decisions of a script are its steps
		v.Decisions, v.DecisionNote = decisionRows(&in)
		v.Plan = scenarioRows(&in)
	}
	v.Data = newViewData(tl)
	v.Left = v.Data.left
	if err := runPage.Execute(w, v); err != nil {
		return fmt.Errorf("write report of %s: %w", in.Summary.Run, err)
	}
	return nil
}

// policy is the page's Content-Security-Policy (CSP Level 3 §2.3.1, hash
// sources): nothing may be loaded, and only these scripts and styles run.
func policy(scripts, styles []string) string {
	p := "default-src 'none'; base-uri 'none'; form-action 'none'"
	for i, set := range [][]string{scripts, styles} {
		if len(set) == 0 {
			continue
		}
		p += []string{"; script-src", "; style-src"}[i]
		for _, s := range set {
			h := sha256.Sum256([]byte(s))
			p += " 'sha256-" + base64.StdEncoding.EncodeToString(h[:]) + "'"
		}
	}
	return p
}
