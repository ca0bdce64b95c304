package workload

import "testing"

func TestAReferenceIsFromWhereItIsWritten(t *testing.T) {
	for _, c := range []struct{ folder, reference, want string }{
		{"/srv/w", "./layout", "/srv/w/layout"},
		{"/srv/w", "../layout", "/srv/layout"},
		{"w", "./layout", "./w/layout"},
		{".", "./layout", "./layout"},
		{"w", "/srv/layout", "/srv/layout"},
		{"w", "busybox:1", "busybox:1"},
	} {
		i := Image{Reference: c.reference}
		if i.WrittenIn(c.folder); i.Reference != c.want {
			t.Errorf("%s in %s: %s, want %s", c.reference, c.folder, i.Reference, c.want)
		}
	}
}
