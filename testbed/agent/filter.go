package agent

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"netsplit/testbed/nft"
)

// handover is how long a table of the same name is waited for: that of an agent
// that was killed goes with its process.
const handover = 2 * time.Second

// filtering is the host's table of rules, made when rules are first asked for.
type filtering struct {
	mu    sync.Mutex
	table *nft.Table
	last  uint64 // the number of the youngest request for rules
}

func (f *filtering) answer(r *request) (dropped map[string]uint64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer func() {
		if errors.Is(err, nft.ErrClosed) { // whoever asks for rules next gets another
			f.table = nil
		}
	}()
	if r.Op == opFilter { // requests are worked on in any order, and these undo one another
		if r.ID < f.last {
			return nil, errors.New("these rules come too late: the host has newer ones")
		}
		f.last = r.ID
	}
	if f.table == nil {
		if r.Op != opFilter {
			return nil, errors.New("this host has no rules: the agent was restarted")
		}
		if err := f.open(r.Filter); err != nil {
			return nil, fmt.Errorf("this host cannot drop packets itself: %w", err)
		}
	}
	switch r.Op {
	case opFilter:
		return f.table.Set(r.Filter.Rules, r.Filter.Lease)
	case opRenew:
		return nil, f.table.Renew(r.Filter.Lease)
	}
	return f.table.Dropped()
}

func (f *filtering) open(w *filter) (err error) {
	for end := time.Now().Add(handover); ; time.Sleep(20 * time.Millisecond) {
		if f.table, err = nft.Open(w.Table, w.Addr); !errors.Is(err, unix.EEXIST) || time.Now().After(end) {
			return err
		}
	}
}

// close removes the table, and with it the rules.
func (f *filtering) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.table != nil {
		f.table.Close()
	}
}
