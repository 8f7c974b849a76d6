package judge

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"netsplit/explorer/check"
	"netsplit/inference/packet"
	"netsplit/inference/pcap"
	"netsplit/inference/stream"
	"netsplit/internal/regular"
	"netsplit/model"
)

// keyLeast is how long a key must be to be looked for in packets: shorter ones
// stand there by chance.
const keyLeast = 3

// crossed finds, in the packets of a run, the keys that its final reads lack
// and that one node sent to another afterwards: the system was still bringing
// them. It reads until the second look, whose own questions name keys as well.
func (f *runFiles) crossed(path string, rec *check.Record) ([]check.Crossed, error) {
	missing := check.Missing(rec)
	from, to := f.lookedUntil()
	if len(missing) == 0 || from == 0 {
		return nil, nil
	}
	in, err := regular.Open(filepath.Dir(path), filepath.Base(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer in.Close()
	keys := newKeys(missing, rec)
	if len(keys) == 0 {
		return nil, nil
	}
	node := map[string]model.NodeID{}
	for _, h := range f.testbed.Hosts {
		if slices.Contains(f.target.Nodes, h.Name) {
			node[h.IP.String()] = h.Name
		}
	}
	rd, err := pcap.NewReader(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var out []check.Crossed
	decoder, table := packet.NewDecoder(nil), stream.NewTable(nil)
	tails := map[*stream.Conn]*[2][]byte{}
	for {
		frame, err := rd.Next()
		at := frame.At + rd.Start().Sub(f.meta.Started) // of the run; a capture counts from its first frame
		if errors.Is(err, io.EOF) || errors.Is(err, pcap.ErrTruncated) || err == nil && at >= to {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		p := decoder.Decode(frame)
		for _, e := range table.Step(&p) {
			if e.Kind != stream.Data || at < from {
				continue
			}
			l := model.Link{Src: node[e.Conn.Addr[e.Dir].Addr().String()], Dst: node[e.Conn.Addr[1-e.Dir].Addr().String()]}
			if l.Src == "" || l.Dst == "" {
				continue
			}
			if tails[e.Conn] == nil {
				tails[e.Conn] = new([2][]byte)
			}
			tail := &tails[e.Conn][e.Dir]
			text := append(*tail, e.Bytes...)
			for i := range keys {
				if !keys[i].found && keys[i].in(text) {
					keys[i].found = true
					out = append(out, check.Crossed{Key: keys[i].name, At: at, Link: l})
				}
			}
			*tail = slices.Clone(text[max(0, len(text)-tailBytes):])
		}
	}
}

// tailBytes of a segment are read with the next one: a key may lie across.
const tailBytes = 256

// lookedUntil is when the first final reads were over and when the second began;
// from is 0 where there were none.
func (f *runFiles) lookedUntil() (from, to time.Duration) {
	to = 1<<63 - 1
	if looks := f.evidence.Looks; len(looks) > 0 {
		from = looks[0].To
		if len(looks) > 1 {
			to = looks[1].From
		}
		return from, to
	}
	for _, e := range f.history { // of an older version
		if strings.HasPrefix(e.F, "final-") {
			from = max(from, e.Time)
		}
	}
	return from, to
}

// key is a key to look for, with those that hold it: k1 is in k12.
type key struct {
	name   string
	longer [][]byte
	found  bool
}

func newKeys(missing []string, rec *check.Record) []key {
	all := map[string]bool{}
	for _, e := range rec.History {
		all[e.Key] = true
	}
	var out []key
	for _, m := range missing {
		if len(m) < keyLeast || len(m) > tailBytes {
			continue
		}
		k := key{name: m}
		for a := range all {
			if a != m && strings.Contains(a, m) {
				k.longer = append(k.longer, []byte(a))
			}
		}
		out = append(out, k)
	}
	return out
}

// in says whether the key stands in a text by itself, not within a longer one.
func (k *key) in(text []byte) bool {
	count := bytes.Count(text, []byte(k.name))
	if count == 0 {
		return false
	}
	for _, l := range k.longer {
		count -= bytes.Count(text, l) * bytes.Count(l, []byte(k.name))
	}
	return count > 0
}
