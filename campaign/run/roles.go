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
		s.askRole(at, held, role, fmt.Sprintf("message %d (%s, %s to %s) was held", m.Num, m.Type, m.From, m.To))
	}
}

// askRole asks who has a role and enters the answer. The caller holds mu.
func (s *session) askRole(at time.Duration, held *heldFrame, role, why string) {
	who, err := s.ask(role)
	if err != nil {
		s.carryOut(at, held, s.event(at, model.Event{Kind: model.EventNote, Note: fmt.Sprintf("%s, and who has role %s could not be told: %v", why, role, err)}))
	}
	s.enterRole(at, held, role, who)
}

func (s *session) enterRole(at time.Duration, held *heldFrame, role string, who model.Holders) {
	have := slices.Sorted(slices.Values(who.Have))
	s.carryOut(at, held, s.event(at, model.Event{Kind: model.EventRole, Role: &model.RoleHolders{Role: role, Have: have}}))
}

// Found enters who has a role, as somebody asks again and again.
func (s *session) Found(role string, who model.Holders) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.guard("entered who has role "+role, "", nil)
	s.enterRole(s.now(), nil, role, who)
}

// rolePause is how long a target is left alone before it is asked again who has a role.
const rolePause = 100 * time.Millisecond

// watchRoles asks again and again who has the roles at which steps begin or end, and enters
// what is new, until the context ends.
func (r *run) watchRoles(ctx context.Context) {
	var roles []string
	for i := range r.c.Scenario.Steps {
		roles = append(roles, r.c.Scenario.Steps[i].RoleNames()...)
	}
	slices.Sort(roles)
	roles = slices.Compact(roles)
	last := map[string]string{}
	for len(roles) > 0 {
		for _, role := range roles {
			who, err := r.holders(role)
			said := fmt.Sprint(slices.Sorted(slices.Values(who.Have)), err)
			if ctx.Err() != nil {
				return
			}
			if said != last[role] {
				if last[role] = said; err != nil {
					r.s.Note("who has role %s could not be told: %v", role, err)
				}
				r.s.Found(role, who)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(rolePause, r.target.Timing.Tick)):
		}
	}
}

// holders asks the target, or the testbed.
func (r *run) holders(role string) (model.Holders, error) {
	ctx, cancel := context.WithTimeout(context.Background(), roleLimit)
	defer cancel()
	return r.procs.Holders(ctx, role)
}
