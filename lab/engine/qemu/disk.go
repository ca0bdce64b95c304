//go:build linux

package qemu

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"tare/lab/engine"
	"tare/lab/engine/qemu/guestinit"
	"tare/notebook"
)

// overlayName is the file in the guest's folder for what the guest writes to its root. The journal's entry for the folder covers
// it. It keeps its name while the guest lives, because some file systems (btrfs) do not flush a file without a name.
const overlayName = "disk.qcow2"

// rootNode is the name of the block node and of the device of the guest's root.
const rootNode = "root"

// node is a node of QEMU's block layer, in the form of -blockdev. It names every node of a disk down to the files. So QEMU opens
// nothing because an image says so, and guesses no format from what a guest wrote.
type node struct {
	Driver   string `json:"driver"`
	Name     string `json:"node-name,omitempty"`
	ReadOnly bool   `json:"read-only"`
	Cache    struct {
		Direct  bool `json:"direct"`
		NoFlush bool `json:"no-flush"` // never
	} `json:"cache"`
	Filename string `json:"filename,omitempty"`
	AIO      string `json:"aio,omitempty"`
	File     *node  `json:"file,omitempty"`
	Backing  *node  `json:"backing,omitempty"`
}

// onFile is a format in the file at path.
func onFile(d notebook.Disk, format, path string, readonly bool) *node {
	file := &node{Driver: "file", Filename: path, AIO: d.AIO, ReadOnly: readonly}
	file.Cache.Direct = d.Direct()
	n := &node{Driver: format, ReadOnly: readonly, File: file}
	n.Cache.Direct = d.Direct()
	return n
}

// disk returns the arguments for one virtio disk.
func (h hardware) disk(id, serial string, n *node) ([]string, error) {
	d := h.machine.Disk
	n.Name = id
	text, err := json.Marshal(n)
	if err != nil {
		return nil, err
	}
	cache := "off"
	if d.WriteCache() {
		cache = "on"
	}
	device := fmt.Sprintf("%s,id=%s,drive=%s,serial=%s,write-cache=%s", h.board.device("virtio-blk"), id, id, serial, cache)
	if d.IOThread {
		device += ",iothread=io"
	}
	if !n.ReadOnly {
		device += ",werror=report" // if the host has no space left, the guest gets an error; by default QEMU would stop it
	}
	return []string{"-blockdev", string(text), "-device", device}, nil
}

// disks returns the arguments for the machine's disks.
func (h hardware) disks() (args []string, err error) {
	if h.machine.Disk.IOThread {
		args = append(args, "-object", "iothread,id=io")
	}
	add := func(id, serial string, n *node) {
		if err == nil {
			var more []string
			more, err = h.disk(id, serial, n)
			args = append(args, more...)
		}
	}
	if h.root != "" {
		n := onFile(h.machine.Disk, h.machine.Disk.Format, h.overlay, false)
		n.Backing = onFile(h.machine.Disk, "raw", h.root, true) // any number of guests read it
		add(rootNode, guestinit.RootSerial, n)
	}
	if h.work != "" {
		add("work", guestinit.WorkSerial, onFile(h.machine.Disk, "raw", h.work, true))
	}
	return args, err
}

// makeOverlay makes the empty overlay of the disk image at base, in the guest's folder, and returns its path. The file does not
// name its backing file: only the command line does (disks).
func makeOverlay(folder, base string) (string, error) {
	st, err := os.Stat(base)
	if err != nil {
		return "", err
	}
	data, err := emptyQcow2(st.Size())
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, overlayName)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if _, err := f.Write(data); err != nil {
		return "", err
	}
	return path, f.Close()
}

// emptyQcow2 is a qcow2 image of that size without allocated clusters, by QEMU's docs/interop/qcow2.txt and like those of `qemu-img
// create`. It has the header, the table of refcounts with its one block, and the first-level table, each in a cluster.
func emptyQcow2(size int64) ([]byte, error) {
	const (
		clusterBits = 16
		cluster     = 1 << clusterBits
		mapped      = cluster / 8 * cluster // bytes that one entry of the first-level table stands for
		clusters    = 4
	)
	entries := (size + mapped - 1) / mapped
	if entries*8 > cluster {
		return nil, fmt.Errorf("a disk of %d bytes: must be at most %d, the room in the overlay's tables", size, int64(cluster/8*mapped))
	}
	image := make([]byte, clusters*cluster)
	put32 := func(at int, v uint32) { binary.BigEndian.PutUint32(image[at:], v) }
	put64 := func(at int, v int64) { binary.BigEndian.PutUint64(image[at:], uint64(v)) }
	copy(image, "QFI\xfb")
	put32(4, 3) // version
	put32(20, clusterBits)
	put64(24, size)
	put32(36, uint32(entries))
	put64(40, 3*cluster) // offset of the first-level table
	put64(48, 1*cluster) // offset of the table of refcounts
	put32(56, 1)         // and the number of its clusters
	put32(96, 4)         // refcounts have 1<<4 bits
	put32(100, 104)      // length of the header
	put64(1*cluster, 2*cluster)
	for i := range clusters {
		binary.BigEndian.PutUint16(image[2*cluster+2*i:], 1)
	}
	return image, nil
}

// disk is what QEMU has in force for the root's disk. QEMU reports its AIO engine nowhere, but it does not start with another than
// the requested one.
func (m *machine) disk(ctx context.Context, aio string) (notebook.Disk, error) {
	var blocks []struct {
		Inserted struct {
			Node   string `json:"node-name"`
			Driver string `json:"drv"`
			Cache  struct {
				Writeback bool `json:"writeback"`
				Direct    bool `json:"direct"`
				NoFlush   bool `json:"no-flush"`
			} `json:"cache"`
		} `json:"inserted"`
	}
	if err := m.qmp.run(ctx, "query-block", &blocks); err != nil {
		return notebook.Disk{}, err
	}
	threads, err := m.ioThreads(ctx)
	if err != nil {
		return notebook.Disk{}, err
	}
	for _, b := range blocks {
		if b.Inserted.Node != rootNode {
			continue
		}
		c := b.Inserted.Cache
		if c.NoFlush {
			return notebook.Disk{}, errors.New("the root's disk ignores flushes")
		}
		return notebook.Disk{Format: b.Inserted.Driver, Cache: notebook.CacheMode(c.Writeback, c.Direct), AIO: aio, IOThread: len(threads) > 0}, nil
	}
	return notebook.Disk{}, fmt.Errorf("QEMU names no disk %q", rootNode)
}

// ioThreads returns the threads that QEMU has for its disks.
func (m *machine) ioThreads(ctx context.Context) (all []int, err error) {
	var io []struct {
		Thread int `json:"thread-id"`
	}
	err = m.qmp.run(ctx, "query-iothreads", &io)
	for _, t := range io {
		all = append(all, t.Thread)
	}
	return all, err
}

// opens says why a file cannot be read and written in the disk's way; nil if it can. A file system without O_DIRECT refuses when a
// file is opened.
func opens(k engine.Kind, d notebook.Disk, path string) error {
	if !d.Direct() || path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECT, 0)
	if err != nil {
		return k.Unsupported("cache="+d.Cache, fmt.Sprintf("the file system of %s opens no file past its page cache (O_DIRECT): %v; use a state folder on another, or cache=%s", filepath.Dir(path), errors.Unwrap(err), notebook.CacheWriteback))
	}
	return f.Close()
}
