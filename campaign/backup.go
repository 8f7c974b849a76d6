package campaign

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
)

var backups atomic.Uint64

// Backup opens a copy of the store, all of one moment. The file has no name any more: what it
// takes of the disk is free once it is closed.
func (s *Service) Backup(ctx context.Context) (*os.File, error) {
	path := fmt.Sprintf("%s.copy-%d-%d", s.cfg.StorePath, os.Getpid(), backups.Add(1))
	if err := s.store.Backup(path); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	return f, errors.Join(err, os.Remove(path))
}
