//go:build linux

// Package networktest finds, for tests, what Tare's bridges left on the host.
package networktest

import (
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// Left lists links and iptables rules of the bridge of that name.
func Left(t testing.TB, bridge string) (left []string) {
	t.Helper()
	links, err := os.ReadDir("/sys/class/net")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		if l.Name() == bridge || strings.HasPrefix(l.Name(), bridge+"p") {
			left = append(left, l.Name())
		}
	}
	return append(left, slices.DeleteFunc(rules(t), func(rule string) bool { return !slices.Contains(bridges.FindAllString(rule, -1), bridge) })...)
}

var bridges = regexp.MustCompile(`\btare[0-9]+\b`)

// Deserted lists iptables rules of Tare's bridges that are gone. Other tests have bridges at the same time. One may end between the
// reading of the rules and of the links, so it looks again for a while.
func Deserted(t testing.TB) (left []string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		left = slices.DeleteFunc(rules(t), func(rule string) bool {
			return !slices.ContainsFunc(bridges.FindAllString(rule, -1), func(bridge string) bool {
				_, err := net.InterfaceByName(bridge)
				return err != nil
			})
		})
		if len(left) == 0 || time.Now().After(end) {
			return left
		}
	}
}

// rules are all rules of iptables; none on a host without it.
func rules(t testing.TB) []string {
	t.Helper()
	if _, err := exec.LookPath("iptables-save"); err != nil {
		return nil
	}
	out, err := exec.Command("iptables-save").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}
