//go:build linux

package suite

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"tare/internal/require"
)

// table is a disk of 3 MiB with a partition of that name in its second MiB.
func table(name string, content []byte) []byte {
	disk := make([]byte, 3<<20)
	header := disk[sector:]
	copy(header, "EFI PART")
	binary.LittleEndian.PutUint64(header[72:], 2)
	binary.LittleEndian.PutUint32(header[80:], 128)
	binary.LittleEndian.PutUint32(header[84:], 128)
	entry := disk[2*sector+128:]
	binary.LittleEndian.PutUint64(entry[32:], 2048)
	binary.LittleEndian.PutUint64(entry[40:], 4095)
	for i, c := range utf16.Encode([]rune(name)) {
		binary.LittleEndian.PutUint16(entry[56+2*i:], c)
	}
	copy(disk[1<<20:], content)
	return disk
}

type member struct {
	name string
	kind byte
	text string
}

func archive(t testing.TB, members ...member) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, m := range members {
		if err := w.WriteHeader(&tar.Header{Name: m.name, Typeflag: m.kind, Size: int64(len(m.text)), Mode: 0o4777, Linkname: "/etc/passwd"}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, m.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Results are read from a suite's disk, and from nothing else.
func TestResults(t *testing.T) {
	require.Program(t, "qemu-img")
	whole := archive(t, member{"results/", tar.TypeDir, ""}, member{"results/study.json", tar.TypeReg, "{}"}, member{"results/more/x", tar.TypeReg, "y"})
	for _, c := range []struct {
		what, format string
		disk         []byte
		want         string // of the error; empty: it is read
	}{
		{"raw", "raw", table(partition, whole), ""},
		{"qcow2", "qcow2", table(partition, whole), ""},
		{"vmdk", "vmdk", table(partition, whole), `an image in the format "vmdk"`},
		{"vhdx", "vhdx", table(partition, whole), `an image in the format "vhdx"`},
		{"before its first boot", "qcow2", table(partition, nil), "its study has not ended yet"},
		{"another disk", "raw", table("root", whole), "it is not a suite's image"},
		{"no disk", "raw", bytes.Repeat([]byte("x"), 5000), "it is not a suite's image"},
		{"cut off", "raw", table(partition, whole[:1800]), "its results are damaged"},
		{"a file elsewhere", "raw", table(partition, archive(t, member{"results/../../x", tar.TypeReg, "y"})), "which is not in the folder results"},
		{"a link", "raw", table(partition, archive(t, member{"results/x", tar.TypeSymlink, ""})), "which is neither a file nor a folder"},
		{"a file twice", "raw", table(partition, archive(t, member{"results/x", tar.TypeReg, "y"}, member{"results/x", tar.TypeReg, "z"})), "file exists"},
	} {
		t.Run(c.what, func(t *testing.T) {
			dir := t.TempDir()
			raw, disk, out := filepath.Join(dir, "raw"), filepath.Join(dir, "disk"), filepath.Join(dir, "R")
			if err := os.WriteFile(raw, c.disk, 0o600); err != nil {
				t.Fatal(err)
			}
			if said, err := exec.Command("qemu-img", "convert", "-f", "raw", "-O", c.format, raw, disk).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, said)
			}
			err := Results(t.Context(), disk, out)
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v; want %s", err, c.want)
				}
				if _, err := os.Stat(out); err == nil {
					t.Error("a folder was left")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for name, want := range map[string]string{"study.json": "{}", "more/x": "y"} {
				if got, err := os.ReadFile(filepath.Join(out, name)); err != nil || string(got) != want {
					t.Errorf("%s: %q, %v", name, got, err)
				}
			}
			if err := Results(t.Context(), disk, out); err == nil || !strings.Contains(err.Error(), "file exists") {
				t.Errorf("onto a folder: %v", err)
			}
		})
	}
}

