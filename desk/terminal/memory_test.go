package terminal_test

import (
	"bytes"
	"testing"
	"time"

	"tare/desk/terminal"
	"tare/internal/golden"
	"tare/notebook"
)

// What people read of a container and a VM.
func TestMemory(t *testing.T) {
	const kib, mib = 1 << 10, 1 << 20
	weight := func(rss, pss, uss, swap int64) notebook.MemoryWeight {
		return notebook.MemoryWeight{RSS: rss, PSS: pss, USS: uss, Swap: swap}
	}
	a := &notebook.MemoryAccount{
		At: time.Date(2026, 11, 22, 18, 24, 5, 0, time.UTC), Seconds: 1.234, Scanned: 1207, Unseen: 3, Contents: true, Changed: 4859, Unread: 12,
		Missing: []string{"Process 77 is not in the account: process 77 ended, or became another program, during the scan: file does not exist."},
		Guests: []notebook.MemoryGuest{{
			Name: "web\x1b[2J", Kind: notebook.MemoryContainer, MemoryWeight: weight(44*mib, 16*mib+117, 9*mib, 0), Own: 11 * mib,
			Processes:  []notebook.MemoryProcess{{PID: 4711, Name: "httpd", MemoryWeight: weight(20*mib, 10*mib, 6*mib, 0)}, {PID: 4712, Name: "httpd", MemoryWeight: weight(24*mib, 6*mib, 3*mib, 0)}},
			Kinds:      []notebook.MemoryPart{{Name: "anonymous", RSS: 30 * mib, PSS: 12 * mib}, {Name: "file", RSS: 14 * mib, PSS: 4 * mib}, {Name: "zero page", Other: 64 * kib}},
			Files:      []notebook.MemoryPart{{Name: "/usr/lib/libc.so.6", RSS: 2 * mib, PSS: mib, Copied: 16 * kib}, {Name: "/usr/sbin/httpd", RSS: mib, PSS: 512 * kib}},
			SharedWith: []notebook.MemoryShare{{With: "db", Bytes: 3 * mib}, {With: "host", Bytes: 40 * kib}},
			Duplicates: &notebook.MemoryDuplicates{Within: notebook.MemoryAlike{AnonAnon: mib}, Host: notebook.MemoryAlike{FileFile: 2 * mib, AnonFile: 4 * kib}, Zero: 300 * kib},
			GiveBack: []notebook.MemoryGiveBack{{By: notebook.MemoryByEnd, Bytes: 11 * mib}, {By: notebook.MemoryByPressure, Bytes: 2 * mib}, {By: notebook.MemoryByKSM, Bytes: mib},
				{By: notebook.MemoryByOneFile, Bytes: 2 * mib}, {By: notebook.MemoryByMapping, Bytes: 4 * kib}},
		}, {
			Name: "guest-1", Kind: notebook.MemoryVM, MemoryWeight: weight(241*mib, 235*mib, 230*mib, 12*mib), Own: 230 * mib, Huge: 128 * mib, Large: 3 * mib,
			Processes: []notebook.MemoryProcess{{PID: 5000, Name: "qemu-system-x86", MemoryWeight: weight(241*mib, 235*mib, 230*mib, 12*mib)}},
			Kinds:     []notebook.MemoryPart{{Name: "anonymous", RSS: 220 * mib, PSS: 220 * mib}, {Name: "swap", Other: 12 * mib}},
		}},
	}
	for i := range 12 {
		a.Guests[1].Files = append(a.Guests[1].Files, notebook.MemoryPart{Name: string(rune('a' + i)), RSS: mib, PSS: 100 * kib})
	}
	for name, of := range map[string]struct {
		detailed bool
		screen   terminal.Screen
		change   func(a *notebook.MemoryAccount)
	}{
		"memory.txt":          {detailed: true},
		"memory-narrow.txt":   {screen: terminal.Screen{Width: 60}, change: func(a *notebook.MemoryAccount) { a.Contents, a.Spilled = false, 5<<20+1 }},
		"memory-withheld.txt": {detailed: true, change: func(a *notebook.MemoryAccount) { a.Withheld = "the kernel hides the frames of pages" }},
	} {
		b := *a
		if of.change != nil {
			of.change(&b)
		}
		var text bytes.Buffer
		if err := terminal.Memory(&text, &b, of.detailed, of.screen); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, name, text.Bytes())
	}
}
