//go:build linux

package fleet

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/notebook"
	"tare/notebook/notebooktest"
)

// What is packed comes out the same, and what is damaged, of another host or hostile leaves what is there.
func TestPacked(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	night := notebooktest.Night(1).Add("bm 1/1GB", 1)
	if err := night.WriteTo(notebook.NodeResults(from, "n1")); err != nil {
		t.Fatal(err)
	}
	if err := notebook.WriteTask(from, "n1", notebook.FleetTask{State: notebook.TaskDone}); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(notebook.NodeDir(from, "n1"), "link")); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Pack(&b, from, "n1"); err != nil {
		t.Fatal(err)
	}
	whole := b.Bytes()
	for range 2 { // the second takes the place of the first
		if err := Unpack(bytes.NewReader(whole), to, "n1"); err != nil {
			t.Fatal(err)
		}
	}
	if task, said, err := notebook.ReadTask(to, "n1"); err != nil || !said || task.State != notebook.TaskDone {
		t.Errorf("%+v, %v, %v", task, said, err)
	}
	want, err := notebook.Read(notebook.NodeResults(from, "n1"))
	if err != nil {
		t.Fatal(err)
	}
	kept := func(what string) {
		t.Helper()
		if got, err := notebook.Read(notebook.NodeResults(to, "n1")); err != nil || len(got.Guests) != len(want.Guests) {
			t.Errorf("after %s: %v", what, err)
		}
		if all, err := os.ReadDir(filepath.Join(to, "nodes")); err != nil || len(all) != 1 {
			t.Errorf("after %s the nodes are %v, %v", what, all, err)
		}
	}
	kept("two archives")
	for _, at := range []int{0, 1000, len(whole) / 2, len(whole) - 3*512} { // the last is between two members
		if err := Unpack(bytes.NewReader(whole[:at]), to, "n1"); err == nil {
			t.Errorf("an archive of %d of %d bytes is taken", at, len(whole))
		}
		kept("a cut archive")
	}
	night.Host.ID = "m-0000000000000000"
	other := t.TempDir()
	if err := night.WriteTo(notebook.NodeResults(other, "n1")); err != nil {
		t.Fatal(err)
	}
	b.Reset()
	if err := Pack(&b, other, "n1"); err != nil {
		t.Fatal(err)
	}
	if err := Unpack(&b, to, "n1"); err == nil || !strings.Contains(err.Error(), "another machine has taken the node's name") {
		t.Errorf("results of another host: %v", err)
	}
	kept("another host's results")
	if err := os.Rename(filepath.Join(to, "nodes", "n1"), filepath.Join(to, "nodes", ".n1.old")); err != nil { // killed between the renames
		t.Fatal(err)
	}
	if err := Unpack(bytes.NewReader(whole[:100]), to, "n1"); err == nil {
		t.Error("a cut archive is taken")
	}
	kept("a kill between the renames")
	night.Host, night.Rounds = want.Host, 2
	older := t.TempDir()
	if err := night.WriteTo(notebook.NodeResults(older, "n1")); err != nil {
		t.Fatal(err)
	}
	b.Reset()
	if err := Pack(&b, older, "n1"); err != nil {
		t.Fatal(err)
	}
	if err := Unpack(&b, to, "n1"); err == nil || !strings.Contains(err.Error(), "they are older") {
		t.Errorf("older results: %v", err)
	}
	kept("older results")
}

func TestHostileArchive(t *testing.T) {
	dir := t.TempDir()
	for _, h := range []tar.Header{
		{Name: "../x", Typeflag: tar.TypeReg}, {Name: "/x", Typeflag: tar.TypeReg}, {Name: "a/../../x", Typeflag: tar.TypeReg}, {Name: "x", Typeflag: tar.TypeSymlink, Linkname: "/etc"},
		{Name: "x", Typeflag: tar.TypeChar}, {Name: "", Typeflag: tar.TypeReg}, {Name: "a/.", Typeflag: tar.TypeReg},
	} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := Unpack(&b, dir, "n1"); err == nil {
			t.Errorf("%q of type %q is taken", h.Name, h.Typeflag)
		}
	}
	if all, err := os.ReadDir(filepath.Join(dir, "nodes")); err != nil || len(all) != 0 {
		t.Errorf("left: %v, %v", all, err)
	}
}

func FuzzUnpack(f *testing.F) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Name: "results/study.json", Typeflag: tar.TypeReg, Size: 2, Mode: 0o644}); err != nil {
		f.Fatal(err)
	}
	if _, err := w.Write([]byte("{}")); err != nil {
		f.Fatal(err)
	}
	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, archive []byte) {
		dir := t.TempDir()
		_ = Unpack(bytes.NewReader(archive), filepath.Join(dir, "F"), "n1") // most are refused
		if all, err := os.ReadDir(dir); err != nil || len(all) > 1 {
			t.Errorf("outside of the folder: %v, %v", all, err)
		}
	})
}
