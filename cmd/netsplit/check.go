package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"netsplit/api/wire"
	"netsplit/campaign/judge"
	"netsplit/model"
	"netsplit/record/rundir"
)

// checkRunOf returns the check of a target by a run of it: one clean run, in
// this process, whose record is examined. With problems there is an error, too.
func checkRunOf(conn *daemonFlags) runCheck {
	return func(c *cobra.Command, name string, set map[string]string) (x *judge.Examination, err error) {
		ctx := c.Context()
		runs, err := os.MkdirTemp("", "netsplit-check-")
		if err != nil {
			return nil, err
		}
		keep := false // the record: somebody was told of it
		defer func() {
			if !keep {
				err = errors.Join(err, os.RemoveAll(runs))
			}
		}()
		cl, dir, end, err := conn.within(ctx, runs)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, end()) }()
		camp, err := cl.CreateCampaign(ctx, wire.CampaignSpec{Target: name, Strategy: string(model.StrategyClean), Clean: 1, Labs: 1, Args: set}, 0)
		if err != nil {
			return nil, err
		}
		show := progressFlags{mode: "auto"}
		if camp, err = follow(ctx, cl, camp, show.progress(c.ErrOrStderr(), time.Now())); err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, &exitError{code: exitInterrupted}
		}
		if camp.State == string(model.CampaignFailed) {
			keep = true
			return nil, fmt.Errorf("the run failed: %s; its record so far is in %s", camp.Reason, filepath.Join(dir, camp.ID))
		}
		last, err := lastRecord(filepath.Join(dir, camp.ID))
		if err != nil {
			keep = true
			return nil, err
		}
		if x, err = judge.Examine(last); err != nil {
			keep = true
			return nil, fmt.Errorf("examine %s: %w", last, err)
		}
		if len(x.Problems) > 0 {
			keep = true
			return x, &exitError{exitFindings, fmt.Errorf("%d problem(s) with %s; the record of the run is %s", len(x.Problems), name, last)}
		}
		return x, nil
	}
}

// examined is what a run shows of its target file.
type examined struct {
	Facts    []string `json:"facts"`    // what was seen
	Problems []string `json:"problems"` // what does not work as the file says
}

func examinedOf(x *judge.Examination) examined {
	return examined{append([]string{}, x.Facts...), append([]string{}, x.Problems...)}
}

func printExamined(out io.Writer, x examined) error {
	for _, f := range x.Facts {
		fmt.Fprintln(out, f)
	}
	for _, p := range x.Problems {
		fmt.Fprintln(out, "PROBLEM:", p)
	}
	return nil
}

// lastRecord is the record of a campaign's last run that left one. Where there are
// several, those before it could not be judged.
func lastRecord(campaign string) (string, error) {
	found, err := filepath.Glob(filepath.Join(campaign, "*", rundir.EvidenceFile))
	if err != nil || len(found) == 0 {
		return "", fmt.Errorf("the run left no record in %s: %v", campaign, err)
	}
	return filepath.Dir(slices.Max(found)), nil
}
