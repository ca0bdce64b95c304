//go:build linux

package proc

import (
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0000000000000000 100 0 0 10 0
   1: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4712 1 0000000000000000 100 0 0 10 0
   2: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 4713 1 0000000000000000 20 4 30 10 -1
`

func TestParseListening(t *testing.T) {
	ports, err := parseListening(strings.NewReader(table), map[uint64]bool{4711: true, 4713: true})
	if err != nil || !slices.Equal(ports, []uint16{8080}) {
		t.Errorf("%v, %v; want 8080, which listens and is the process's", ports, err)
	}
	for _, bad := range []string{strings.Replace(table, "4711", "inode", 1), strings.Replace(table, ":1F90", ":zz", 1)} {
		if ports, err := parseListening(strings.NewReader(bad), map[uint64]bool{4711: true}); err == nil {
			t.Errorf("%v of a damaged table", ports)
		}
	}
}

func FuzzListening(f *testing.F) {
	f.Add(table)
	f.Fuzz(func(t *testing.T, text string) {
		ports, err := parseListening(strings.NewReader(text), map[uint64]bool{4711: true})
		if err == nil && len(ports) > strings.Count(text, "\n")+1 {
			t.Errorf("%d ports", len(ports))
		}
	})
}

// This process's own sockets, with IPv4 and with IPv6.
func TestListening(t *testing.T) {
	var want []uint16
	for _, of := range [][2]string{{"tcp4", "127.0.0.1:0"}, {"tcp6", "[::1]:0"}} {
		l, err := net.Listen(of[0], of[1])
		if err != nil {
			t.Logf("%s: %v", of[0], err) // a host without IPv6
			continue
		}
		defer l.Close()
		want = append(want, uint16(l.Addr().(*net.TCPAddr).Port))
	}
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/net", &st); err != nil {
		t.Fatal(err)
	}
	namespace, ports, err := Listening([]int{os.Getpid(), 1 << 30})
	if err != nil || namespace != st.Ino {
		t.Fatalf("namespace %d, %v; want %d", namespace, err, st.Ino)
	}
	for _, p := range want {
		if !slices.Contains(ports, p) {
			t.Errorf("%v lacks %d", ports, p)
		}
	}
	if _, ports, err := Listening([]int{1 << 30}); err != nil || ports != nil {
		t.Errorf("a process that has ended: %v, %v", ports, err)
	}
}
