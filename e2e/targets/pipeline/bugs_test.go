package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// a says whether a message has a type.
func a(typ string) func(transit) bool { return func(m transit) bool { return m.Type == typ } }

func lose(*cluster, transit) bool { return false }

// crashSender kills the sender of a message that has left.
func crashSender(c *cluster, m transit) bool {
	c.crash(m.from)
	return true
}

// crashReceiver kills who a message is for, before it arrives.
func crashReceiver(c *cluster, m transit) bool {
	c.crash(m.to)
	return false
}

// place puts a special file where the receiver of a message has a replica, or will
// have it.
func place(suffix, special string) func(*cluster, transit) bool {
	return func(c *cluster, m transit) bool {
		name := filepath.Join(c.dirs[m.to], strings.Replace(m.Replica.String(), "@", "_", 1)+suffix)
		if err := os.RemoveAll(name); err != nil {
			c.t.Error(err)
		}
		if err := os.Symlink(special, name); err != nil {
			c.t.Error(err)
		}
		return true
	}
}

var (
	packetToN4 = func(m transit) bool { return m.Type == "packet" && m.to == "n4" }
	setupOfN3  = func(m transit) bool { return m.Type == "setup" && m.to == "n3" }
	writeFails = place(".tmp", "/dev/full")  // ENOSPC
	readFails  = place("", "/proc/self/mem") // EIO
)

// saveLate keeps the bug early-answer from saving before the crash, and shortLease
// lets the forgotten lease end.
var (
	saveLate   = map[string][]string{"n1": {"-beat", "60s"}}
	shortLease = map[string][]string{"n1": {"-lease", "3s"}}
)

// sequences are the smallest ones that show the bugs: README.md.
var sequences = []struct {
	bug   string
	args  map[string][]string
	steps []step
	shows judged // with the bug, beside what is acknowledged
}{
	{earlyAnswer, saveLate, []step{{a("complete-ok"), crashSender}}, judged{lost: []string{"b1"}}},
	{secondLease, shortLease, []step{{a("allocate-ok"), lose}}, judged{lost: []string{"b1"}}},
	{ignoredError, nil, []step{{setupOfN3, writeFails}}, judged{thin: []string{"b1"}}},
	{countedCopy, nil, []step{{packetToN4, crashReceiver}, {a("copy"), lose}}, judged{thin: []string{"b1"}}},
	{oneReport, nil, []step{{packetToN4, crashReceiver}, {a("copy-order"), readFails}, {a("bad"), lose}}, judged{thin: []string{"b1"}}},
}

func TestASequenceShowsItsBugAndNoneWithoutIt(t *testing.T) {
	for _, s := range sequences {
		for _, bug := range []string{s.bug, "none"} {
			t.Run(s.bug+"/"+bug, func(t *testing.T) {
				t.Parallel()
				got := start(t, bug, s.args, s.steps...).play(len(s.steps))
				if len(got.acked) == 0 || got.acked[0] != "b1" {
					t.Fatalf("b1 was not acknowledged: %+v", got)
				}
				want := judged{acked: got.acked}
				if bug != "none" {
					want.lost, want.thin = s.shows.lost, s.shows.thin
				}
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%+v, want %+v", got, want)
				}
			})
		}
	}
}

// TestEveryFaultOfASequenceIsNeeded plays the sequences of two and three faults with
// some of them left out.
func TestEveryFaultOfASequenceIsNeeded(t *testing.T) {
	for _, s := range sequences {
		for left := range 1<<len(s.steps) - 1 {
			var steps []step
			var name []string
			played, all := 0, true // those behind one that was left out may never come
			for i, st := range s.steps {
				if left&(1<<i) == 0 {
					all = false
					continue
				}
				steps = append(steps, st)
				name = append(name, []string{"first", "second", "third"}[i])
				if all {
					played++
				}
			}
			t.Run(s.bug+"/"+strings.Join(name, "+"), func(t *testing.T) {
				t.Parallel()
				// On a slow machine a report may come late, and what is left out needs no fault:
				// a block is copied though no node crashed. That play shows nothing.
				for range 5 {
					c := start(t, s.bug, s.args, steps...)
					got := c.play(played)
					if c.came() > played {
						continue
					}
					if want := (judged{acked: got.acked}); len(got.acked) == 0 || !reflect.DeepEqual(got, want) {
						t.Errorf("%+v, want nothing lost or thin", got)
					}
					return
				}
				t.Error("in five plays what was left out came by itself")
			})
		}
	}
}

// TestOneFaultAtAnyMessageIsSurvived plays, without a bug, one fault at the first
// message of each type that a write needs.
func TestOneFaultAtAnyMessageIsSurvived(t *testing.T) {
	requests := []string{"allocate", "complete", "setup", "packet", "close", "received"}
	faults := []struct {
		name string
		do   func(*cluster, transit) bool
	}{{"lost", lose}, {"sender crashes", crashSender}, {"receiver crashes", crashReceiver}}
	for _, request := range requests {
		for _, typ := range []string{request, request + "-ok"} {
			for _, f := range faults {
				// Among nodes, but for what only the client says and hears.
				client := request == "allocate" || request == "complete"
				asks := typ == request
				if client && (asks && f.name == "sender crashes" || !asks && f.name == "receiver crashes") {
					continue // the client is no node
				}
				at := func(m transit) bool { return m.Type == typ && (client || m.from != "c1" && m.to != "c1") }
				t.Run(typ+" "+f.name, func(t *testing.T) {
					t.Parallel()
					got := start(t, "none", nil, step{at, f.do}).play(1)
					if want := (judged{acked: []string{"b1", "b2"}}); !reflect.DeepEqual(got, want) {
						t.Errorf("%+v, want %+v", got, want)
					}
				})
			}
		}
	}
}
