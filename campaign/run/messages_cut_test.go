package run

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/gopacket/layers"

	"netsplit/internal/onecut"
	"netsplit/model"
)

// TestACutOfMessagesLetsBareAcknowledgementsPass, which are no packets that wanted to
// cross it.
func TestACutOfMessagesLetsBareAcknowledgementsPass(t *testing.T) {
	for _, c := range []struct {
		only []model.Traffic
		want string
		lost int
	}{
		{nil, "[n3: hello]", 5},
		{[]model.Traffic{{Proto: "tcp", Messages: true}}, "[n3: hello n2: RST false seq 200]", 4},
		{[]model.Traffic{{Proto: "tcp", Port: 9, Messages: true}}, "[n3: hello n2: RST false seq 200 n2: lost n2: RST false seq 204 n2: RST false seq 205 n2: RST true seq 206]", 0},
	} {
		scn := onecut.Scenario{Strategy: model.StrategyRandom, CutAfter: 1, MaxCut: time.Hour, Isolate: "n3",
			Partition: model.Partition{Shape: model.Simplex, Effect: model.Drop, Groups: [][]model.NodeID{{"n2"}, {"n3"}}, Only: c.only}}
		gate := &fakeGate{}
		s := testSession(t, scn.Model(), gate)
		s.Mark(model.EventWorkload)
		s.Tick()
		<-s.gateCuts[0].confirmed
		send := func(from, to model.NodeID, l layers.TCP, payload string) {
			l.SrcPort, l.DstPort, l.Window = 7001, 7001, 1000
			s.Gate(from, time.Now(), frame(t, from, to, &l, payload))
		}
		send("n2", "n3", layers.TCP{Seq: 100, Ack: 200, ACK: true}, "hello")
		send("n3", "n2", layers.TCP{Seq: 200, Ack: 105, ACK: true}, "")
		send("n3", "n2", layers.TCP{Seq: 200, Ack: 105, ACK: true}, "lost")
		send("n3", "n2", layers.TCP{Seq: 204, Ack: 105, ACK: true, FIN: true}, "")
		send("n3", "n2", layers.TCP{Seq: 205, SYN: true}, "")
		send("n3", "n2", layers.TCP{Seq: 206, RST: true}, "")
		s.mu.Lock()
		if got := fmt.Sprint(gate.released); got != c.want || s.gateCuts[0].proof.Wanted != c.lost || s.gateCuts[0].proof.Dropped != c.lost {
			t.Errorf("only %v: released %s, wanted %d, dropped %d; want %s and %d", c.only, got, s.gateCuts[0].proof.Wanted, s.gateCuts[0].proof.Dropped, c.want, c.lost)
		}
		s.mu.Unlock()
	}
}
