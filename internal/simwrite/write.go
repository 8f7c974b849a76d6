package simwrite

import (
	"errors"
	"slices"

	"netsplit/model"
)

// Bug is a mistake in the code, off unless a run asks for it.
type Bug string

// Bugs, and how many crashes each needs.
const (
	// BugWrongExclude, two: the client leaves out the node that reports a failure, not the one that
	// failed (FATE Figure 1b). Once the first node dies as well, nothing is left.
	BugWrongExclude Bug = "wrong-exclude"
	// BugTemporary, one: a node that comes back reports a block that it had not
	// finalized, and the namenode counts it.
	BugTemporary Bug = "temporary-counted"
	// BugUnclean, two: a node whose recovery was interrupted refuses the next one
	// (PreFail §5.2, append).
	BugUnclean Bug = "unclean-recovery"
	// BugSameTarget, two: when two replicas are missing, both copies go to one node.
	BugSameTarget Bug = "same-target"
	// BugGivesUp, three: after two sources died, a copy is never tried again.
	BugGivesUp Bug = "gives-up"
)

// Bugs lists all of them.
func Bugs() []Bug { return []Bug{BugWrongExclude, BugTemporary, BugUnclean, BugSameTarget, BugGivesUp} }

var errNone = errors.New("no datanode is left")

// write is the client's: setup, transfer, close (PreFail Figure 8).
func (w *world) write() error {
	line, err := w.setup()
	if err != nil {
		return err
	}
	for n := range w.o.Packets {
		if line, err = w.stage(line, func(line []model.NodeID) (model.NodeID, bool) { return w.packet(line, n+1) }); err != nil {
			return err
		}
	}
	if line, err = w.stage(line, w.closeBlock); err != nil {
		return err
	}
	for _, d := range w.together(line) {
		if w.send(d, namenode, "nn received") {
			w.reported[d] = true
		}
	}
	w.send(client, namenode, "nn complete")
	return nil
}

// setup makes a pipeline; if a node fails, it begins anew with others (FATE Figure 1c).
func (w *world) setup() ([]model.NodeID, error) {
	var excluded []model.NodeID
	for {
		w.send(client, namenode, "nn allocate")
		line := w.choose(excluded, 3)
		w.send(namenode, client, "nn allocated")
		if len(line) == 0 {
			return nil, errNone
		}
		bad, ok := w.setupOn(line)
		if ok {
			return line, nil
		}
		excluded = append(excluded, bad)
	}
}

// choose picks nodes, one on a rack and the others on another if that is possible.
func (w *world) choose(excluded []model.NodeID, n int) []model.NodeID {
	var out []model.NodeID
	for _, d := range []model.NodeID{"d1", "d3", "d4", "d2", "d5"} {
		if len(out) < n && !slices.Contains(excluded, d) {
			out = append(out, d)
		}
	}
	return out
}

func (w *world) setupOn(line []model.NodeID) (bad model.NodeID, ok bool) {
	from := client
	for _, d := range line {
		if !w.send(from, d, "dn setup") {
			return w.failed(from, d), false
		}
		if !w.file(d, "create blk_*") {
			return d, false
		}
		w.disk[d] = &replica{stamp: w.stamp}
		from = d
	}
	return w.back(line, "dn setup ack")
}

// failed says which of two died when a message between them did not arrive.
func (w *world) failed(from, to model.NodeID) model.NodeID {
	if w.dead[from] {
		return from
	}
	return to
}

// back sends an answer up the pipeline.
func (w *world) back(line []model.NodeID, typ string) (bad model.NodeID, ok bool) {
	for i := len(line) - 1; i >= 0; i-- {
		to := client
		if i > 0 {
			to = line[i-1]
		}
		if !w.send(line[i], to, typ) {
			return w.failed(line[i], to), false
		}
	}
	return "", true
}

// stage does a part of the write. When a node fails, the client goes on with the others
// (FATE Figure 1a).
func (w *world) stage(line []model.NodeID, do func([]model.NodeID) (model.NodeID, bool)) ([]model.NodeID, error) {
	bad, ok := do(line)
	for !ok {
		line = w.without(line, bad)
		if len(line) == 0 {
			return nil, errNone
		}
		if bad, ok = w.agree(line); ok {
			bad, ok = do(line)
		}
	}
	return line, nil
}

func (w *world) without(line []model.NodeID, bad model.NodeID) []model.NodeID {
	i := slices.Index(line, bad)
	if w.has(BugWrongExclude) && i == 2 && w.disk[bad].packets > 0 && !w.disk[bad].finalized {
		w.hit(BugWrongExclude)
		i = 1
	}
	return slices.Delete(slices.Clone(line), i, i+1)
}

// agree has the nodes that are left agree on a length, under a new generation.
func (w *world) agree(line []model.NodeID) (bad model.NodeID, ok bool) {
	primary := line[0]
	if !w.send(client, primary, "dn recover") {
		return primary, false
	}
	least := w.disk[primary].packets
	for _, d := range line {
		least = min(least, w.disk[d].packets)
	}
	w.stamp++
	for _, d := range line {
		if d != primary && (!w.send(primary, d, "dn sync") || w.refuses(d)) {
			return w.failed(primary, d), false
		}
		if d == primary && w.refuses(d) {
			return d, false
		}
		w.disk[d].stuck = true
		if !w.file(d, "truncate blk_*") {
			return d, false
		}
		if d != primary && !w.send(d, primary, "dn synced") {
			return w.failed(d, primary), false
		}
		w.disk[d].packets, w.disk[d].stamp = least, w.stamp
	}
	for _, d := range line {
		w.disk[d].stuck = false
	}
	return primary, w.send(primary, client, "dn recovered")
}

