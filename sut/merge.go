package sut

import (
	"go.yaml.in/yaml/v3"
)

// merge puts in the place of a mapping's merge keys ("<<: *name", or a list of
// names) what they stand for, so that what is checked is what is decoded. A key
// that the mapping has itself wins, and among the merged the first
// (yaml.org/type/merge). Merged keys keep the lines at which they stand.
func (s *schema) merge(n *yaml.Node, path string) {
	if s.merging[n] {
		s.wrongType(n, path, "a mapping that does not merge itself")
		return
	}
	s.merging[n] = true
	defer delete(s.merging, n)
	own, from := split(n)
	if len(own) == len(n.Content) {
		return
	}
	has := map[string]bool{}
	for i := 0; i < len(own); i += 2 {
		has[own[i].Value] = true
	}
	for _, m := range from {
		if m.Kind != yaml.MappingNode {
			s.wrongType(m, join(path, "<<"), "a mapping, or a list of mappings")
			continue
		}
		s.merge(m, path)
		pairs, _ := split(m)
		for i := 0; i < len(pairs); i += 2 {
			if k := pairs[i].Value; !has[k] {
				has[k] = true
				own = append(own, pairs[i], pairs[i+1])
			}
		}
	}
	n.Content = own
}

// split lists a mapping's keys and values by turns, and what it merges.
func split(n *yaml.Node) (own, from []*yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Tag != "!!merge" {
			own = append(own, k, v)
			continue
		}
		list := []*yaml.Node{v}
		if followed(v).Kind == yaml.SequenceNode {
			list = followed(v).Content
		}
		for _, m := range list {
			from = append(from, followed(m))
		}
	}
	return own, from
}

func followed(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}
