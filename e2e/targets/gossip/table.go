package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Statuses of a member.
const (
	statusNormal = "NORMAL"
	statusLeft   = "LEFT"
)

// entry is what is known of a member: its status, and when it took it on, in
// milliseconds since 1970. That time is the version: the newer one wins.
type entry struct {
	status  string
	version int64
}

// table is what one node knows of all members.
type table struct {
	self    string
	forget  time.Duration // from a LEFT to its being forgotten
	bug     bool          // forget the version too
	entries map[string]entry
}

// expired says that a member left long enough ago to be forgotten. All nodes
// reckon from the member's own version, so all forget it at once. A node never
// forgets itself.
func (t *table) expired(id string, now int64) bool {
	e := t.entries[id]
	return id != t.self && e.status == statusLeft && now >= e.version+t.forget.Milliseconds()
}

// expire is the bug: whoever left is forgotten altogether. Without it the
// entry stays as a tombstone.
func (t *table) expire(now int64) {
	if !t.bug {
		return
	}
	for id := range t.entries {
		if t.expired(id, now) {
			delete(t.entries, id)
		}
	}
}

func (t *table) merge(digest map[string]entry, now int64) {
	t.expire(now)
	for id, e := range digest {
		if have, known := t.entries[id]; id != t.self && (!known || e.version > have.version) {
			t.entries[id] = e
		}
	}
	t.expire(now)
}

// digest is the table as text: "n1=NORMAL:7 n2=LEFT:9 ~n3:4", sorted. A
// tombstone, ~n3, has no status any more, only the version that is remembered.
func (t *table) digest(now int64) string {
	var w []string
	for _, id := range slices.Sorted(maps.Keys(t.entries)) {
		if e := t.entries[id]; t.expired(id, now) {
			w = append(w, fmt.Sprintf("~%s:%d", id, e.version))
		} else {
			w = append(w, fmt.Sprintf("%s=%s:%d", id, e.status, e.version))
		}
	}
	return strings.Join(w, " ")
}

// view is what an administrator is shown: "n1=NORMAL n2=LEFT", sorted, without
// tombstones.
func (t *table) view(now int64) string {
	var w []string
	for _, id := range slices.Sorted(maps.Keys(t.entries)) {
		if !t.expired(id, now) {
			w = append(w, id+"="+t.entries[id].status)
		}
	}
	return strings.Join(w, " ")
}

func parseDigest(words []string) (map[string]entry, error) {
	out := map[string]entry{}
	for _, w := range words {
		name, version, ok := strings.Cut(w, ":")
		v, err := strconv.ParseInt(version, 10, 64)
		if !ok || err != nil || v < 0 {
			return nil, fmt.Errorf("%q: want node=STATUS:version or ~node:version", w)
		}
		id, status, has := strings.Cut(name, "=")
		if tomb, is := strings.CutPrefix(name, "~"); is {
			id, status, has = tomb, statusLeft, true
		}
		if !has || id == "" || status != statusNormal && status != statusLeft {
			return nil, fmt.Errorf("%q: want node=NORMAL:version, node=LEFT:version or ~node:version", w)
		}
		out[id] = entry{status, v}
	}
	return out, nil
}
