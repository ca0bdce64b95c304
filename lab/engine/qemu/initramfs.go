//go:build linux

package qemu

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab/engine/qemu/guestinit"
	"tare/lab/ruler"
	"tare/notebook/durable"
)

// file is an entry of an initramfs: a folder, a device node or a regular file, by its mode.
type file struct {
	name string // "modules/000-virtio.ko", without a leading slash
	mode uint32 // with the file type's bits
	dev  uint32 // of a device node: major<<8 | minor
	path string // file on the host with the content, or
	data []byte // the content itself
}

// program is an entry that can be run, or loaded by one that is run.
func program(name, path string) file { return file{name: name, mode: unix.S_IFREG | 0o755, path: path} }

// initramfsDir is the folder, below the state folder, of what machines boot from.
const initramfsDir = "initramfs"

// initramfsKept is how long what machines boot from is kept after its last use. Another version of the program makes another one.
const initramfsKept = 7 * 24 * time.Hour

// initramfs returns the path of a cpio archive of the files (format "newc", uncompressed, because under emulation unpacking costs
// more than reading). dir keeps it by content.
func initramfs(dir string, files []file) (string, error) {
	files = withParents(files)
	h := sha256.New()
	if err := writeCPIO(h, files); err != nil {
		return "", err
	}
	path, err := keep(dir, hex.EncodeToString(h.Sum(nil)[:16])+".cpio", func(w io.Writer) error { return writeCPIO(w, files) })
	if err != nil {
		return "", fmt.Errorf("vm: initramfs: %w", err)
	}
	return path, nil
}

// keep returns the path of the file with this name in dir, whose name says its content. If there is none, write makes it, and what was not
// used for long goes.
func keep(dir, name string, write func(io.Writer) error) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	final, now := filepath.Join(dir, name), time.Now()
	if err := os.Chtimes(final, now, now); err == nil {
		return final, nil
	}
	old, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		return "", err
	}
	for _, o := range old {
		if st, err := os.Stat(o); err == nil && now.Sub(st.ModTime()) > initramfsKept {
			if err := os.Remove(o); err != nil && !os.IsNotExist(err) {
				return "", fmt.Errorf("an old one: %w", err)
			}
		}
	}
	return final, durable.Replace(final, 0o644, write)
}

// withParents adds the parent folders of the files, and orders everything so that a folder comes before its content.
func withParents(files []file) []file {
	all := map[string]file{}
	for _, f := range files {
		for d := path.Dir(f.name); d != "."; d = path.Dir(d) {
			if _, ok := all[d]; !ok {
				all[d] = file{name: d, mode: unix.S_IFDIR | 0o755}
			}
		}
		all[f.name] = f
	}
	return slices.SortedFunc(maps.Values(all), func(a, b file) int { return strings.Compare(a.name, b.name) })
}

// writeCPIO writes an archive in the format of the kernel's Documentation/driver-api/early-userspace/buffer-format.rst.
func writeCPIO(w io.Writer, files []file) error {
	out := bufio.NewWriterSize(w, 1<<20)
	var written int64
	pad := func() error {
		n := (4 - written%4) % 4
		written += n
		_, err := out.WriteString("\x00\x00\x00"[:n])
		return err
	}
	entry := func(ino int, f file, size int64, content io.Reader) error {
		head := fmt.Sprintf("070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s\x00",
			ino, f.mode, 0, 0, 1, 0, size, 0, 0, f.dev>>8, f.dev&0xff, len(f.name)+1, 0, f.name)
		written += int64(len(head))
		if _, err := out.WriteString(head); err != nil {
			return err
		}
		if err := pad(); err != nil {
			return err
		}
		n, err := io.Copy(out, content)
		written += n
		if err != nil {
			return err
		}
		if n != size {
			return fmt.Errorf("%s changed while it was read: it has %d bytes, not %d", f.path, n, size)
		}
		return pad()
	}
	for i, f := range files {
		if err := func() error {
			if f.path == "" {
				return entry(i+1, f, int64(len(f.data)), bytes.NewReader(f.data))
			}
			src, err := os.Open(f.path)
			if err != nil {
				return err
			}
			defer src.Close()
			st, err := src.Stat()
			if err != nil {
				return err
			}
			return entry(i+1, f, st.Size(), io.LimitReader(src, st.Size()))
		}(); err != nil {
			return fmt.Errorf("vm: initramfs: %s: %w", f.name, err)
		}
	}
	if err := entry(0, file{name: "TRAILER!!!"}, 0, strings.NewReader("")); err != nil {
		return fmt.Errorf("vm: initramfs: %w", err)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("vm: initramfs: %w", err)
	}
	return nil
}

// makeInitramfs returns the initramfs of guests: the first program as /init, the kernel's modules, and other files.
func makeInitramfs(stateDir, first string, k Kernel, wanted []string, extra []file) (string, error) {
	if err := checkStatic(first); err != nil {
		return "", err
	}
	modules, err := k.modules(wanted, optionalModules)
	if err != nil {
		return "", err
	}
	files := []file{
		program("init", first),
		// The kernel opens it for the first process's standard streams.
		{name: "dev/console", mode: unix.S_IFCHR | 0o600, dev: 5<<8 | 1},
		{name: "proc", mode: unix.S_IFDIR | 0o755}, {name: "sys", mode: unix.S_IFDIR | 0o755},
	}
	for i, m := range modules {
		files = append(files, file{
			name: fmt.Sprintf("%s/%03d-%s.ko", guestinit.ModulesDir, i, m.name), mode: unix.S_IFREG | 0o644, data: m.data,
		})
	}
	return initramfs(filepath.Join(stateDir, initramfsDir), append(files, extra...))
}

// checkStatic refuses a program that needs a dynamic linker, because no guest has one.
func checkStatic(path string) error {
	linker, err := ruler.Interpreter(path)
	if err != nil {
		return fmt.Errorf("vm: the program for the guests: %w", err)
	}
	if linker != "" {
		return fmt.Errorf("vm: the program for the guests, %s, is dynamically linked; build it static, with CGO_ENABLED=0", path)
	}
	return nil
}
