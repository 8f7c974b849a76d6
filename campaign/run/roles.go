package run

import (
	"context"
	"fmt"
	"slices"
	"time"

	"netsplit/model"
)

// roleLimit is how long a held message waits for the answer who has a role.
const roleLimit = time.Second

// askRoles asks, while a message is held, who has the roles on which it depends whether a
// fault is about it, and enters the answers before the message. All else at the gate waits
// meanwhile. The caller holds mu.
func (s *session) askRoles(at time.Duration, held *heldFrame, m *model.Message) {
	for _, role := range s.engine.Asks(m) {
		who, err := s.ask(role)
		if err != nil {
			s.carryOut(at, held, s.event(at, model.Event{Kind: model.EventNote,
				Note: fmt.Sprintf("message %d (%s, %s to %s) was held, and who has role %s could not be told: %v", m.Num, m.Type, m.From, m.To, role, err)}))
		}
		have := slices.Sorted(slices.Values(who.Have))
		s.carryOut(at, held, s.event(at, model.Event{Kind: model.EventRole, Role: &model.RoleHolders{Role: role, Have: have}}))
	}
}

// holders asks the target, or the testbed.
func (r *run) holders(role string) (model.Holders, error) {
	ctx, cancel := context.WithTimeout(context.Background(), roleLimit)
	defer cancel()
	return r.procs.Holders(ctx, role)
}
