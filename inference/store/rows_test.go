package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netsplit/model"
)

var t0 = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// counting counts the keys that are read.
type counting struct {
	kv
	keys, bytes int
}

func (c *counting) view(fn func(kvTx) error) error {
	return c.kv.view(func(t kvTx) error { return fn(countingTx{t, c}) })
}

func (c *counting) update(fn func(kvTx) error) error {
	return c.kv.update(func(t kvTx) error { return fn(countingTx{t, c}) })
}

type countingTx struct {
	kvTx
	c *counting
}

func (t countingTx) get(bucket string, key []byte) []byte {
	v := t.kvTx.get(bucket, key)
	t.c.keys, t.c.bytes = t.c.keys+1, t.c.bytes+len(v)
	return v
}

func (t countingTx) scan(bucket string, prefix, from []byte, reverse bool, fn func(k, v []byte) bool) {
	t.kvTx.scan(bucket, prefix, from, reverse, func(k, v []byte) bool {
		t.c.keys, t.c.bytes = t.c.keys+1, t.c.bytes+len(v)
		return fn(k, v)
	})
}

func empty(t *testing.T) *Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "netsplit.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func big(n int) model.RunSummary {
	r := model.RunSummary{Messages: map[string]int{}, Verdict: model.Verdict{Value: model.VerdictFail, Reason: "3 lost",
		Failures: []model.Failure{{Check: "lost", Signature: "lost", Class: model.Broken, Summary: "3 lost", Detail: []string{strings.Repeat("x", 2000)}, Quote: strings.Repeat("q", 500)}},
		Excuses:  []model.Excuse{{Why: strings.Repeat("y", 2000)}}, Lines: []model.ExcusedLine{{Line: strings.Repeat("l", 2000)}}},
		Proof: &model.Proof{CutAt: time.Second, HealAt: 3 * time.Second, Links: make([]model.Link, 50), PerLink: make([]model.LinkProof, 50)}}
	r.Campaign, r.Run, r.Target, r.Started = "c", fmt.Sprintf("c-r%04d", n), "mine", t0.Add(time.Duration(n)*time.Minute)
	r.Scenario = model.Scenario{Strategy: model.StrategyCoFI, Observe: make([]model.Invariant, 50)}
	for i := range 50 {
		r.Messages[fmt.Sprint("type ", i)] = i
	}
	return r
}

