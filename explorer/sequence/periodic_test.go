package sequence_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"netsplit/explorer/sequence"
	"netsplit/model"
)

// messageList reads the messages of a clean run that was made with netsplit: Redis 7.0.15
// with Sentinels, and the gossip target of e2e. Times are in microseconds.
func messageList(t *testing.T, name string) sequence.Clean {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name+".tsv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var c sequence.Clean
	us := func(s string) time.Duration {
		var n int64
		fmt.Sscan(s, &n)
		return time.Duration(n) * time.Microsecond
	}
	s := bufio.NewScanner(f)
	for s.Scan() {
		v := strings.Split(s.Text(), "\t")
		if v[0] == "workload" {
			c.Start, c.Stop, c.Ended = us(v[1]), us(v[2]), us(v[3])
			continue
		}
		m := model.Message{Num: uint64(len(c.Messages) + 1), At: us(v[0]), From: model.NodeID(v[1]), To: model.NodeID(v[2]), Type: v[5]}
		fmt.Sscan(v[3], &m.FromPort)
		fmt.Sscan(v[4], &m.ToPort)
		c.Messages = append(c.Messages, m)
	}
	if s.Err() != nil || len(c.Messages) == 0 {
		t.Fatalf("%s: %d messages, %v", name, len(c.Messages), s.Err())
	}
	return c
}

func types(ps []sequence.Period) []string {
	var out []string
	for _, p := range ps {
		out = append(out, p.Type)
	}
	return out
}

// What Sentinels do by timers, as the documentation has it: PING every second, hello
// every two; replicas acknowledge every second. SET is the workload's. Two timers are
// not recognised: INFO every ten seconds, since a run of 25 has too few of them, and the
// pushes of hello, since three Sentinels publish at different moments.
func TestPeriodicInRedis(t *testing.T) {
	ps := sequence.Periodic([]sequence.Clean{messageList(t, "redis-sentinel-1"), messageList(t, "redis-sentinel-2")})
	got := types(ps)
	for typ, every := range map[string]time.Duration{
		"resp PING": time.Second, "resp reply PING": time.Second, "resp PUBLISH __sentinel__:hello": 2 * time.Second,
		"resp REPLCONF ACK": time.Second,
	} {
		i := slices.Index(got, typ)
		if i < 0 {
			t.Errorf("%s is not periodic: %v are", typ, got)
		} else if p := ps[i].Every; p < every*8/10 || p > every*12/10 {
			t.Errorf("%s comes every %v, want %v", typ, p, every)
		}
	}
	for _, typ := range []string{"resp SET", "resp reply SET", "resp repl SET", "tcp fin", "resp SUBSCRIBE __sentinel__:hello", "resp CLIENT SETNAME", "resp ROLE"} {
		if slices.Contains(got, typ) {
			t.Errorf("%s is periodic", typ)
		}
	}
}

func TestPeriodicInGossip(t *testing.T) {
	if got := types(sequence.Periodic([]sequence.Clean{messageList(t, "gossip")})); !slices.Contains(got, "text GOSSIP") {
		t.Errorf("gossip is not periodic: %v are", got)
	}
}

// series sends messages of a type from n1 to n2 at these times.
func series(c *sequence.Clean, typ string, at ...time.Duration) {
	for _, a := range at {
		c.Messages = append(c.Messages, model.Message{From: "n1", To: "n2", FromPort: 40000, ToPort: 7000, Type: typ, At: a})
	}
	slices.SortStableFunc(c.Messages, func(a, b model.Message) int { return int(a.At - b.At) })
}

func every(from, to, period, jitter time.Duration, rnd *rand.Rand) []time.Duration {
	var out []time.Duration
	for at := from; at < to; at += period {
		out = append(out, at+time.Duration(rnd.Int64N(int64(jitter)+1)))
	}
	return out
}

func TestPeriodicInSeries(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	const s, ms = time.Second, time.Millisecond
	var poisson []time.Duration
	for at := time.Duration(0); at < 30*s; at += time.Duration(rnd.ExpFloat64() * float64(s)) {
		poisson = append(poisson, at)
	}
	twice := every(0, 30*s, 3*s, 50*ms, rnd) // as a request that is sent again at once
	for _, at := range slices.Clone(twice) {
		twice = append(twice, at+2*ms)
	}
	var bursts []time.Duration // of a workload
	for at := 1700 * ms; at < 28500*ms; at += 1070 * ms {
		for i := range 5 {
			bursts = append(bursts, at+time.Duration(i)*ms)
		}
	}
	for name, c := range map[string]struct {
		at   []time.Duration
		idle time.Duration // before the workload and after it
		want bool
	}{
		"a heartbeat":       {every(0, 30*s, s, 100*ms, rnd), 10 * s, true},
		"bursts by a timer": {twice, 10 * s, true},
		"a heartbeat, and no idle time to see it in":          {every(0, 30*s, s, 100*ms, rnd), 0, false},
		"a workload in bursts, and idle time for one of them": {bursts, 1500 * ms, false},
		"a steady workload":                            {every(10*s, 20*s, 100*ms, 10*ms, rnd), 10 * s, false},
		"at random all along":                          {poisson, 10 * s, false},
		"at the start only":                            {every(0, 2*s, 200*ms, 10*ms, rnd), 10 * s, false},
		"too seldom to tell":                           {[]time.Duration{0, 15 * s, 29 * s}, 10 * s, false},
		"a heartbeat that a workload silences for 9 s": {slices.Concat(every(0, 10*s, s, 10*ms, rnd), every(19*s, 30*s, s, 10*ms, rnd)), 10 * s, false},
	} {
		r := sequence.Clean{Start: c.idle, Stop: 30*s - c.idle, Ended: 30 * s}
		series(&r, "x", c.at...)
		if got := len(sequence.Periodic([]sequence.Clean{r})) == 1; got != c.want {
			t.Errorf("%s: periodic %v, want %v", name, got, c.want)
		}
	}
}

// Two long gaps in each run may be two restarts of something.
func TestAFewGapsShowNoPeriod(t *testing.T) {
	var runs []sequence.Clean
	for range 3 {
		r := sequence.Clean{Start: 5 * time.Second, Stop: 15 * time.Second, Ended: 25 * time.Second}
		series(&r, "restart", 2*time.Second, 12*time.Second, 22*time.Second)
		runs = append(runs, r)
	}
	if got := sequence.Periodic(runs); len(got) != 0 {
		t.Errorf("periodic: %v", got)
	}
}
