package traffic

import (
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
	shots    []shot
	stop     chan struct{}
	work     sync.WaitGroup
	failed   error
}

// shot is a frame of a sort, and when it was sent; the zero time if it was not.
type shot struct {
	sort
	from, to *Station
	num      uint32
	frame    []byte
	at       time.Time
}

// rounds of all sorts there are at most, and the pause after each. A switch has
// forgotten a cut's few cached decisions in no time, so there are UDP flows beside,
// some of which each round has, all of them every flows/perRound rounds.
const (
	rounds     = 150
	roundPause = 5 * time.Millisecond
	flows      = 1500
	perRound   = 75
)

// Warm is how long all flows take once, about.
const Warm = flows / perRound * 2 * roundPause

// flow is one of many.
func flow(n int) sort {
	return sort{name: fmt.Sprintf("udp flow %d", n), proto: "udp", src: 20000 + n, dst: 5000, build: func(a, b Host) []gopacket.SerializableLayer {
		return stack(v4(a, b, layers.IPProtocolUDP), udp(20000+n, 5000))
	}}
}

// NewSteady builds the frames and begins to send.
func NewSteady(tb testing.TB, stations ...*Station) *Steady {
	tb.Helper()
	y := &Steady{stations: stations, stop: make(chan struct{})}
	add := func(s sort, from, to *Station) {
		n, f := frameOf(tb, s, from, to)
		y.shots = append(y.shots, shot{s, from, to, n, f, time.Time{}})
	}
	for r := range rounds {
		for _, s := range sorts {
			for _, from := range stations {
				for _, to := range stations {
					if from != to {
						add(s, from, to)
					}
				}
			}
		}
		for i := range perRound {
			add(flow((r*perRound+i)%flows), stations[0], stations[1])
		}
	}
	y.work.Go(y.send)
	return y
}

func (y *Steady) send() {
	round := len(y.shots) / rounds
	for i := range y.shots {
		select {
		case <-y.stop:
			return
		default:
		}
		s := &y.shots[i]
		s.at = time.Now()
		if y.failed = s.from.write(s.frame); y.failed != nil {
			y.failed = fmt.Errorf("%s sends: %w", s.from.Name, y.failed)
			return
		}
		if i%round == round-1 {
			time.Sleep(roundPause)
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
// arrived. It returns how many frames they were to hold back; Stop comes before.
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
		if s.at.Before(from) || !s.at.Before(to) || s.at.IsZero() {
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
