package script

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"netsplit/campaign"
	"netsplit/model"
	"netsplit/record/rundir"
	"netsplit/testbed/agent"
	"netsplit/testbed/disk"
	"netsplit/testbed/proc"
)

// Config says on what a script is played.
type Config struct {
	// Name of the script; Test takes that of the test.
	Name string
	// Target is the name of a known target, or the path of a target file; Set
	// are its settings.
	Target string
	Set    map[string]string
	// Class is the class of a failed assertion: model.Broken (default), or
	// model.Documented if the target's documentation admits the failure, in the sentence
	// Quote.
	Class model.FailureClass
	Quote string
	// Seed drives every random choice of the target's operations; 0: one is
	// chosen and recorded.
	Seed uint64
	// RunsDir keeps the records; default "runs". Test keeps them in a temporary
	// directory where it is "" and the test passes.
	RunsDir string
	// Binary is the netsplit program as the hosts find it; default: this
	// program, whose main or TestMain calls Main.
	Binary string
	// BinDir is where helper programs of targets are; default: beside Binary.
	BinDir string
	// Testbed is an outside testbed; nil: a lab on this machine, as root.
	Testbed *model.Testbed
	// OpenFlow is where the switches of Testbed connect to, host:port; default
	// 127.0.0.1:6653.
	OpenFlow string
	// TLS is for these connections; nil: plain TCP. Allowed are the datapaths that may
	// connect; none: all. Equal: share the switches with other controllers.
	TLS     *tls.Config
	Allowed []model.DatapathID
	Equal   bool
	// Version is that of the program, for records; "": script.
	Version string
	// Repeat is the command that plays it again, for the report.
	Repeat string
	// Step receives every step, when it is over; Played every play that was
	// judged.
	Step   func(model.ScriptStep)
	Played func(model.RunSummary)
}

// Result is what some plays of a script came to.
type Result struct {
	Runs     []model.RunSummary
	Findings []model.Finding
	Dir      string // with the records, one directory each
}

// Count is how many plays had a verdict.
func (r Result) Count(v model.VerdictValue) int {
	n := 0
	for _, s := range r.Runs {
		if s.Verdict.Value == v {
			n++
		}
	}
	return n
}

// Report is the path of a play's report.
func (r Result) Report(run string) string { return filepath.Join(r.Dir, run, rundir.ReportFile) }

// Play plays a script a number of times, each time on a freshly started target, and judges
// every play. It needs root if Testbed is nil. The error is a failure of netsplit or of the
// testbed; failures of the target are in the verdicts.
func Play(ctx context.Context, c Config, times int, f func(*Script)) (r Result, err error) {
	exe, err := os.Executable()
	if err != nil {
		return r, err
	}
	c.Binary, c.RunsDir = cmp.Or(c.Binary, exe), cmp.Or(c.RunsDir, "runs")
	if c.RunsDir, err = filepath.Abs(c.RunsDir); err != nil {
		return r, err
	}
	if err := rundir.MakeRoot(c.RunsDir); err != nil {
		return r, fmt.Errorf("make the runs directory: %w", err)
	}
	file, err := rundir.OpenLog(filepath.Join(c.RunsDir, "netsplit.log"))
	if err != nil {
		return r, fmt.Errorf("open the log: %w", err)
	}
	defer file.Close()
	listen := "127.0.0.1:0" // a lab's switch is told where that is
	if c.Testbed != nil {
		listen = cmp.Or(c.OpenFlow, "127.0.0.1:6653")
	}
	s, err := campaign.Open(campaign.Config{RunsDir: c.RunsDir, ControllerAddr: listen, Testbed: c.Testbed, TLS: c.TLS, Allowed: c.Allowed, Equal: c.Equal, Binary: c.Binary,
		BinDir: cmp.Or(c.BinDir, filepath.Dir(c.Binary)), Metrics: unmeasured{}, Log: slog.New(slog.NewTextHandler(file, nil)), Version: cmp.Or(c.Version, "script"), InProcess: true})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return On(ctx, s, c, times, f)
}

// maxFailed is how many plays in a row may fail because of netsplit or the testbed: more
// plays would not help.
const maxFailed = 3

// On is Play on a service that is open. It ignores the fields of c that Play opens a service
// with.
func On(ctx context.Context, s *campaign.Service, c Config, times int, f func(*Script)) (r Result, err error) {
	st, err := s.OpenStage(ctx, campaign.StageSpec{Script: c.Name, Target: c.Target, Args: c.Set, Seed: c.Seed, Times: times,
		Class: c.Class, Quote: c.Quote, Repeat: c.Repeat})
	if err != nil {
		return r, err
	}
	r.Dir = st.Dir()
	defer func() { st.Close(err) }()
	failed := 0 // in a row
	for range times {
		sum, err := st.Play(ctx, play(c.Step, f))
		if ctx.Err() != nil && err != nil {
			return r, err
		}
		r.Runs = append(r.Runs, sum)
		if c.Played != nil {
			c.Played(sum)
		}
		if failed++; err == nil {
			failed = 0
		}
		if failed == maxFailed || failed == times {
			return r, fmt.Errorf("%d play(s) in a row failed for reasons that are not the target's, the last: %w", failed, err)
		}
	}
	r.Findings, err = st.Findings()
	return r, err
}

