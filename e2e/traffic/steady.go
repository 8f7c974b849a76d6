package traffic

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"netsplit/model"
)

// Steady is every sort of traffic between all stations, again and again.
type Steady struct {
	stations []*Station
	sorts    []template // that each round has all of
	flows    []template // that each round has some of
	shots    []shot
	stop     chan struct{}
	work     sync.WaitGroup
	failed   error
}

// template is a frame without its number, which is at that place.
type template struct {
	sort
	from, to *Station
	frame    []byte
	number   int
}

// shot is a frame that was sent, its number, and when that began and ended.
type shot struct {
	*template
	num       uint32
	at, ended time.Time
}

// A switch has forgotten a cut's few cached decisions in no time, so there are UDP
// flows beside, some of which each round has, all of them every flows/perRound rounds.
const (
	roundPause = 5 * time.Millisecond
	flows      = 1500
	perRound   = 75
)

// Warm is how long all flows take once, about.
const Warm = flows / perRound * 2 * roundPause

// Settle is what a switch that waits for a CPU takes to meet a frame that was sent.
const Settle = 500 * time.Millisecond

// flow is one of many.
func flow(n int) sort {
	return sort{name: fmt.Sprintf("udp flow %d", n), proto: "udp", src: 20000 + n, dst: 5000, build: func(a, b Host) []gopacket.SerializableLayer {
		return stack(v4(a, b, layers.IPProtocolUDP), udp(20000+n, 5000))
	}}
}

// NewSteady begins to send.
func NewSteady(tb testing.TB, stations ...*Station) *Steady {
	tb.Helper()
	y := &Steady{stations: stations, stop: make(chan struct{})}
	build := func(s sort, from, to *Station) template {
		_, f := frameOf(tb, s, from, to)
		return template{s, from, to, f, bytes.Index(f, []byte(Marker)) + len(Marker)}
	}
	for _, s := range sorts {
		for _, from := range stations {
			for _, to := range stations {
				if from != to {
					y.sorts = append(y.sorts, build(s, from, to))
				}
			}
		}
	}
	for n := range flows {
		y.flows = append(y.flows, build(flow(n), stations[0], stations[1]))
	}
	y.work.Go(y.send)
	return y
}

func (y *Steady) send() {
	shoot := func(t *template) bool {
		num := last.Add(1)
		binary.BigEndian.PutUint32(t.frame[t.number:], num)
		at := time.Now()
		if err := t.from.write(t.frame); err != nil {
			y.failed = fmt.Errorf("%s sends: %w", t.from.Name, err)
		}
		y.shots = append(y.shots, shot{t, num, at, time.Now()})
		return y.failed == nil
	}
	for round := 0; ; round++ {
		for i := range y.sorts {
			if !shoot(&y.sorts[i]) {
				return
			}
		}
		for i := range perRound {
			if !shoot(&y.flows[(round*perRound+i)%flows]) {
				return
			}
		}
		select {
		case <-y.stop:
			return
		case <-time.After(roundPause):
		}
	}
}

// Stop ends it, and waits until what is on its way has arrived.
func (y *Steady) Stop(tb testing.TB) {
	tb.Helper()
	close(y.stop)
	y.work.Wait()
	if y.failed != nil {
		tb.Fatal(y.failed)
	}
	time.Sleep(150 * time.Millisecond)
}

// NothingCrossed holds what was sent between two moments against the plain reading of
// the partitions that were in force all the while: nothing that they cut may have
// arrived. It returns how many frames they were to hold back; Stop comes before. The
// heal comes Settle after the second moment, so that the switch has met them all.
func (y *Steady) NothingCrossed(tb testing.TB, what string, from, to time.Time, ps ...model.Partition) (wanted int) {
	tb.Helper()
	wanted, crossed := y.cut(from, to, ps)
	if len(crossed) > 0 {
		tb.Errorf("%s: %d of %d frames crossed:\n%s", what, len(crossed), wanted, strings.Join(crossed[:min(len(crossed), 20)], "\n"))
	}
	return wanted
}

// Crossed is how many frames arrived of those that were sent between two moments and
// that the partitions cut.
func (y *Steady) Crossed(from, to time.Time, ps ...model.Partition) int {
	_, crossed := y.cut(from, to, ps)
	return len(crossed)
}

// cut is how many frames the partitions cut, and which of them arrived.
func (y *Steady) cut(from, to time.Time, ps []model.Partition) (wanted int, crossed []string) {
	for _, s := range y.shots {
		if s.at.Before(from) || !s.ended.Before(to) {
			continue
		}
		for _, o := range y.stations {
			may := passes(s.sort, s.from.Name, o.Name, ps)
			if s.unseen { // as of nothing that a partition could choose
				may = passes(sort{}, s.from.Name, o.Name, ps)
			}
			if may || o == s.from {
				continue
			}
			if o == s.to {
				wanted++
			}
			if n := o.Received(s.num); n > 0 {
				crossed = append(crossed, fmt.Sprintf("%s %s>%s, sent %v after, received by %s", s.name, s.from.Name, s.to.Name, s.at.Sub(from), o.Name))
			}
		}
	}
	return wanted, crossed
}
