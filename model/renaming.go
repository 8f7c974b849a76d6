package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Renaming gives nodes the names of others, one to one: what is said of the one is
// then said of the other. Nodes that it does not list keep theirs.
type Renaming map[NodeID]NodeID

// Node is a node under its new name.
func (r Renaming) Node(n NodeID) NodeID {
	if m, ok := r[n]; ok {
		return m
	}
	return n
}

// String is "n2 for n1, n1 for n2".
func (r Renaming) String() string {
	var out []string
	for _, n := range slices.Sorted(maps.Keys(r)) {
		out = append(out, fmt.Sprintf("%s for %s", r[n], n))
	}
	return strings.Join(out, ", ")
}
