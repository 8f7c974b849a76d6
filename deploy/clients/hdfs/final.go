package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"netsplit/model"
)

// finalAll waits until the service answers, reads every file back, writes a
// new one, and asks each NameNode for its state.
func finalAll(ctx context.Context, c *cluster) error {
	c.active.Store(&c.nns[0])
	sh, err := startShell(c)
	if err != nil {
		return err
	}
	defer sh.stop()
	u := &user{cluster: c, sh: sh, id: 200, patience: 10 * time.Second}
	done := model.Operation{Process: u.id, Type: model.OpInvoke, F: "final-read-done"}
	c.out.Add(done)
	if err := u.readAll(ctx); err != nil {
		done.Type, done.Error = model.OpFail, err.Error()
	} else {
		done.Type = model.OpOK
	}
	c.out.Add(done)
	if done.Type == model.OpOK {
		u.writeLast()
	}
	for _, host := range c.nns {
		op := model.Operation{Process: u.id, F: "final-role", Node: host}
		_ = c.out.do(op, func() (string, error) { return c.state(context.WithoutCancel(ctx), host, 2*time.Second) })
	}
	return nil
}

// readAll reads all files; the error says why not all that there are were
// tried.
func (u *user) readAll(ctx context.Context) error {
	var list string
	for {
		err := errors.New("the client was not ready in time")
		select {
		case <-u.sh.gone:
			return errors.New("client-died: the JVM of the file system shell ended")
		case <-ctx.Done():
		case <-u.sh.ready:
			list, err = u.sh.run(u, "-ls", "-R", "-C", root)
			if err != nil && strings.Contains(err.Error(), "No such file or directory") {
				list, err = "", nil // nobody wrote anything
			}
		}
		if err == nil {
			break
		}
		if !wait(ctx, 500*time.Millisecond) {
			return fmt.Errorf("no list of the files: %w", err)
		}
	}
	var left []string
	for line := range strings.Lines(list) {
		if p := strings.TrimSpace(line); strings.HasPrefix(path.Base(p), "f") && !strings.HasSuffix(p, "._COPYING_") {
			left = append(left, p)
		}
	}
	// What cannot be read yet is tried again until the time is over.
	for first := true; len(left) > 0 && (first || wait(ctx, time.Second)); first = false {
		var again []string
		for _, p := range left {
			if !u.readOne(p) {
				again = append(again, p)
			}
		}
		left = again
	}
	return nil
}

func (u *user) readOne(p string) bool {
	name := path.Base(p)
	op := model.Operation{Process: u.id, F: "final-read", Key: name}
	err := u.out.do(op, func() (string, error) {
		got, err := u.sh.run(u, "-cat", p)
		if err == nil && got != string(content(u.seed, name)) {
			err = fmt.Errorf("changed: %s has other contents than were written (%d bytes)", p, len(got))
		}
		return "", err
	})
	return err == nil
}

// writeLast shows that the service takes new files.
func (u *user) writeLast() {
	u.files = map[string]string{}
	u.writeAs("final-write", "last", "/last")
}
