package campaign

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"netsplit/model"
	"netsplit/record/rundir"
	"netsplit/sut/nodes"
)

const cancelledByUser = "cancelled by a user"

// PauseCampaign stops a campaign until it is resumed: its runs under way are cut short, and
// their scenarios are run again then. One that is paused is left as it is.
func (s *Service) PauseCampaign(ctx context.Context, id string) (model.Campaign, error) {
	c, err := s.getCampaign(id)
	switch {
	case err != nil:
		return c, err
	case c.Spec.OnStage():
		return c, fmt.Errorf("%w: campaign %s plays a script: cancel it, or let it end", model.ErrConflict, id)
	case s.stop(id, errPaused):
		return s.Campaign(ctx, id)
	}
	if c, err = s.getCampaign(id); err != nil { // it may have ended since
		return c, err
	}
	if c.State == model.CampaignPaused {
		return c, nil
	}
	return c, fmt.Errorf("%w: campaign %s is %s: only one that is queued or running can be paused", model.ErrConflict, id, c.State)
}

// cancelStopped ends a campaign that could be resumed: one that is paused or failed, or that the
// store has as queued or under way and that nobody works on. Others it leaves as they are.
func (s *Service) cancelStopped(id string) error {
	s.booking.Lock()
	defer s.booking.Unlock()
	c, err := s.getCampaign(id)
	if err != nil || c.State == model.CampaignDone || c.State == model.CampaignCancelled {
		return err
	}
	s.mu.Lock()
	j := s.jobs[id]
	s.mu.Unlock()
	if j != nil {
		return nil // it ends by itself
	}
	endWait(&c)
	c.State, c.Reason, c.Running, c.Doing = model.CampaignCancelled, cancelledByUser, nil, nil
	if c.Ended.IsZero() {
		c.Ended = time.Now()
	}
	if err := s.putCampaign(c); err != nil {
		return err
	}
	s.tell("campaign", id, string(c.State), fmt.Sprintf("campaign %s is %s", id, c.State))
	return nil
}

// ResumeCampaign goes on with a campaign that was paused or failed, as after a full disk,
// from its last stored input: what was judged stays, and the scenarios of runs that were
// under way, or could not be stored, are run again. One that is queued or under way is left
// as it is. The time since it stopped does not count towards its budget.
func (s *Service) ResumeCampaign(ctx context.Context, id string) (model.Campaign, error) {
	s.booking.Lock() // it may be ending
	defer s.booking.Unlock()
	c, err := s.getCampaign(id)
	if err != nil {
		return c, err
	}
	s.mu.Lock()
	j := s.jobs[id]
	s.mu.Unlock()
	switch {
	case j != nil && context.Cause(j.ctx) == errPaused:
		return c, fmt.Errorf("%w: campaign %s is being paused: resume it once it is", model.ErrConflict, id)
	case j != nil:
		return c, nil
	case c.Spec.OnStage():
		return c, fmt.Errorf("%w: campaign %s plays a script: play it again with netsplit script run", model.ErrConflict, id)
	case c.State == model.CampaignDone || c.State == model.CampaignCancelled:
		return c, fmt.Errorf("%w: campaign %s is %s, so it cannot be resumed: start another", model.ErrConflict, id, c.State)
	}
	if err := s.cutShortAll(c); err != nil { // its disk was full as it ended, say
		return c, err
	}
	switch {
	case !c.Ended.IsZero():
		c.Idle += time.Since(c.Ended)
	case c.Waits.IsZero(): // its daemon, or the command, was killed
		c.Waits = s.sinceKilled(&c)
	}
	endWait(&c)
	c.Waits = time.Now()
	c.State, c.Reason, c.Ended, c.Running, c.Doing = model.CampaignQueued, "", time.Time{}, nil, nil
	if err := s.putCampaign(c); err != nil { // the disk is full still, say
		return c, err
	}
	s.tell("campaign", id, string(c.State), fmt.Sprintf("campaign %s continues; the scenarios of runs that were cut short are run again", id))
	s.enqueue(c)
	return c, nil
}

// cutShortAll books the runs that were under way when their campaign ended.
func (s *Service) cutShortAll(c model.Campaign) error {
	unfinished, err := s.store.UnfinishedRuns()
	if err != nil {
		return err
	}
	for _, m := range unfinished {
		if m.Campaign != c.ID {
			continue
		}
		if err := s.cutShort(m, byTheEndOf(c)); err != nil {
			return err
		}
	}
	return nil
}

// byTheEndOf says why runs of a campaign that has ended were cut short.
func byTheEndOf(c model.Campaign) string {
	why := "cut short by the end of its campaign: " + c.Reason
	if (c.State == model.CampaignPaused || c.State == model.CampaignFailed) && !c.Spec.OnStage() {
		why += "; its scenario is run again once the campaign is resumed"
	}
	return why
}

// cutShort books a run that was under way when its daemon or its campaign ended.
func (s *Service) cutShort(m model.RunMeta, why string) error {
	ended := m.Started
	if last := s.lastRecorded(m.Campaign, m.Run); !last.IsZero() {
		ended = last
	}
	sum := model.RunSummary{RunMeta: m, Ended: ended, CutShort: true, Verdict: model.Verdict{Value: model.VerdictUnknown, Reason: why}}
	sum.Result = model.RunResult{Scenario: m.Scenario.ID, Verdict: sum.Verdict}
	if err := s.store.PutRun(sum); err != nil {
		return err
	}
	s.tell("run", m.Run, string(model.VerdictUnknown), sum.Verdict.Reason)
	if err := os.RemoveAll(filepath.Join(s.runDir(m.Campaign, m.Run), nodes.WorkDir)); err != nil {
		s.log.Warn("the target's data of a run that was cut short stay", "run", m.Run, "err", err)
	}
	return nil
}

// lastRecorded is when something of a run was recorded last; zero: unknown.
func (s *Service) lastRecorded(campaign, run string) time.Time {
	st, err := os.Stat(filepath.Join(s.runDir(campaign, run), rundir.EventsFile))
	if err != nil {
		return time.Time{}
	}
	return st.ModTime()
}

// sinceKilled is since when a campaign waits whose daemon was killed: since something was
// recorded last of a run that was under way, or, if there was none, since now.
func (s *Service) sinceKilled(c *model.Campaign) time.Time {
	var last time.Time
	for _, run := range c.Running {
		if at := s.lastRecorded(c.ID, run); at.After(last) {
			last = at
		}
	}
	if last.IsZero() {
		return time.Now()
	}
	return last
}
