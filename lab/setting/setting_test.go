//go:build linux

package setting

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/lab/journal"
	"tare/notebook"
)

// kernel is a tree with the kernel's files as they may be. A real one shows the written value among the others; this one has only that value.
func kernel(t *testing.T, files map[string]string) Tree {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Tree(root)
}

// says is what the files say, in this order: which pages, folios of 64 KiB, random addresses.
func (t Tree) says(test *testing.T) string {
	test.Helper()
	var all []string
	for _, name := range []string{pages + "enabled", pages + "hugepages-64kB/enabled", addresses} {
		b, err := os.ReadFile(filepath.Join(string(t), name))
		if err != nil {
			test.Fatal(err)
		}
		all = append(all, strings.TrimSpace(string(b)))
	}
	return strings.Join(all, " ")
}

// of is a treatment with these values of the factors.
func of(hugePages, addresses string) notebook.Treatment {
	return notebook.Treatment{Factors: map[string]string{notebook.FactorHugePages.Name: hugePages, notebook.FactorAddresses.Name: addresses}}
}

// Each treatment has what it names, and the host is as it was when the changes are undone.
func TestTheHostIsAsItWas(t *testing.T) {
	const before = "madvise inherit 2"
	for _, c := range []struct{ hugePages, addresses, want string }{
		{"", "", before},
		{notebook.HugePagesHost, notebook.AddressesRandom, before},
		{notebook.HugePagesNever, notebook.AddressesFixed, "madvise inherit 0"},
		{notebook.HugePagesMadvise, notebook.AddressesFixed, "madvise inherit 0"},
		{notebook.HugePagesAlways, notebook.AddressesRandom, "always inherit 2"},
		{notebook.HugePagesLarge, notebook.AddressesFixed, "never always 0"},
	} {
		tree := kernel(t, map[string]string{pages + "enabled": "madvise", pages + "hugepages-64kB/enabled": "inherit", addresses: "2"})
		j, err := journal.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		changes, err := tree.Set(t.Context(), j, For(of(c.hugePages, c.addresses)))
		if err != nil {
			t.Fatal(err)
		}
		if got := tree.says(t); got != c.want {
			t.Errorf("%+v: the files say %q", c, got)
		}
		if changes != nil {
			if err := changes.Undo(t.Context()); err != nil {
				t.Fatal(err)
			}
		} else if c.want != before {
			t.Errorf("%+v: there is nothing to undo", c)
		}
		if got := tree.says(t); got != before {
			t.Errorf("%+v: the files say %q afterwards, want %q", c, got, before)
		}
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The next run puts back what a run that died has left.
func TestTheHostIsAsItWasAfterARunThatDied(t *testing.T) {
	tree := kernel(t, map[string]string{pages + "enabled": "madvise", pages + "hugepages-64kB/enabled": "inherit", addresses: "1"})
	state := t.TempDir()
	j, err := journal.Open(state)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tree.Set(t.Context(), j, For(of(notebook.HugePagesLarge, notebook.AddressesRandom))); err != nil {
		t.Fatal(err)
	}
	if got := tree.says(t); got != "never always 2" {
		t.Errorf("the files say %q", got)
	}
	if err := j.Close(); err == nil { // the run dies
		t.Error("the journal is closed without a word, and a change is not undone")
	}
	if _, err := journal.Recover(t.Context(), state, tree.Undo()); err != nil {
		t.Fatal(err)
	}
	if got := tree.says(t); got != "madvise inherit 1" {
		t.Errorf("the files say %q", got)
	}
}

// Nothing but the kernel's files is written, whatever a journal says, and what the kernel does not have is named.
func TestNothingElseIsWritten(t *testing.T) {
	tree := kernel(t, map[string]string{pages + "enabled": "madvise", addresses: "2"})
	other := filepath.Join(t.TempDir(), "other")
	if err := tree.putBack(t.Context(), journal.Entry{Kind: Kind, Target: other, Detail: map[string]string{detailFrom: "x"}}); err == nil {
		t.Error("another file was taken for the kernel's")
	}
	if err := tree.Supports(For(of(notebook.HugePagesLarge, ""))); err == nil || !strings.Contains(err.Error(), "hugepages-64kB") {
		t.Errorf("%v, want what is missing", err)
	}
	for _, value := range []string{notebook.HugePagesAlways, notebook.HugePagesMadvise, notebook.HugePagesNever, ""} {
		if err := tree.Supports(For(of(value, notebook.AddressesFixed))); err != nil {
			t.Errorf("%q: %v", value, err)
		}
	}
}

// The limit that many whole systems meet is raised and put back; a host that allows more keeps what it has.
func TestForMany(t *testing.T) {
	for before, raised := range map[string]bool{"128": true, "8192": false, "1048576": false} {
		tree := kernel(t, map[string]string{inotify.Path: before})
		j, err := journal.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		files, err := tree.ForMany()
		if err != nil || len(files) > 0 != raised {
			t.Fatalf("%s: %v, %v", before, files, err)
		}
		changes, err := tree.Set(t.Context(), j, files)
		if err != nil {
			t.Fatal(err)
		}
		if changes == nil {
			continue
		}
		says := func() string {
			b, err := os.ReadFile(tree.path(inotify))
			if err != nil {
				t.Fatal(err)
			}
			return strings.TrimSpace(string(b))
		}
		if says() != "8192" {
			t.Errorf("%s becomes %s", before, says())
		}
		if err := changes.Undo(t.Context()); err != nil || says() != before {
			t.Errorf("%s is %s afterwards, %v", before, says(), err)
		}
	}
	if _, err := kernel(t, nil).ForMany(); err == nil {
		t.Error("a kernel without inotify: want an error")
	}
	if _, err := kernel(t, map[string]string{inotify.Path: "many"}).ForMany(); err == nil {
		t.Error("a limit that is not a number: want an error")
	}
}