// A file that says that it is longer than the partition, as a sparse one can, is not written.
func TestResultsThatAreTooMuch(t *testing.T) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Name: "results/x", Typeflag: tar.TypeReg, Size: resultsMiB<<20 + 1}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := extract(&b, dir); err == nil || !strings.Contains(err.Error(), "its results must have at most 10000 files and 512 MiB") {
		t.Errorf("%v", err)
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) > 0 {
		t.Errorf("%v, %v", all, err)
	}
}

// An image that has another file of this host read for it is refused.
func TestAnImageThatIsAPart(t *testing.T) {
	require.Program(t, "qemu-img")
	dir := t.TempDir()
	raw, disk := filepath.Join(dir, "raw"), filepath.Join(dir, "disk")
	if err := os.WriteFile(raw, table(partition, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.Command("qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", raw, disk).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	if err := Results(context.Background(), disk, filepath.Join(dir, "R")); err == nil || !strings.Contains(err.Error(), "is only a part of an image") {
		t.Errorf("%v", err)
	}
}

// The data of an image may lie in another file, which it names.
func TestAnImageWithDataElsewhere(t *testing.T) {
	require.Program(t, "qemu-img")
	dir := t.TempDir()
	disk := filepath.Join(dir, "disk")
	if said, err := exec.Command("qemu-img", "create", "-q", "-f", "qcow2", "-o", "data_file="+filepath.Join(dir, "data"), disk, "10M").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	if err := Results(t.Context(), disk, filepath.Join(dir, "R")); err == nil || !strings.Contains(err.Error(), "is only a part of an image") {
		t.Errorf("%v", err)
	}
}

// While an image is converted nothing of that has a name, so nothing is left however Tare ends.
func TestConvertingLeavesNothing(t *testing.T) {
	require.Program(t, "qemu-img")
	dir := t.TempDir()
	disk, seen, temporary := filepath.Join(dir, "disk"), filepath.Join(dir, "seen"), filepath.Join(dir, "tmp")
	if said, err := exec.Command("qemu-img", "create", "-q", "-f", "qcow2", disk, "10M").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	if err := os.Mkdir(temporary, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "qemu-img"), []byte("#!/bin/sh\nls -A "+temporary+" >"+seen+"\necho it was asked >&2\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("TMPDIR", temporary)
	if err := Results(t.Context(), disk, filepath.Join(dir, "R")); err == nil || !strings.Contains(err.Error(), "it was asked") {
		t.Errorf("%v", err)
	}
	if names, err := os.ReadFile(seen); err != nil || len(names) > 0 {
		t.Errorf("meanwhile there were %q, %v", names, err)
	}
}

// Whatever a disk begins with, it is of a format that is read, or refused.
func FuzzInspect(f *testing.F) {
	f.Add([]byte("QFI\xfb\x00\x00\x00\x03"))
	f.Add(append([]byte("QFI\xfb\x00\x00\x00\x02"), make([]byte, 64)...))
	f.Add([]byte("KDMV"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, disk []byte) {
		format, err := inspect(bytes.NewReader(disk))
		if (err == nil) != (format == "raw" || format == qcow2) {
			t.Errorf("format %q, %v", format, err)
		}
		if format == qcow2 && !bytes.HasPrefix(disk, []byte("QFI\xfb")) {
			t.Error("it is not a qcow2 image")
		}
	})
}

// A disk from anywhere is read or refused, and nothing is written outside of the folder.
func FuzzResults(f *testing.F) {
	f.Add(table(partition, archive(f, member{"results/a/b", tar.TypeReg, "x"}))[:1<<20+4096])
	f.Add([]byte("EFI PART"))
	f.Fuzz(func(t *testing.T, disk []byte) {
		at, size, err := find(bytes.NewReader(disk), partition)
		if err != nil {
			return
		}
		dir := t.TempDir()
		out := filepath.Join(dir, "R")
		if err := os.Mkdir(out, 0o755); err != nil {
			t.Fatal(err)
		}
		extract(io.NewSectionReader(bytes.NewReader(disk), at, size), out) // its error is of the disk
		if all, err := os.ReadDir(dir); err != nil || len(all) != 1 {
			t.Fatalf("%v, %v", all, err)
		}
	})
}