// T is what Test needs of a *testing.T.
type T interface {
	Helper()
	Name() string
	Context() context.Context
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Test plays a script once, as a test. The test fails if an assertion does not
// hold, and if the play cannot be judged or showed nothing: a cut that nothing
// wanted to cross is no test.
func Test(t T, c Config, f func(*Script)) {
	t.Helper()
	c.Name, c.Repeat = cmp.Or(c.Name, t.Name()), cmp.Or(c.Repeat, "go test -run '^"+t.Name()+"$'")
	given := c.RunsDir
	if given == "" {
		dir, err := os.MkdirTemp("", "netsplit-script-")
		if err != nil {
			t.Fatalf("%v", err)
		}
		c.RunsDir = dir
	}
	also := c.Step
	c.Step = func(st model.ScriptStep) {
		t.Logf("%s", StepLine(st))
		if also != nil {
			also(st)
		}
	}
	r, err := Play(t.Context(), c, 1, f)
	passed := err == nil && r.Count(model.VerdictPass) == 1
	if passed && given == "" {
		_ = os.RemoveAll(c.RunsDir) // a temporary folder: what cannot be removed does no harm
	}
	switch {
	case err != nil:
		t.Fatalf("the script could not be played: %v", err)
	case !passed:
		v := r.Runs[0].Verdict
		t.Errorf("%s: %s", v.Value, v.Reason)
		for _, x := range v.Failures {
			t.Errorf("%s (%s): %s", x.Check, x.Class, x.Summary)
		}
		t.Logf("report: %s", r.Report(r.Runs[0].Run))
	}
}

// StepLine is a step that is over, on one line.
func StepLine(st model.ScriptStep) string {
	s := fmt.Sprintf("%7.3f s  %s", st.Began.Seconds(), st.Text)
	switch {
	case st.Outcome == model.StepFailed:
		s += ": FAILED: " + st.Result
	case st.Outcome == model.StepStuck:
		s += ": could not be done: " + st.Result
	case st.Result != "":
		s += ": " + st.Result
	}
	return s
}

// Main lets a program also serve as the netsplit program on hosts: netsplit starts it there
// as an agent, for instance. Call it first, as in TestMain. Otherwise Main calls run and
// returns its exit status.
func Main(run func() int) int {
	if len(os.Args) > 1 && os.Args[1] == proc.ConfineVerb {
		return proc.ConfineMain(os.Args[2:])
	}
	if len(os.Args) > 1 && os.Args[1] == disk.Verb {
		return disk.Main(os.Args[2:])
	}
	if len(os.Args) != 2 || os.Args[1] != "agent" {
		unix.Umask(0o022) // servers of a target run as other users and read files of the run
		return run()
	}
	if err := agent.Serve(context.Background(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		return 1
	}
	return 0
}

// unmeasured are metrics that nobody reads.
type unmeasured struct{}

func (unmeasured) KnownLinks([]model.Link)                                  {}
func (unmeasured) KnownTarget(string, model.Strategy)                       {}
func (unmeasured) CutStarted(model.Shape, []model.Link)                     {}
func (unmeasured) CutEnded(string, []model.Link)                            {}
func (unmeasured) PacketFate(model.Link, model.Fate, int)                   {}
func (unmeasured) MessageSeen(string, string)                               {}
func (unmeasured) GateDelay(string, time.Duration)                          {}
func (unmeasured) MessageFault(model.FaultKind, string)                     {}
func (unmeasured) HealTime(time.Duration)                                   {}
func (unmeasured) RunDone(string, model.Strategy, model.VerdictValue)       {}
func (unmeasured) Finding(model.Finding)                                    {}
func (unmeasured) SwitchConnected(model.DatapathID, bool)                   {}
func (unmeasured) SwitchKnown(model.DatapathID)                             {}
func (unmeasured) SwitchGone(model.DatapathID)                              {}
func (unmeasured) LastCut(time.Time)                                        {}
func (unmeasured) RunsDone(string, model.Strategy, model.VerdictValue, int) {}
func (unmeasured) FoundBefore(string, model.FailureClass)                   {}
func (unmeasured) RunElsewhere(model.RunMetrics)                            {}
