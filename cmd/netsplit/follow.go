package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"netsplit/api/client"
	"netsplit/api/wire"
	"netsplit/model"
	"netsplit/sut"
)

// made is a campaign that has ended, or that was told to by an interrupt.
type made struct {
	client   *client.Client
	campaign wire.Campaign
	place
	interrupted bool
}

// ended says why what was made is not whole; nil: it is.
func (m made) ended(what string) error {
	switch camp := m.campaign; {
	case m.interrupted:
		return &exitError{code: exitInterrupted}
	case camp.State == string(model.CampaignFailed):
		return fmt.Errorf("%s failed: %s", what, camp.Reason)
	case camp.State == string(model.CampaignCancelled):
		return &exitError{exitInterrupted, fmt.Errorf("%s was cancelled: %s", what, camp.Reason)}
	}
	return nil
}

// campaign has one made by a daemon, or by this process with its records in
// runsDir, shows its progress until it has ended, and has the end told. begun is
// told of its beginning; nil: nobody is.
func (d *daemonFlags) campaign(c *cobra.Command, runsDir string, spec wire.CampaignSpec, show progressFlags, begun func(*progress, wire.Campaign), tell func(made) error) error {
	start := func(ctx context.Context, cl *client.Client, dir string) (camp wire.Campaign, err error) {
		if dir == "" {
			if spec.Target, err = uploaded(ctx, cl, spec.Target); err != nil {
				return camp, err
			}
		}
		return cl.CreateCampaign(ctx, spec, 0)
	}
	return d.work(c, runsDir, start, show, begun, tell)
}

func (d *daemonFlags) work(c *cobra.Command, runsDir string, start func(ctx context.Context, cl *client.Client, dir string) (wire.Campaign, error), show progressFlags, begun func(*progress, wire.Campaign), tell func(made) error) (err error) {
	ctx := c.Context()
	cl, dir, end, err := d.connect(ctx, runsDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	camp, err := start(ctx, cl, dir)
	if err != nil {
		return err
	}
	p := show.progress(c.ErrOrStderr(), time.Now())
	p.stop = "^C"
	if dir == "" {
		p.stop += ", or netsplit campaign cancel " + camp.ID
	}
	if dir != "" {
		if err := sayInterrupted(ctx, cl, camp.ID, d.place(dir), p); err != nil {
			return err
		}
	}
	if begun != nil {
		begun(p, camp)
	}
	if camp, err = follow(ctx, cl, camp, p); err != nil {
		return err
	}
	return tell(made{client: cl, campaign: camp, place: d.place(dir), interrupted: ctx.Err() != nil})
}

// sayInterrupted tells of campaigns that a process which died left in the store.
func sayInterrupted(ctx context.Context, cl *client.Client, but string, at place, p *progress) error {
	for _, state := range []model.CampaignState{model.CampaignRunning, model.CampaignQueued} {
		left, err := cl.Campaigns(ctx, wire.CampaignFilter{State: string(state)}, 0, "")
		if err != nil {
			return err
		}
		for _, c := range left.Items {
			if c.ID != but {
				p.say("campaign %s was interrupted; to continue it: %s", c.ID, at.command("campaign resume "+c.ID))
			}
		}
	}
	return nil
}

// uploaded is what a daemon calls a target: one that the user names by a path is
// sent to it first, for a daemon opens no path that it is given.
func uploaded(ctx context.Context, cl *client.Client, target string) (string, error) {
	if target == "" || !sut.IsPath(target) {
		return target, nil
	}
	archive, release, err := sut.Pack(target)
	if err != nil {
		return "", err
	}
	up, err := cl.UploadTarget(ctx, archive)
	if err != nil {
		return "", err
	}
	return sut.At(up.Name, release), nil
}

// cancelLimit is how long a cancelled campaign may take to heal and clean up.
const cancelLimit = 60 * time.Second

const (
	// followEvery is how often progress is shown, and a campaign is asked for while its
	// daemon tells of no events.
	followEvery = 500 * time.Millisecond
	// followAnyway is how often it is asked for at least.
	followAnyway = 5 * time.Second
)

// listen sends when something happened to a campaign, and says whether the daemon tells of
// what happens, until ctx ends.
func listen(ctx context.Context, cl *client.Client, campaign string) (news <-chan struct{}, told *atomic.Bool) {
	wake, on := make(chan struct{}, 1), &atomic.Bool{}
	go func() {
		for ctx.Err() == nil {
			_ = cl.Events(ctx, func() { on.Store(true) }, func(e model.ServiceEvent) error {
				if strings.HasPrefix(e.ID, campaign) || e.Kind == "finding" || e.Kind == "events" {
					select {
					case wake <- struct{}{}:
					default:
					}
				}
				return nil
			}) // what fails is tried again, and meanwhile the campaign is asked for
			on.Store(false)
			select {
			case <-ctx.Done():
			case <-time.After(followAnyway):
			}
		}
	}()
	return wake, on
}

// follow shows a campaign's progress until it has ended. Interrupted, it
// cancels it and waits for the clean-up.
func follow(ctx context.Context, cl *client.Client, camp wire.Campaign, p *progress) (wire.Campaign, error) {
	defer p.done()
	live := ctx
	cancelled, paused := false, false
	heard, deaf := context.WithCancel(context.WithoutCancel(ctx))
	defer deaf()
	news, told := listen(heard, cl, camp.ID)
	asked := time.Time{}
	for !ended(camp.State) {
		stale := false
		select {
		case <-live.Done():
			if cancelled {
				return camp, fmt.Errorf("campaign %s did not end within %v after it was cancelled", camp.ID, cancelLimit)
			}
			var stop context.CancelFunc
			live, stop = context.WithTimeout(context.WithoutCancel(ctx), cancelLimit)
			defer stop()
			cancelled = true
			p.say("interrupted: campaign %s is cancelled; healing and cleaning up", camp.ID)
			if _, err := cl.CancelCampaign(live, camp.ID); err != nil {
				return camp, err
			}
			stale = true
		case <-news:
			stale = true
		case <-time.After(followEvery):
		}
		if !stale && told.Load() && time.Since(asked) < followAnyway {
			if err := p.update(live, cl, camp); err != nil && live.Err() == nil {
				return camp, err
			}
			continue
		}
		asked = time.Now()
		next, err := cl.Campaign(live, camp.ID)
		if err != nil {
			if live.Err() != nil {
				continue
			}
			return camp, err
		}
		camp = next
		if is := camp.State == string(model.CampaignPaused); is != paused {
			if paused = is; is {
				p.say("somebody paused it; to continue it: netsplit campaign resume %s", camp.ID)
			}
		}
		if err := p.update(live, cl, camp); err != nil && live.Err() == nil {
			return camp, err
		}
	}
	return camp, nil
}

func ended(state string) bool {
	switch model.CampaignState(state) {
	case model.CampaignDone, model.CampaignCancelled, model.CampaignFailed:
		return true
	}
	return false
}
