package campaign

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"netsplit/model"
)

// clockLook is how long the scheduler waits at most before it looks at the clock again: a
// clock that was set, or a machine that slept, delays a campaign by no more.
const clockLook = time.Minute

// maxSchedules bounds the schedules of a daemon.
const maxSchedules = 1000

// PutSchedule makes a schedule, or replaces the one of its name. created: it is new.
func (s *Service) PutSchedule(ctx context.Context, c model.Schedule) (_ model.Schedule, created bool, err error) {
	bad := func(format string, args ...any) (model.Schedule, bool, error) {
		return c, false, fmt.Errorf("%w: %s", model.ErrInvalid, fmt.Sprintf(format, args...))
	}
	now := time.Now()
	switch {
	case c.At.IsZero() == (c.Cron == ""):
		return bad("a schedule needs a time (at) or a cron expression (cron), and not both")
	case c.Cron == "" && c.TimeZone != "":
		return bad("timeZone is for cron: at has a time zone of its own")
	case c.Overlap == "":
		c.Overlap = model.OverlapSkip
	case c.Overlap != model.OverlapSkip && c.Overlap != model.OverlapQueue:
		return bad("overlap %q: use %s or %s", c.Overlap, model.OverlapSkip, model.OverlapQueue)
	}
	if c.Next = c.At; c.Cron != "" {
		if c.Next, err = nextOf(&c, now); err != nil {
			return bad("%v", err)
		}
	}
	full, _, err := s.complete(c.Spec)
	if err != nil {
		return c, false, err
	}
	if full.Script != nil { // what the file says, for lists; each campaign reads it again
		sc, err := s.readScript(*c.Spec.Script, c.Spec.Target)
		if err != nil {
			return c, false, err
		}
		c.Spec.Strategy, c.Spec.Target = full.Strategy, sc.Target
	}
	s.scheduling.Lock()
	defer s.scheduling.Unlock()
	old, err := s.store.GetSchedule(c.Name)
	switch {
	case errors.Is(err, model.ErrNotFound):
		c.Created, created = now, true
		list, err := s.store.ListSchedules()
		if err != nil {
			return c, false, err
		}
		if len(list) >= maxSchedules {
			return c, false, fmt.Errorf("%w: there are %d schedules, and no more are kept: delete some", model.ErrConflict, len(list))
		}
	case err != nil:
		return c, false, err
	default:
		c.Created, c.Last, c.LastTime, c.Note = old.Created, old.Last, old.LastTime, old.Note
		if !c.At.IsZero() && c.At.Equal(old.At) && !c.At.After(now) && equalSpecs(c.Spec, old.Spec) {
			if c.Next = (time.Time{}); !old.Next.IsZero() {
				c.LastTime, c.Note = c.At, "it was paused then"
			}
		}
	}
	if !c.Next.IsZero() && !c.Next.After(now) {
		return bad("at %s is over: give a time to come", c.At.Format(time.RFC3339))
	}
	if err := s.store.PutSchedule(c); err != nil {
		return c, false, err
	}
	s.tellSchedule(&c)
	s.wakeScheduler()
	return c, created, nil
}

func equalSpecs(a, b model.CampaignSpec) bool {
	x, xerr := json.Marshal(a)
	y, yerr := json.Marshal(b)
	return xerr == nil && yerr == nil && bytes.Equal(x, y)
}

// nextOf is when a cron expression is due next.
func nextOf(c *model.Schedule, after time.Time) (time.Time, error) {
	spec := c.Cron
	if strings.Contains(spec, "TZ=") { // of the library, which panics where nothing follows
		return time.Time{}, fmt.Errorf("cron %q: give the time zone as timeZone (--time-zone)", c.Cron)
	}
	if every, ok := strings.CutPrefix(spec, "@every "); ok {
		if d, err := time.ParseDuration(every); err != nil || d < time.Second {
			return time.Time{}, fmt.Errorf("cron %q: give @every a time of 1s or more, such as 6h", c.Cron)
		}
	}
	if c.TimeZone != "" {
		if _, err := time.LoadLocation(c.TimeZone); err != nil || c.TimeZone == "Local" {
			return time.Time{}, fmt.Errorf("time zone %q is unknown: use a name of the IANA database, such as Europe/Berlin", c.TimeZone)
		}
		spec = "CRON_TZ=" + c.TimeZone + " " + spec
	}
	parsed, err := cron.ParseStandard(spec)
	if err != nil {
		return time.Time{}, fmt.Errorf("cron %q: %w: write minute, hour, day of month, month and day of week, such as \"0 3 * * *\" for 03:00 every day", c.Cron, err)
	}
	next := parsed.Next(after)
	if next.IsZero() {
		return next, fmt.Errorf("cron %q: no such time comes in the next five years", c.Cron)
	}
	return next, nil
}