// refuses says that a node is still in a recovery that was not finished.
func (w *world) refuses(d model.NodeID) bool {
	if !w.has(BugUnclean) || !w.disk[d].stuck {
		return false
	}
	w.hit(BugUnclean)
	return true
}

func (w *world) packet(line []model.NodeID, n int) (bad model.NodeID, ok bool) {
	from := client
	for _, d := range line {
		if !w.send(from, d, "dn packet") {
			return w.failed(from, d), false
		}
		if !w.file(d, "write blk_*") {
			return d, false
		}
		w.disk[d].packets = n
		from = d
	}
	return w.back(line, "dn ack")
}

func (w *world) closeBlock(line []model.NodeID) (bad model.NodeID, ok bool) {
	from := client
	for _, d := range line {
		if !w.send(from, d, "dn close") {
			return w.failed(from, d), false
		}
		from = d
	}
	for i := len(line) - 1; i >= 0; i-- {
		if !w.file(line[i], "rename blk_*") {
			return line[i], false
		}
		w.disk[line[i]].packets, w.disk[line[i]].finalized = w.o.Packets, true
		to := client
		if i > 0 {
			to = line[i-1]
		}
		if !w.send(line[i], to, "dn closed") {
			return w.failed(line[i], to), false
		}
	}
	return "", true
}

// couldGoOn says that a node never crashed that the write could have gone on with.
func (w *world) couldGoOn() bool {
	for _, d := range Datanodes() {
		if r := w.disk[d]; r != nil && !w.crashed(d) && (r.packets > 0 || r.stamp > 1) {
			return true
		}
	}
	return false
}

func (w *world) crashed(d model.NodeID) bool {
	return slices.ContainsFunc(w.faults[:w.run.Occurred], func(f model.PointFault) bool { return f.Node == d })
}

// stabilise is what the namenode does in the background: it has lost replicas copied,
// takes back the nodes that crashed, and has what is stale or too much deleted.
func (w *world) stabilise() {
	w.replicate()
	for _, d := range Datanodes() {
		if w.dead[d] {
			w.dead[d] = false
			w.comesBack(d)
		}
	}
	for _, d := range Datanodes() { // of crashes meanwhile
		w.dead[d] = false
	}
	w.replicate()
	w.trim()
	for _, d := range Datanodes() {
		w.dead[d] = false
	}
	w.replicate()
}

func (w *world) comesBack(d model.NodeID) {
	w.reported[d] = false
	r := w.disk[d]
	if !w.send(d, namenode, "nn register") || r == nil || !w.send(d, namenode, "nn report") {
		return
	}
	switch {
	case r.finalized && r.stamp == w.stamp:
		w.reported[d] = true
	case w.has(BugTemporary) && r.packets == w.o.Packets && !r.finalized:
		w.hit(BugTemporary)
		w.reported[d] = true
	default:
		if w.send(namenode, d, "nn invalidate") && w.file(d, "delete blk_*") {
			delete(w.disk, d)
		}
	}
}

// replicate copies the block until three nodes are known to have it.
func (w *world) replicate() {
	booked := model.NodeID("")
	for {
		have := w.counted()
		to := w.target(have)
		if len(have) == 0 || len(have)+w.phantoms >= 3 || w.gaveUp || to == "" {
			return
		}
		if booked != "" && w.has(BugSameTarget) {
			w.hit(BugSameTarget)
			w.phantoms++ // booked for the node that has one already
			return
		}
		src := have[0]
		if w.send(namenode, src, "nn replicate") && w.send(src, to, "dn copy") {
			if w.file(to, "create blk_*") && w.file(to, "write blk_*") && w.file(to, "rename blk_*") {
				w.disk[to] = &replica{packets: w.o.Packets, stamp: w.stamp, finalized: true}
				if w.send(to, namenode, "nn received") {
					w.reported[to], booked = true, to
				}
			}
		} else if w.dead[src] {
			if w.sources++; w.sources == 2 && w.has(BugGivesUp) {
				w.hit(BugGivesUp)
				w.gaveUp = true
			}
		}
	}
}

// trim has replicas deleted that are too many, those of the first nodes.
func (w *world) trim() {
	for have := w.counted(); len(have) > 3; have = have[1:] {
		w.reported[have[0]] = false
		if w.send(namenode, have[0], "nn invalidate") && w.file(have[0], "delete blk_*") {
			delete(w.disk, have[0])
		}
	}
}

// counted lists the live nodes that the namenode thinks have the block.
func (w *world) counted() []model.NodeID {
	var out []model.NodeID
	for _, d := range Datanodes() {
		if w.reported[d] && !w.dead[d] {
			out = append(out, d)
		}
	}
	return out
}

// target is a live node without the block, of the rack with fewer replicas; "" if there is none.
func (w *world) target(have []model.NodeID) model.NodeID {
	on := map[int]int{}
	for _, d := range have {
		on[racks[d]]++
	}
	best := model.NodeID("")
	for _, d := range Datanodes() {
		if !w.dead[d] && !slices.Contains(have, d) && (best == "" || on[racks[d]] < on[racks[best]]) {
			best = d
		}
	}
	return best
}
