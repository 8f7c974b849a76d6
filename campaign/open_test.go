package campaign

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsplit/inference/store"
	"netsplit/model"
)

// TestAServiceThatCannotOpenKeepsNothing: neither the port of the controller nor
// the store, so that the next try finds both free.
func TestAServiceThatCannotOpenKeepsNothing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	id := model.DatapathID(1)
	cfg := Config{RunsDir: filepath.Join(t.TempDir(), "runs"), ControllerAddr: addr, Gate: model.GateByPort, Metrics: noMetrics{}, Log: slog.New(slog.DiscardHandler),
		Testbed: &model.Testbed{Name: "rack", Gates: []model.GatePort{{Datapath: id, Port: model.Port{Number: 1}, Interface: "nosuchdevice"}},
			Hosts: []model.TestbedHost{
				{Name: "n1", Datapath: id, Port: model.Port{Number: 2}, MAC: "02:00:00:00:00:01", IP: netip.MustParseAddr("10.9.0.1")},
				{Name: "n2", Datapath: id, Port: model.Port{Number: 3}, MAC: "02:00:00:00:00:02", IP: netip.MustParseAddr("10.9.0.2")}}}}
	for range 2 {
		if s, err := Open(cfg); err == nil {
			_ = s.Close()
			t.Fatal("a testbed whose gate port does not exist was taken over")
		} else if !strings.Contains(err.Error(), "nosuchdevice") {
			t.Fatalf("opened with %v, want what is wrong with the device", err)
		}
	}
}

// TestAServiceThatReadsChangesNothing: a campaign that a dead daemon left stays as it is, and
// what is stored can be read, pinned and copied.
func TestAServiceThatReadsChangesNothing(t *testing.T) {
	dir := t.TempDir()
	st, err := store.Open(filepath.Join(dir, "netsplit.db"))
	if err != nil {
		t.Fatal(err)
	}
	left := model.Campaign{ID: "c-1", State: model.CampaignRunning, Running: []string{"c-1-r0001"}, Spec: model.CampaignSpec{Target: "nosuch"}}
	if err := errors.Join(st.PutCampaign(left), st.StartRun(model.RunMeta{Campaign: "c-1", Run: "c-1-r0001"}), st.Close()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s, err := Open(Config{RunsDir: dir, ControllerAddr: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler), Metrics: noMetrics{}, InProcess: true, Reads: true})
		if err != nil {
			t.Fatal(err)
		}
		if a := s.ControllerAddr(); a != "" {
			t.Errorf("it listens for switches on %s", a)
		}
		for range 40 { // as long as one that works needs to fail on this target
			if c, err := s.Campaign(t.Context(), "c-1"); err != nil || c.State != model.CampaignRunning || len(c.Running) != 1 {
				t.Fatalf("the campaign is %+v, %v", c, err)
			}
			time.Sleep(5 * time.Millisecond)
		}
		if _, err := s.Run(t.Context(), "c-1-r0001"); !errors.Is(err, model.ErrNotFound) {
			t.Errorf("the run that was under way: %v", err)
		}
		s.Health(t.Context())
		f, err := s.Backup(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	}
}
