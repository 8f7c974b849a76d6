package campaign

import (
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

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
	cfg := Config{RunsDir: filepath.Join(t.TempDir(), "runs"), ControllerAddr: addr, Gate: model.GateByPort, Log: slog.New(slog.DiscardHandler),
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
