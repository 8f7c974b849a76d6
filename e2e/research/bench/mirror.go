package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"netsplit/inference/tap"
	"netsplit/testbed/proc"
)

// mirrorCost measures TCP throughput with and without the mirror tap, in turn,
// and what the reader of the mirror port missed of what the hosts received.
func mirrorCost(ctx context.Context, b *ourTestbed, pairs int, each time.Duration, say func(string, ...any)) ([]row, error) {
	if err := b.daemon(ctx, hostB, "iperf3", "-s"); err != nil {
		return nil, err
	}
	m := b.testbed.Mirrors[0]
	r, err := tap.Open(m.Interface, m.Netns)
	if err != nil {
		return nil, err
	}
	var frames atomic.Int64
	rctx, stop := context.WithCancel(ctx)
	read := make(chan error, 1)
	go func() { read <- r.Read(rctx, func(time.Time, []byte) { frames.Add(1) }) }()
	defer func() { stop(); <-read; r.Close() }()

	var on, off []float64
	var seen, missed int64
	retransmits := map[bool]int{}
	for i := range pairs {
		for _, mirrored := range []bool{i%2 == 0, i%2 != 0} {
			tapped := thePair
			if !mirrored {
				tapped = nil
			}
			if err := b.fabric.SetTaps(ctx, nil, tapped); err != nil {
				return nil, err
			}
			time.Sleep(600 * time.Millisecond) // until cached flows follow the rules
			hadRead := frames.Load()
			had, err := b.received()
			if err != nil {
				return nil, err
			}
			got, again, err := b.iperf(ctx, each)
			if err != nil {
				return nil, err
			}
			retransmits[mirrored] += again
			time.Sleep(300 * time.Millisecond) // for the reader's last batch
			if !mirrored {
				off = append(off, got)
				continue
			}
			on = append(on, got)
			have, err := b.received()
			if err != nil {
				return nil, err
			}
			seen += frames.Load() - hadRead
			missed += int64(have-had) - (frames.Load() - hadRead)
		}
		say("mirror pair %d/%d: %.0f Mbit/s with, %.0f without", i+1, pairs, on[i], off[i])
	}
	if err := b.fabric.SetTaps(ctx, nil, nil); err != nil {
		return nil, err
	}
	stats, err := r.Stats()
	if err != nil {
		return nil, err
	}
	return []row{
		{what: "mirror, iperf3 Mbit/s with the mirror beside without", ours: spreadOf(on).text("%.0f"), beside: spreadOf(off).text("%.0f"),
			ratio: ratioText(on, off), goal: "at least 0.9", met: atLeast(on, off, .9)},
		{what: "mirror, packets missed of those the hosts received", ours: fmt.Sprintf("%d of %d (kernel dropped %d)", missed, seen+missed, stats.Dropped),
			beside: fmt.Sprintf("%d retransmissions with, %d without", retransmits[true], retransmits[false]),
			goal:   "0", met: is(missed == 0 && stats.Dropped == 0 && seen > 0)},
	}, nil
}

// received is how many frames both hosts received so far.
func (b *rig) received() (uint64, error) {
	var n uint64
	for _, l := range b.links {
		got, _, err := l.packets()
		if err != nil {
			return 0, err
		}
		n += got
	}
	return n, nil
}

// iperf gives the TCP throughput from a to b in Mbit/s, and the segments sent
// again.
func (b *rig) iperf(ctx context.Context, each time.Duration) (float64, int, error) {
	argv := append(append([]string{}, b.host(hostA).Exec...), "iperf3", "-J", "-t", fmt.Sprint(int(each.Seconds())), "-c", b.host(hostB).IP.String())
	var text string
	var err error
	for range 5 { // the server may not listen yet, or be busy with the last client
		if text, err = proc.Output(ctx, argv, each+20*time.Second); err == nil || ctx.Err() != nil {
			break
		}
		time.Sleep(300 * time.Millisecond)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("iperf3: %w", err)
	}
	var out struct {
		End struct {
			Sent struct {
				Retransmits int `json:"retransmits"`
			} `json:"sum_sent"`
			Received struct {
				BitsPerSecond float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		} `json:"end"`
	}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		return 0, 0, fmt.Errorf("iperf3: %w", err)
	}
	if out.End.Received.BitsPerSecond == 0 {
		return 0, 0, fmt.Errorf("iperf3: nothing was received: %.300s", text)
	}
	return out.End.Received.BitsPerSecond / 1e6, out.End.Sent.Retransmits, nil
}
