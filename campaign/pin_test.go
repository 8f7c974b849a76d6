package campaign

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"netsplit/internal/storetest"
	"netsplit/model"
)

func TestAnInvariantIsPinnedByItsText(t *testing.T) {
	s := &Service{store: storetest.New(t), log: slog.New(slog.DiscardHandler)}
	if err := s.store.PutCampaign(model.Campaign{ID: "c-1", Created: time.Now(), Spec: model.CampaignSpec{Target: "../e2e/targets/gossip/target.yaml"}}); err != nil {
		t.Fatal(err)
	}
	inv, err := s.PinInvariant(t.Context(), "gossip", "status[n1]@n3 == status[n1]@n2")
	if err != nil || inv.Status != model.InvariantPinned || inv.Kind != "node-status" || inv.String() != "status[n1]@n2 == status[n1]@n3" {
		t.Fatalf("%+v, %v", inv, err)
	}
	if err := s.store.PutInvariants("gossip", nil); err != nil { // a campaign mined nothing
		t.Fatal(err)
	}
	if all, err := s.Invariants(t.Context(), "gossip"); err != nil || len(all) != 1 || all[0].ID != inv.ID {
		t.Errorf("kept %v, %v", all, err)
	}
	mined := inv.Invariant
	mined.Support, mined.Status = 12, model.InvariantMined
	if err := s.store.PutInvariants("gossip", []model.Invariant{mined}); err != nil {
		t.Fatal(err)
	}
	if again, err := s.PinInvariant(t.Context(), "gossip", inv.String()); err != nil || again.Support != 12 || again.Status != model.InvariantPinned {
		t.Errorf("mined since: %+v, %v", again, err)
	}
	for _, c := range []struct{ target, text, want string }{
		{"gossip", "status[n1]@n2", "write two variables"},
		{"gossip", "status[n1]@n2 == ", "name[about]@node"},
		{"gossip", inv.ID, "is an id"},
		{"gossip", "state[n1]@n2 == status[n1]@n3", `no variable "state": it has `},
		{"gossip", "status[n1]@n2 == status[n1]@n9", `no node "n9": it has [n1 n2 n3]`},
		{"gossip", "status[n1]@n2 == status[n1]@n2", "same variable twice"},
		{"gossip", "status[n1]@n2 == status[n2]@n2", "both variables are of n2"},
		{"nothing", "status[n1]@n2 == status[n1]@n3", `no target "nothing"`},
		{"/etc/shadow", "status[n1]@n2 == status[n1]@n3", "a daemon opens no path"},
	} {
		_, err := s.PinInvariant(t.Context(), c.target, c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, model.ErrInvalid) && !errors.Is(err, model.ErrNotFound) {
			t.Errorf("%s on %s: %v, want %q", c.text, c.target, err, c.want)
		}
	}
	two := *ringTarget()
	two.Variables = append(two.Variables, model.Variable{Name: "term", Kind: "term"})
	other, _, _ := model.ParseInvariant("leader@n1 == term@n2")
	if err := complete(&other, &two); err == nil || !strings.Contains(err.Error(), "only variables of one kind") {
		t.Errorf("of two kinds: %v", err)
	}
}
