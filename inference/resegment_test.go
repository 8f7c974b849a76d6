package inference

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netsplit/internal/resegment"
	"netsplit/model"
)

// TestSegmentationChangesNoMessage cuts the captures anew: what comes out is
// the same, message by message, whatever the dissector.
func TestSegmentationChangesNoMessage(t *testing.T) {
	wrap := uint32(0xffffff80)
	options := []resegment.Options{
		{MaxSegment: 1},
		{MaxSegment: 1460},
		{MaxSegment: 200, Window: 6},
		{MaxSegment: 40, Window: 30, Again: 0.2},
		{MaxSegment: 700, Window: 10, Again: 0.3, ISN: &wrap},
	}
	for _, c := range captures {
		frames := c.frames(t)
		for _, dissector := range []string{"resp", "text", "fallback"} {
			want := byStream(read(c.pipeline(t, dissector), frames))
			for i, o := range options {
				if o.MaxSegment == 1 && (dissector != "resp" || testing.Short()) {
					continue // the longest one, once per capture
				}
				t.Run(fmt.Sprintf("%s/%s/%d", c.path[9:], dissector, i), func(t *testing.T) {
					cut, err := resegment.Frames(frames, rand.New(rand.NewPCG(uint64(i), 7)), o)
					if err != nil {
						t.Fatal(err)
					}
					if len(cut) == len(frames) {
						t.Errorf("%d frames as before: nothing was cut", len(cut))
					}
					p := c.pipeline(t, dissector)
					var got []model.Message
					again := 0
					for _, f := range cut {
						s := p.Read(f)
						got = append(got, s.New...)
						again += len(s.Again)
						for _, n := range s.Notes {
							t.Errorf("note: %s", n)
						}
					}
					got = append(got, p.Flush(0).New...)
					if diff := cmp.Diff(want, byStream(got)); diff != "" {
						t.Fatalf("messages (-recorded +cut anew):\n%.4000s", diff)
					}
					if (again > 0) != (o.Again > 0) {
						t.Errorf("%d messages came again with a share of %v sent twice", again, o.Again)
					}
				})
			}
		}
	}
}

// TestSameFramesSameSteps: what comes out is a function of the frames.
func TestSameFramesSameSteps(t *testing.T) {
	c := captures[0]
	frames := c.frames(t)
	log := func() (out []string) {
		p := c.pipeline(t, "resp")
		for _, f := range frames {
			s := p.Read(f)
			out = append(out, fmt.Sprint(s.New, s.Again, s.Observations, s.Notes, p.Connections()))
		}
		return append(out, fmt.Sprint(p.Flush(0).New))
	}
	if diff := cmp.Diff(log(), log()); diff != "" {
		t.Fatalf("two readings differ:\n%.2000s", diff)
	}
}
