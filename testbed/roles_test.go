package testbed

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"netsplit/model"
)

// TestWhoHas: who says yes has the role, who says something else has not, and who
// does not answer is silent; where nobody says yes, that is an error, with what kept
// hosts from answering.
func TestWhoHas(t *testing.T) {
	role := model.Role{Hosts: []model.NodeID{"n1", "n2", "n3"}, Match: "leader"}
	ask := func(answers map[model.NodeID]string) func(context.Context, model.NodeID, model.Probe) (string, error) {
		return func(_ context.Context, h model.NodeID, _ model.Probe) (string, error) {
			if answers[h] == "" {
				return "", errors.New("connection refused")
			}
			return answers[h], nil
		}
	}
	who, err := WhoHas(context.Background(), "leader", role, ask(map[model.NodeID]string{"n2": "leader", "n3": "follower"}))
	if got := fmt.Sprint(who, err); got != "{[n2] [n1 n2 n3] [n1]} <nil>" {
		t.Error(got)
	}
	if who, err = WhoHas(context.Background(), "leader", role, ask(map[model.NodeID]string{"n3": "follower"})); !errors.Is(err, model.ErrUnavailable) || len(who.Have) > 0 {
		t.Errorf("nobody has it: %v %v", who, err)
	}
}
