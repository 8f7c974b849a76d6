package main

import (
	"errors"
	"fmt"
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
// this process, whose record is examined.
func checkRunOf(conn *daemonFlags) runCheck {
	return func(c *cobra.Command, name string, set map[string]string) (err error) {
		ctx := c.Context()
		runs, err := os.MkdirTemp("", "netsplit-check-")
		if err != nil {
			return err
		}
		keep := false // the record: somebody was told of it
		defer func() {
			if !keep {
				err = errors.Join(err, os.RemoveAll(runs))
			}
		}()
		cl, dir, end, err := conn.within(ctx, runs)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, end()) }()
		camp, err := cl.CreateCampaign(ctx, wire.CampaignSpec{Target: name, Strategy: string(model.StrategyClean), Clean: 1, Labs: 1, Args: set}, 0)
		if err != nil {
			return err
		}
		show := progressFlags{mode: "auto"}
		if camp, err = follow(ctx, cl, camp, show.progress(c.ErrOrStderr(), time.Now())); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return &exitError{code: exitInterrupted}
		}
		if camp.State == string(model.CampaignFailed) {
			keep = true
			return fmt.Errorf("the run failed: %s; its record so far is in %s", camp.Reason, filepath.Join(dir, camp.ID))
		}
		last, err := lastRecord(filepath.Join(dir, camp.ID))
		if err != nil {
			keep = true
			return err
		}
		x, err := judge.Examine(last)
		if err != nil {
			keep = true
			return fmt.Errorf("examine %s: %w", last, err)
		}
		printExamination(c, x)
		if len(x.Problems) > 0 {
			keep = true
			return &exitError{exitFindings, fmt.Errorf("%d problem(s) with %s; the record of the run is %s", len(x.Problems), name, last)}
		}
		fmt.Fprintf(c.OutOrStdout(), "%s runs as its file says\n", name)
		return nil
	}
}

func printExamination(c *cobra.Command, x *judge.Examination) {
	for _, f := range x.Facts {
		fmt.Fprintln(c.OutOrStdout(), f)
	}
	for _, p := range x.Problems {
		fmt.Fprintln(c.OutOrStdout(), "PROBLEM:", p)
	}
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
