package campaign

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"netsplit/model"
)

// leastFree is the free space below which netsplit treats a disk as full. It leaves time to
// make room before runs fail.
const leastFree = 100 << 20

// room is the free space of a file system for an ordinary user, in bytes and in files;
// files is -1 where it has no bound on them.
type room struct{ bytes, files int64 }

func (r room) isFull() bool { return r.bytes < leastFree || r.files == 0 }

// roomAt is the room of the file system that holds the folder.
func roomAt(dir string) (room, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return room{}, err
	}
	r := room{bytes: int64(st.Bavail) * st.Bsize, files: int64(st.Ffree)}
	if st.Files == 0 {
		r.files = -1
	}
	return r, nil
}

// A campaign whose disk was full goes on once there is room, firstWait later at the earliest.
// Where the disk is full again soon, it waits twice as long, at most longestWait.
const (
	firstWait   = 5 * time.Second
	longestWait = 5 * time.Minute
	lookForRoom = time.Second
)

// waitsForRoom says whether a campaign that failed goes on once there is room. One in the process
// of a command ends: its user sees the reason and what to do.
func (s *Service) waitsForRoom(j *job, err error) bool {
	return model.IsFull(err) && !s.cfg.InProcess && j.ctx.Err() == nil && !errors.Is(err, errBudget)
}

// awaitRoom waits until the disk has room again. The error says why the campaign was stopped
// meanwhile.
func (s *Service) awaitRoom(j *job, wait time.Duration, why error) error {
	began := time.Now()
	s.log.Warn("a campaign waits for room on the disk", "campaign", j.c.ID, "err", why)
	s.booking.Lock()
	j.books = nil // they may have a run that the store lacks
	s.change(j, func(c *model.Campaign) {
		c.Running, c.Doing = nil, nil
		c.Reason = fmt.Sprintf("the disk is full: make room, and the campaign goes on by itself; records are in %s (%s)", s.cfg.RunsDir, model.OneLine(why.Error()))
	})
	s.booking.Unlock()
	s.tell("campaign", j.c.ID, string(model.CampaignRunning), j.c.Reason)
	defer func() { s.update(j, func(c *model.Campaign) { c.Idle += time.Since(began) }) }()
	for time.Since(began) < wait || !s.hasRoom() || s.hub != nil && errors.Is(s.hub.Away(), model.ErrFull) {
		select {
		case <-j.ctx.Done():
			return context.Cause(j.ctx)
		case <-time.After(lookForRoom):
		}
	}
	s.update(j, func(c *model.Campaign) { c.Reason = "" })
	s.tell("campaign", j.c.ID, string(model.CampaignRunning), "campaign "+j.c.ID+" goes on: the disk has room")
	return nil
}

// hasRoom says whether the disks of records and store have room.
func (s *Service) hasRoom() bool {
	return !slices.ContainsFunc([]string{s.cfg.RunsDir, filepath.Dir(s.cfg.StorePath)}, func(dir string) bool {
		r, err := s.roomIn(dir)
		return err != nil || r.isFull()
	})
}

func (s *Service) roomIn(dir string) (room, error) {
	if s.room != nil {
		return s.room(dir)
	}
	return roomAt(dir)
}

// diskHealth says whether records and store have room, and what could not be written last.
func (s *Service) diskHealth() (detail string, err error) {
	var errs []error
	for _, at := range []struct{ what, dir string }{{"records of runs", s.cfg.RunsDir}, {"the store", filepath.Dir(s.cfg.StorePath)}} {
		if at.what == "the store" && at.dir == filepath.Clean(s.cfg.RunsDir) {
			continue
		}
		r, err := s.roomIn(at.dir)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("the folder of %s: %w: it must exist while the daemon runs", at.what, err))
		case r.isFull():
			errs = append(errs, fmt.Errorf("%s has %d MB free, and room for %s: runs fail without: delete records that you no longer need (netsplit store prune, or serve --keep-size), or start the daemon with another --runs-dir", at.dir, r.bytes>>20, filesText(r.files)))
		default:
			detail += fmt.Sprintf("%d MB free for %s; ", r.bytes>>20, at.what)
		}
	}
	if werr := s.store.WriteError(); werr != nil {
		errs = append(errs, fmt.Errorf("the last write to the store failed: %w", werr))
	}
	s.mu.Lock()
	unrecorded := s.unrecorded
	s.mu.Unlock()
	if unrecorded != nil {
		errs = append(errs, fmt.Errorf("the last run could not be recorded: %w: make room in %s", unrecorded, s.cfg.RunsDir))
	}
	return detail, errors.Join(errs...)
}

func filesText(n int64) string {
	if n < 0 {
		return "any number of files"
	}
	return fmt.Sprintf("%d more files", n)
}

// noteRecorded keeps err if the disk was full, and forgets an earlier one otherwise.
func (s *Service) noteRecorded(err error) {
	if !model.IsFull(err) {
		err = nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unrecorded = err
}
