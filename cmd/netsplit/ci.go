package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/spf13/pflag"

	"netsplit/api/wire"
	"netsplit/model"
)

// ciFlags are for those who run campaigns in continuous integration.
type ciFlags struct {
	junit    string
	failOn   string
	baseline string
	known    map[string]bool // by knownKey: what the baseline has
}

// Values of --fail-on.
const (
	failOnAny = "any"
	failOnNew = "new"
)

func (f *ciFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.junit, "junit", "", "write a report in JUnit's XML to this file: a test case for each run")
	fs.StringVar(&f.failOn, "fail-on", failOnAny, "which findings count for the exit status: any, or new (not in --baseline)")
	fs.StringVar(&f.baseline, "baseline", "", "file with known findings, as netsplit findings -o json prints them")
}

// read reads the baseline.
func (f *ciFlags) read() error {
	switch {
	case f.failOn != failOnAny && f.failOn != failOnNew:
		return usage("--fail-on %q: use %s or %s", f.failOn, failOnAny, failOnNew)
	case (f.failOn == failOnNew) != (f.baseline != ""):
		return usage("--fail-on new and --baseline FILE belong together: findings are new if the file does not have them")
	}
	if err := f.tryFiles(); err != nil {
		return err
	}
	if f.baseline == "" {
		return nil
	}
	b, err := os.ReadFile(f.baseline)
	if err != nil {
		return usage("baseline: %w", err)
	}
	var list []wire.Finding
	if err := json.Unmarshal(b, &list); err != nil {
		return usage("baseline %s: %w: it holds a JSON array, as netsplit findings -o json prints it", f.baseline, err)
	}
	f.known = map[string]bool{}
	for i, k := range list {
		if k.Target == "" || k.Failure.Check == "" || k.Failure.Signature == "" {
			return usage("baseline %s: element %d is no finding: it lacks target, failure.check or failure.signature", f.baseline, i+1)
		}
		f.known[knownKey(k.Target, k.Failure)] = true
	}
	return nil
}

// tryFiles says before a campaign what its end could not be written to.
func (f *ciFlags) tryFiles() error {
	if f.junit != "" {
		try, err := renameio.NewPendingFile(f.junit)
		if err == nil {
			err = try.Cleanup()
		}
		if err != nil {
			return usage("--junit: %w", err)
		}
	}
	if path := os.Getenv("GITHUB_STEP_SUMMARY"); path != "" && os.Getenv("GITHUB_ACTIONS") == "true" {
		try, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, outputMode)
		if err == nil {
			err = try.Close()
		}
		if err != nil {
			return usage("GITHUB_STEP_SUMMARY: %w", err)
		}
	}
	return nil
}

func knownKey(target string, f wire.Failure) string {
	return strings.Join([]string{target, f.Check, f.Signature}, "\x00")
}

// counts says whether a failure counts for the exit status.
func (f *ciFlags) counts(target string, x wire.Failure) bool {
	return x.Class != string(model.Documented) && !f.known[knownKey(target, x)]
}

// tell writes for programs what a campaign has found, some of it to say. outcome is what the exit status says.
func (f *ciFlags) tell(ctx context.Context, say io.Writer, m made, found []wire.Finding, verdicts verdictCount, outcome error) error {
	if n := len(slices.DeleteFunc(slices.Clone(found), func(x wire.Finding) bool { return !f.known[knownKey(x.Target, x.Failure)] })); n > 0 {
		fmt.Fprintf(say, "\n%s in %s and not new\n", model.Count(n, "finding is", "findings are"), f.baseline)
	}
	if f.junit != "" {
		runs, err := allRuns(context.WithoutCancel(ctx), m.client, m.campaign.ID)
		if err != nil {
			return err
		}
		if err := f.writeJUnit(m, runs, outcome); err != nil {
			return err
		}
	}
	if os.Getenv("GITHUB_ACTIONS") == "true" {
		return f.tellGitHub(say, os.Getenv("GITHUB_STEP_SUMMARY"), m, found, verdicts)
	}
	return nil
}

// costliest is the failure of a run that counts and costs most; nil: none counts.
func (f *ciFlags) costliest(r *wire.RunRow) *wire.Failure {
	var found []wire.Finding
	for _, x := range r.Verdict.Failures {
		if f.counts(r.Target, x) {
			found = append(found, wire.Finding{Class: x.Class, Severity: x.Severity, Failure: x, ID: x.Signature, CauseID: cmp.Or(x.Cause, x.Signature)})
		}
	}
	if all := causes(found); len(all) > 0 {
		return &all[0][0].Failure
	}
	return nil
}