// Schedule returns one schedule, Schedules all by name.
func (s *Service) Schedule(ctx context.Context, name string) (model.Schedule, error) {
	return s.store.GetSchedule(name)
}

// Schedules lists all schedules by name.
func (s *Service) Schedules(ctx context.Context) ([]model.Schedule, error) {
	return s.store.ListSchedules()
}

// DeleteSchedule forgets a schedule. Its campaigns stay.
func (s *Service) DeleteSchedule(ctx context.Context, name string) error {
	s.scheduling.Lock()
	defer s.scheduling.Unlock()
	if err := s.store.DeleteSchedule(name); err != nil {
		return err
	}
	s.tell("schedule", name, "deleted", fmt.Sprintf("schedule %s is deleted", name))
	return nil
}

func (s *Service) tellSchedule(c *model.Schedule) {
	state, text := "waiting", fmt.Sprintf("schedule %s makes a campaign at %s", c.Name, c.Next.Format(time.RFC3339))
	switch {
	case c.Paused:
		state, text = "paused", fmt.Sprintf("schedule %s is paused", c.Name)
	case c.Next.IsZero():
		state, text = "over", fmt.Sprintf("schedule %s is over", c.Name)
	}
	if c.Note != "" {
		text += ": " + c.Note
	}
	s.tell("schedule", c.Name, state, text)
}

func (s *Service) wakeScheduler() {
	select {
	case s.rescheduled <- struct{}{}:
	default:
	}
}

// scheduler makes the campaigns of schedules until ctx ends.
func (s *Service) scheduler(ctx context.Context) {
	for started := true; ; started = false {
		next, err := s.due(ctx, time.Now(), started)
		if err != nil {
			s.log.Error("schedules could not be read or stored", "err", err)
		}
		wait := clockLook
		if !next.IsZero() {
			wait = min(wait, max(0, time.Until(next)))
		}
		select {
		case <-ctx.Done():
			return
		case <-s.rescheduled:
		case <-time.After(wait):
		}
	}
}

// due makes the campaigns whose time has come, and returns when the next one is. started: the
// daemon has just been started; what it missed of a cron expression it leaves out.
func (s *Service) due(ctx context.Context, now time.Time, started bool) (next time.Time, err error) {
	s.scheduling.Lock()
	defer s.scheduling.Unlock()
	list, err := s.store.ListSchedules()
	if err != nil {
		return next, err
	}
	for i := range list {
		c := &list[i]
		if !c.Paused && !c.Next.IsZero() && !c.Next.After(now) {
			err = errors.Join(err, s.fire(ctx, c, now, started))
		}
		if !c.Paused && !c.Next.IsZero() && (next.IsZero() || c.Next.Before(next)) {
			next = c.Next
		}
	}
	return next, err
}

func (s *Service) fire(ctx context.Context, c *model.Schedule, now time.Time, started bool) error {
	c.LastTime, c.Note = c.Next, ""
	busy, err := s.overlaps(c)
	switch {
	case err != nil:
		c.Note = err.Error()
	case started && c.Cron != "":
		c.Note = "the daemon was down then"
	case busy != "":
		c.Note = busy
	default:
		made, err := s.createCampaign(c.Spec, c.Name)
		if err != nil {
			c.Note = "no campaign could be made: " + err.Error()
			break
		}
		c.Last = made.ID
	}
	if c.Next = (time.Time{}); c.Cron != "" {
		if c.Next, err = nextOf(c, now); err != nil { // its time zone is known no more, say
			c.Note, c.Paused = err.Error(), true
		}
	}
	s.tellSchedule(c)
	return s.store.PutSchedule(*c)
}

// overlaps says why a schedule makes no campaign now; "": it does.
func (s *Service) overlaps(c *model.Schedule) (string, error) {
	s.mu.Lock()
	var queued, busy []string
	for _, j := range s.jobs {
		if j.c.Schedule == c.Name {
			if busy = append(busy, j.c.ID); slices.Contains(s.queue, j) {
				queued = append(queued, j.c.ID)
			}
		}
	}
	s.mu.Unlock()
	if c.Last != "" && len(busy) == 0 {
		last, err := s.getCampaign(c.Last)
		if err != nil && !errors.Is(err, model.ErrNotFound) {
			return "", err
		}
		if err == nil && last.State == model.CampaignPaused {
			busy = append(busy, last.ID)
		}
	}
	switch {
	case c.Overlap == model.OverlapQueue && len(queued) > 0:
		return fmt.Sprintf("campaign %s is still queued", queued[0]), nil
	case c.Overlap == model.OverlapSkip && len(busy) > 0:
		return fmt.Sprintf("campaign %s has not ended", busy[0]), nil
	}
	return "", nil
}