// TestAPageReadsWhatItAnswersAndNoMore: however many there are, and however big.
func TestAPageReadsWhatItAnswersAndNoMore(t *testing.T) {
	const n = 1000
	s := empty(t)
	c := &counting{kv: s.kv}
	s.kv = c
	err := s.Update(func(tx *Tx) (err error) {
		for i := range n {
			f := model.Finding{ID: fmt.Sprintf("f-%04d", i), Campaign: "c", FirstAfter: i, Failure: big(0).Verdict.Failures[0], Runs: make([]string, 500)}
			p := model.PartitionStatus{PartitionSpec: model.PartitionSpec{Name: fmt.Sprintf("p-%04d", i)}, State: model.PartitionHealed, Created: t0.Add(time.Duration(i) * time.Second)}
			err = errors.Join(err, tx.PutRun(big(i)), tx.PutFinding(f), tx.PutPartition(p),
				tx.PutCampaign(model.Campaign{ID: fmt.Sprintf("c-%04d", i), Created: t0.Add(time.Duration(i) * time.Second)}),
				tx.AppendInput("c", json.RawMessage(`{}`)))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	pages := func(list func(cursor string) (int, string, error), per int, most, bytes int) {
		t.Helper()
		count, page := 0, 0
		for cursor := ""; ; page++ {
			c.keys, c.bytes = 0, 0
			got, next, err := list(cursor)
			if err != nil {
				t.Fatal(err)
			}
			if c.keys > most || c.bytes > bytes {
				t.Errorf("page %d of %d elements took %d keys and %d bytes, want %d and %d at most", page, got, c.keys, c.bytes, most, bytes)
			}
			count += got
			if cursor = next; next == "" {
				break
			}
		}
		if count != n || page != (n-1)/per {
			t.Errorf("%d elements on %d pages", count, page+1)
		}
	}
	// The last key of the page before and the first one of the next page are read too.
	pages(func(cur string) (int, string, error) {
		l, next, err := s.ListRuns(model.RunFilter{Campaign: "c"}, 40, cur)
		return len(l), next, err
	}, 40, 42, 42*800)
	pages(func(cur string) (int, string, error) {
		l, next, err := s.ListRuns(model.RunFilter{Campaign: "c"}, 1e6, cur)
		return len(l), next, err
	}, MaxLimit, MaxLimit+2, (MaxLimit+2)*800)
	pages(func(cur string) (int, string, error) {
		l, next, err := s.ListFindings("", 40, cur)
		return len(l), next, err
	}, 40, 42, 42*800)
	pages(func(cur string) (int, string, error) {
		l, next, err := s.ListPartitions(40, cur)
		return len(l), next, err
	}, 40, 83, 42*800) // the one behind the page is read, too
	pages(func(cur string) (int, string, error) {
		l, next, err := s.ListCampaigns(model.CampaignFilter{}, 40, cur)
		return len(l), next, err
	}, 40, 83, 42*800) // the one behind the page is read, too

	c.keys = 0
	cuts, more, err := s.Annotations(t0.Add(500*time.Minute), t0.Add(509*time.Minute+30*time.Second), 100)
	if err != nil || more || len(cuts) != 10 || c.keys > 12 {
		t.Errorf("%d cuts of %d, more %v, with %d keys read: %v", len(cuts), n, more, c.keys, err)
	}
	c.keys = 0
	cuts, more, err = s.Annotations(t0, t0.Add(n*time.Minute), 100)
	if err != nil || !more || len(cuts) != 100 || cuts[99].Text != "c-r0999: 3 lost" || c.keys > 102 {
		t.Errorf("%d cuts of %d, more %v, with %d keys read: %v", len(cuts), n, more, c.keys, err)
	}
}

// TestAnnotationsAreThoseThatOverlap, as a walk over all finds them, whatever their
// lengths, also after runs and partitions were stored anew.
func TestAnnotationsAreThoseThatOverlap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	s := empty(t)
	var all []model.Annotation
	at := func(max time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(max))) }
	for i := range 300 {
		length := time.Duration(float64(time.Millisecond) * float64(uint64(1)<<rng.UintN(28)) * (1 + rng.Float64()))
		if i%50 == 0 {
			length = 0
		}
		for range 2 { // the first one is replaced
			if i%3 == 0 {
				p := model.PartitionStatus{PartitionSpec: model.PartitionSpec{Name: fmt.Sprint("p", i)}, State: model.PartitionHealed, Created: t0, InForce: t0.Add(at(100 * time.Hour))}
				p.Healed = p.InForce.Add(length)
				if i%60 == 30 {
					p.State, p.Healed = model.PartitionInForce, time.Time{}
				}
				all = append(all[:i], cutOfPartition(&p).Annotation)
				if err := s.PutPartition(p); err != nil {
					t.Fatal(err)
				}
				continue
			}
			r := model.RunSummary{Proof: &model.Proof{CutAt: time.Second, HealAt: time.Second + length}}
			r.Campaign, r.Run, r.Started = "c", fmt.Sprint("r", i), t0.Add(at(100*time.Hour))
			all = append(all[:i], cutOfRun(&r).Annotation)
			if err := s.PutRun(r); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range 200 {
		from := t0.Add(at(100 * time.Hour))
		to := from.Add(at(time.Duration(1+i%7*i) * time.Minute))
		var want []string
		for _, a := range all {
			if !a.From.After(to) && (a.To.IsZero() || !a.To.Before(from)) {
				want = append(want, a.Title+a.Text)
			}
		}
		list, more, err := s.Annotations(from, to, 1000)
		if err != nil || more {
			t.Fatal(more, err)
		}
		if !slices.IsSortedFunc(list, func(a, b model.Annotation) int { return a.From.Compare(b.From) }) {
			t.Error("not by their start")
		}
		var got []string
		for _, a := range list {
			got = append(got, a.Title+a.Text)
		}
		slices.Sort(want)
		slices.Sort(got)
		if !cmp.Equal(got, want) {
			t.Fatal(cmp.Diff(want, got))
		}
	}
}

// TestAPartitionThatFailedLastsNoLonger than what is known of it.
func TestAPartitionThatFailedLastsNoLonger(t *testing.T) {
	s := empty(t)
	p := model.PartitionStatus{PartitionSpec: model.PartitionSpec{Name: "p"}, State: model.PartitionFailed, Created: t0, InForce: t0}
	p.Lapse(t0.Add(time.Minute), "the switch is gone")
	if err := s.PutPartition(p); err != nil {
		t.Fatal(err)
	}
	list, _, err := s.Annotations(t0, t0.Add(time.Hour), 10)
	if err != nil || len(list) != 1 || !list[0].To.Equal(t0.Add(time.Minute)) {
		t.Errorf("%+v, %v", list, err)
	}
	if err := s.DeletePartition("p"); err != nil {
		t.Fatal(err)
	}
	if list, _, err = s.Annotations(t0, t0.Add(time.Hour), 10); err != nil || len(list) != 0 {
		t.Errorf("forgotten, and still %+v, %v", list, err)
	}
}
