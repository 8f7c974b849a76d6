package model

import "slices"

// Together groups items that have one key, in the order of the first of each.
func Together[T any](items []T, key func(T) string) [][]T {
	var out [][]T
	for _, it := range items {
		i := slices.IndexFunc(out, func(group []T) bool { return key(group[0]) == key(it) })
		if i < 0 {
			out = append(out, []T{it})
			continue
		}
		out[i] = append(out[i], it)
	}
	return out
}
