package manual

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"netsplit/model"
)

// findings are errors that tests change while others read them.
type findings struct {
	mu sync.Mutex
	is map[string]error
}

func (f *findings) set(what string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.is == nil {
		f.is = map[string]error{}
	}
	f.is[what] = err
}

func (f *findings) get(what string) func() error {
	return func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.is[what]
	}
}

// says waits until a partition's reason has a text; "": until it has no reason.
func (r *room) says(name, text string) {
	r.t.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(time.Millisecond) {
		st := r.status(name)
		if strings.Contains(st.Reason, text) && (text != "" || st.Reason == "") {
			return
		}
		if time.Now().After(end) {
			r.t.Fatalf("partition %s is %s: %q; want %q", name, st.State, st.Reason, text)
		}
	}
}

// TestAReasonThatIsOverGoes: a switch that is back is not called away while the cut is
// proved anew, nor while it is healed.
func TestAReasonThatIsOverGoes(t *testing.T) {
	r := newRoom(t)
	var now findings
	proving, proved := make(chan struct{}, 100), make(chan struct{})
	goOn := sync.OnceFunc(func() { close(proved) })
	defer goOn()
	healing := ""
	r.make = func(c *fakeCut) {
		c.kept = now.get("kept")
		c.proof = func() error {
			if err := now.get("proof")(); err != nil {
				proving <- struct{}{}
				<-proved
				return err
			}
			return now.get("kept")()
		}
		c.heals = func() error {
			healing = r.status("p1").Reason
			return nil
		}
	}
	r.cut("p1", "n1", "n2")
	away := errors.New("the switch is away")
	now.set("kept", away)
	r.Recheck()
	r.says("p1", "the switch is away")
	now.set("proof", errors.New("nothing was counted"))
	now.set("kept", nil)
	r.Reverify("the switch is back")
	<-proving
	r.says("p1", "being proved")
	now.set("kept", away)
	goOn() // whatever it met
	r.says("p1", "the switch is away")
	now.set("kept", nil)
	r.says("p1", "nothing was counted")
	now.set("proof", nil)
	r.is("p1", model.PartitionInForce)
	r.says("p1", "")
	now.set("kept", away)
	r.Recheck()
	r.says("p1", "the switch is away")
	if _, err := r.Delete(t.Context(), "p1"); err != nil || healing != "" {
		t.Errorf("while it healed it said %q; %v", healing, err)
	}
	if got := strings.Join(r.texts, "; "); strings.Contains(got, "healing: ") || !strings.Contains(got, "p1 is healing; ") {
		t.Errorf("told %s", got)
	}
}

// TestAHealIsTriedAgain when something is as it should be again, and once the testbed is
// free. What hinders it is told once.
func TestAHealIsTriedAgain(t *testing.T) {
	r := newRoom(t)
	var now findings
	r.make = func(c *fakeCut) { c.heals = now.get("heals") }
	r.cut("p1", "n1", "n2")
	now.set("heals", errors.New("nothing was seen to pass"))
	if _, err := r.Delete(t.Context(), "p1"); !errors.Is(err, errUnproved) {
		t.Fatal(err)
	}
	r.says("p1", "nothing was seen to pass")
	r.so()
	h := r.cuts["p1"]
	did := func() string { // by what was begun
		for end := time.Now().Add(limit); h.retries.Load() > 0; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("it is tried for ever")
			}
		}
		return r.so()
	}
	r.HealAgain()
	r.HealAgain() // while it is being tried
	if got := did(); !strings.HasPrefix(got, "pass again n1>n2") || strings.Contains(got, "told") {
		t.Errorf("tried again: %q", got)
	}
	if err := r.Claim("campaign c-1"); err != nil {
		t.Fatal(err)
	}
	now.set("heals", nil)
	if r.HealAgain(); did() != "" {
		t.Error("the packets of a proof came into a campaign")
	}
	r.Release()
	r.is("p1", model.PartitionHealed)
	r.says("p1", "")
}
