// Package cutbook keeps which partitions are in force, and for how long their links were cut.
package cutbook

import (
	"maps"
	"slices"
	"strings"
	"time"

	"netsplit/model"
)

// Book is not safe for concurrent use.
type Book struct {
	links   map[model.Link]*link
	inForce map[string][]partition // by their links, in the order of their beginning
}

type partition struct {
	shape model.Shape
	at    time.Time
}

// link is one directed link. Two labs may have hosts of the same names, so several partitions may
// cut it at once: it counts as cut while any does.
type link struct {
	cut    time.Duration // by the partitions that ended
	since  time.Time     // of the first one now in force
	active int
}

// New has no partition and no link.
func New() *Book {
	return &Book{links: map[model.Link]*link{}, inForce: map[string][]partition{}}
}

// Know adds links, as never cut.
func (b *Book) Know(links ...model.Link) {
	for _, l := range links {
		b.link(l)
	}
}

func (b *Book) link(l model.Link) *link {
	if b.links[l] == nil {
		b.links[l] = &link{}
	}
	return b.links[l]
}

// Start puts a partition in force that cuts these links.
func (b *Book) Start(shape model.Shape, links []model.Link, at time.Time) {
	k := key(links)
	b.inForce[k] = append(b.inForce[k], partition{shape, at})
	for _, l := range links {
		c := b.link(l)
		if c.active == 0 {
			c.since = at
		}
		c.active++
	}
}

// End ends the partition with these links that was started first. Where there is none, nothing
// happens.
func (b *Book) End(links []model.Link, at time.Time) {
	k := key(links)
	started := b.inForce[k]
	if len(started) == 0 {
		return
	}
	if b.inForce[k] = started[1:]; len(b.inForce[k]) == 0 {
		delete(b.inForce, k)
	}
	for _, l := range links {
		c := b.link(l)
		if c.active--; c.active == 0 {
			c.cut += at.Sub(c.since)
		}
	}
}

func key(links []model.Link) string {
	var b strings.Builder
	for _, l := range slices.SortedFunc(slices.Values(links), model.Link.Compare) {
		b.WriteString(l.String())
		b.WriteByte(0)
	}
	return b.String()
}

// Add adds time for which a link was cut elsewhere.
func (b *Book) Add(l model.Link, cut time.Duration) { b.link(l).cut += cut }

// Links are those that are known, in order.
func (b *Book) Links() []model.Link {
	return slices.SortedFunc(maps.Keys(b.links), model.Link.Compare)
}

// Cut is for how long a link has been cut until now, by partitions that are still in force, too.
func (b *Book) Cut(l model.Link, now time.Time) time.Duration {
	c := b.links[l]
	if c == nil {
		return 0
	}
	if c.active > 0 {
		return c.cut + now.Sub(c.since)
	}
	return c.cut
}

// InForce is how many partitions of each shape are in force.
func (b *Book) InForce() map[model.Shape]int {
	out := map[model.Shape]int{}
	for _, started := range b.inForce {
		for _, p := range started {
			out[p.shape]++
		}
	}
	return out
}

// Oldest is for how long the partition in force that began first has been so; 0: there is none.
func (b *Book) Oldest(now time.Time) (age time.Duration) {
	for _, started := range b.inForce {
		age = max(age, now.Sub(started[0].at))
	}
	return age
}
