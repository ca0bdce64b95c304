//go:build linux

// Command probe is what the conformance suite runs inside a guest where a shell cannot do it: it uses CPU time, also on CPUs that it gives itself,
// eats memory, writes and syncs, leaves daemons behind, and serves and asks over the network.
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	switch {
	case len(os.Args) == 2 && os.Args[1] == "links":
		links()
		return
	case len(os.Args) == 4 && os.Args[1] == "serve":
		serve(os.Args[2], os.Args[3])
	case len(os.Args) == 4 && os.Args[1] == "ask":
		ask(os.Args[2], os.Args[3])
		return
	case len(os.Args) != 3:
		fail("usage: probe burn-THREADS MILLISECONDS | spread-THREADS MILLISECONDS | eat BYTES | daemons-N NAME | rabbits-N NAME | fsync-N FILE | fdatasync-N FILE | write-N FILE | linger NAME | hop NAME | " +
			"links | serve ADDRESS WORD | ask ADDRESS PATIENCE")
	}
	switch what, arg := os.Args[1], os.Args[2]; what {
	case "eat":
		eat(number(arg))
	case "linger":
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
		for { // until it is killed; a test finds the process by arg
			time.Sleep(time.Hour)
		}
	case "hop":
		leave(1, "hop", arg) // and be gone, with another in its place
	default:
		var n int
		if _, err := fmt.Sscanf(what, "daemons-%d", &n); err == nil {
			leave(n, "linger", arg)
			fmt.Println("left", n)
		} else if _, err := fmt.Sscanf(what, "rabbits-%d", &n); err == nil {
			leave(n, "hop", arg)
		} else if _, err := fmt.Sscanf(what, "burn-%d", &n); err == nil {
			burn(n, time.Duration(number(arg))*time.Millisecond, nil)
		} else if _, err := fmt.Sscanf(what, "spread-%d", &n); err == nil {
			burn(n, time.Duration(number(arg))*time.Millisecond, everywhere)
		} else if how, times, ok := strings.Cut(what, "-"); ok {
			write(how, number(times), arg)
		} else {
			fail("unknown order " + what)
		}
	}
}

// burn keeps so many threads busy for so long by the wall's clock. Each does first, where it is not nil, with its number before.
func burn(threads int, d time.Duration, first func(int)) {
	runtime.GOMAXPROCS(threads)
	end := time.Now().Add(d)
	var wg sync.WaitGroup
	for i := range threads {
		wg.Go(func() {
			runtime.LockOSThread()
			if first != nil {
				first(i)
			}
			for time.Now().Before(end) {
			}
		})
	}
	wg.Wait()
}

// everywhere lets this thread run on every possible CPU, as libnuma does for a program that asks for a node's CPUs. Then it binds
// the thread to one of the CPUs that the kernel left it, by its number. Otherwise, on a busy host, two threads may share a CPU
// although they could run on two.
func everywhere(thread int) {
	var all unix.CPUSet
	for cpu := range 1024 {
		all.Set(cpu)
	}
	if err := unix.SchedSetaffinity(0, &all); err != nil {
		fail("sched_setaffinity: " + err.Error())
	}
	var may unix.CPUSet
	if err := unix.SchedGetaffinity(0, &may); err != nil {
		fail("sched_getaffinity: " + err.Error())
	}
	var left []int
	for cpu := range 1024 {
		if may.IsSet(cpu) {
			left = append(left, cpu)
		}
	}
	var one unix.CPUSet
	one.Set(left[thread%len(left)])
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		fail("sched_setaffinity: " + err.Error())
	}
}

// eat takes memory and touches every page of it, so that it is really there.
func eat(bytes int64) {
	const chunk = 4 << 20
	for got := int64(0); got < bytes; got += chunk {
		m, err := syscall.Mmap(-1, 0, chunk, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
		if err != nil {
			fail(fmt.Sprintf("after %d bytes: %v", got, err))
		}
		for i := 0; i < chunk; i += 4096 {
			m[i] = 1
		}
	}
	fmt.Println("ate", bytes)
}

// write writes so many blocks to a file, which may exist, and syncs each if asked.
func write(how string, n int64, path string) {
	sync := map[string]func(int) error{"fsync": syscall.Fsync, "fdatasync": syscall.Fdatasync, "write": func(int) error { return nil }}[how]
	if sync == nil {
		fail("unknown order " + how)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	block := make([]byte, 4096)
	for i := int64(0); i < n && err == nil; i++ {
		if _, err = f.WriteAt(block, i*int64(len(block))); err == nil {
			err = sync(int(f.Fd()))
		}
	}
	if err != nil {
		fail(err.Error())
	}
}

// leave leaves so many processes behind, each in its own session and with no parent. Those that linger stay; those
// that hop are another process every few milliseconds, and so hard to catch.
func leave(n int, what, name string) {
	self, err := os.Executable()
	if err != nil {
		fail(err.Error())
	}
	for range n {
		c := exec.Command(self, what, name)
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := c.Start(); err != nil {
			fail(err.Error())
		}
		if err := c.Process.Release(); err != nil {
			fail(err.Error())
		}
	}
}

// links prints the links that are up, each with its addresses.
func links() {
	all, err := net.Interfaces()
	if err != nil {
		fail(err.Error())
	}
	for _, l := range all {
		if l.Flags&net.FlagUp == 0 {
			continue
		}
		addresses, err := l.Addrs()
		if err != nil {
			fail(err.Error())
		}
		fmt.Print(l.Name)
		for _, a := range addresses {
			fmt.Print(" ", a)
		}
		fmt.Println()
	}
}

// serve says the word to all who connect, until it is killed.
func serve(address, word string) {
	l, err := net.Listen("tcp", address)
	for err == nil {
		var conn net.Conn
		if conn, err = l.Accept(); err == nil {
			fmt.Fprintln(conn, word) // who asked may be gone
			conn.Close()
		}
	}
	fail(err.Error())
}

// ask prints what the other end sends, as soon as it sends anything.
func ask(address, patience string) {
	d, err := time.ParseDuration(patience)
	if err != nil {
		fail(err.Error())
	}
	tries := 0
	for end := time.Now().Add(d); ; time.Sleep(10 * time.Millisecond) {
		var said []byte
		tries++
		conn, err := net.DialTimeout("tcp", address, time.Until(end))
		if err == nil {
			conn.SetReadDeadline(end)
			said, err = io.ReadAll(conn)
			conn.Close()
		}
		if len(said) > 0 && err == nil {
			os.Stdout.Write(said)
			return
		}
		if time.Now().After(end) {
			fail(fmt.Sprintf("no answer in %v, asked %d times: %v", d, tries, err))
		}
	}
}

func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		fail(err.Error())
	}
	return n
}

func fail(why string) {
	fmt.Fprintln(os.Stderr, why)
	os.Exit(1)
}
