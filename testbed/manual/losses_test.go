package manual

import (
	"errors"
	"strings"
	"testing"

	"netsplit/model"
)

// TestAHostGivenItsRulesSinceItWasLost: a partition whose cut finds another agent on a
// host, or comes before what was lost there is booked, has its rules there; those cut
// before are lost, and so is one that lost them while it was being cut.
func TestAHostGivenItsRulesSinceItWasLost(t *testing.T) {
	died := errors.New("host n1: its agent died, and its rules with it")
	t.Run("found by the cut", func(t *testing.T) {
		r := newRoom(t)
		r.cut("old", "n1", "n2")
		r.make = func(c *fakeCut) {
			c.put = func() error {
				r.LoseHost("n1", died)
				return nil
			}
		}
		r.cut("new", "n1", "n3")
		r.is("old", model.PartitionFailed)
		if st := r.status("new"); st.State != model.PartitionInForce {
			t.Errorf("new is %s: %s", st.State, st.Reason)
		}
	})
	t.Run("booked late", func(t *testing.T) {
		r := newRoom(t)
		removing, goOn := make(chan struct{}), make(chan struct{})
		r.make = func(c *fakeCut) {
			c.remove = func() {
				close(removing)
				<-goOn
			}
		}
		r.cut("slow", "n3", "n4")
		r.make = func(*fakeCut) {}
		r.cut("old", "n1", "n2")
		r.LoseHost("n3", died)
		<-removing
		r.LoseHost("n1", died)
		r.cut("new", "n1", "n2")
		close(goOn)
		r.is("old", model.PartitionFailed)
		r.is("slow", model.PartitionFailed)
		if st := r.status("new"); st.State != model.PartitionInForce {
			t.Errorf("new is %s: %s", st.State, st.Reason)
		}
		r.LoseHost("n1", died)
		r.is("new", model.PartitionFailed)
	})
	t.Run("gone again", func(t *testing.T) {
		r := newRoom(t)
		r.make = func(c *fakeCut) {
			c.put = func() error {
				c.kept = func() error { return died }
				r.LoseHost("n1", died)
				return nil
			}
		}
		if _, err := r.Create(t.Context(), spec("new", "n1", "n2")); err != nil {
			t.Fatal(err)
		}
		if st := r.is("new", model.PartitionFailed); !strings.Contains(st.Reason, "its agent died") {
			t.Error(st.Reason)
		}
	})
}
