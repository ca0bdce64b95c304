package data

import "slices"

// Together brings together what is alike, in the order in which it came.
func Together[T any](all []T, alike func(a, b T) bool) (groups [][]T) {
	for _, it := range all {
		at := slices.IndexFunc(groups, func(group []T) bool { return alike(group[0], it) })
		if at < 0 {
			at = len(groups)
			groups = append(groups, nil)
		}
		groups[at] = append(groups[at], it)
	}
	return groups
}

// Place is where something stands in an order; what is not in it comes after the last.
func Place(order []string, it string) int {
	if i := slices.Index(order, it); i >= 0 {
		return i
	}
	return len(order)
}

// Distinct is what all of them have of something, each once, in the order in which it came.
func Distinct[T any, V comparable](all []T, of func(T) V) (values []V) {
	for _, it := range all {
		if v := of(it); !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	return values
}
