package sut

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"netsplit/explorer/check"
	"netsplit/model"
	"netsplit/record/relation"
)

// relations reads the file of relations that a target names, by its path from the
// target's folder, and finds its mistakes, those of its queries included.
func relations(t *model.Target, read func(name string) ([]byte, error)) error {
	if t.Relations == "" {
		return nil
	}
	b, err := read(t.Relations)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: target %s: there is no file %s beside the target file, which it names under relations", model.ErrInvalid, t.Name, t.Relations)
	}
	if err != nil {
		return fmt.Errorf("read the relations of target %s: %w", t.Name, err)
	}
	f, err := relation.Parse(t.Relations, b)
	if err != nil {
		return err
	}
	for _, c := range f.Checks {
		if slices.Contains(check.Names(), c.Name) {
			return fmt.Errorf("%w: %s:%d: %s is a check of netsplit: take another name", model.ErrInvalid, t.Relations, c.Line, c.Name)
		}
	}
	t.RelationsText = string(b)
	return f.Compile(context.Background())
}
