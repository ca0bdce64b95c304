// Command hold has so many pages of memory and a file of so many pages, and waits: hold TOKEN PAGES FILE PAGES. Each page begins with the token, the
// letter a of the memory's or f of the file's, and its number.
package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

const page = 4096

func main() {
	if err := hold(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for {
		syscall.Pause() // until it is killed
	}
}

func hold(token, own, path, inFile string) error {
	n, err := strconv.Atoi(own)
	if err != nil {
		return err
	}
	m, err := strconv.Atoi(inFile)
	if err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	buffer := make([]byte, 2*page)[100:] // its own pages begin with something else
	for i := range m {
		mark(buffer, token, 'f', i)
		if _, err := f.Write(buffer[:page]); err != nil {
			return err
		}
	}
	if err := f.Sync(); err != nil {
		return err
	}
	memory, err := syscall.Mmap(-1, 0, n*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return err
	}
	for i := range n { // the last of them comes last
		mark(memory[i*page:], token, 'a', i)
	}
	return nil
}

func mark(b []byte, token string, what byte, i int) {
	n := copy(b, token)
	b[n] = what
	binary.LittleEndian.PutUint32(b[n+1:], uint32(i))
}
