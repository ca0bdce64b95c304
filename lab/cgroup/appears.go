//go:build linux

package cgroup

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// OnAppearance calls then, with the time, when a cgroup of this name appears at the top of the hierarchy with the memory
// controller. It does so until stop is called, which waits for it. A cgroup that exists already does not count.
func OnAppearance(name string, then func(time.Time)) (stop func(), err error) {
	hs, err := Mounted()
	if err != nil {
		return nil, err
	}
	top := ""
	for _, h := range hs {
		if h.Has("memory") {
			top = h.At
		}
	}
	if top == "" {
		return nil, fmt.Errorf("no hierarchy of cgroups has the memory controller")
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", top, err)
	}
	f := os.NewFile(uintptr(fd), "inotify")
	if _, err := unix.InotifyAddWatch(fd, top, unix.IN_CREATE|unix.IN_ONLYDIR); err != nil {
		f.Close()
		return nil, fmt.Errorf("watching %s: %w", top, err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 16<<10)
		for {
			n, err := f.Read(buf) // ends when f is closed
			if err != nil {
				return
			}
			now := time.Now()
			for _, made := range names(buf[:n]) {
				if made == name {
					then(now)
				}
			}
		}
	}()
	return func() {
		f.Close()
		<-done
	}, nil
}

// names are the names in a read of inotify(7).
func names(b []byte) (all []string) {
	for len(b) >= unix.SizeofInotifyEvent {
		n := int(binary.NativeEndian.Uint32(b[12:16]))
		b = b[unix.SizeofInotifyEvent:]
		if n > len(b) {
			return all
		}
		all = append(all, filepath.Base(string(bytes.TrimRight(b[:n], "\x00"))))
		b = b[n:]
	}
	return all
}
