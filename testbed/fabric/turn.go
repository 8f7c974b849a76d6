package fabric

import (
	"context"
	"fmt"
)

// turn is a lock that may be waited for until a context ends.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// take waits for the turn; call Unlock unless there is an error.
func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the rules are being changed or read back, which takes longer than this may: %w", context.Cause(ctx))
	}
}

// Lock waits however long it takes.
func (t turn) Lock() { t <- struct{}{} }

// Unlock gives the turn on.
func (t turn) Unlock() { <-t }
