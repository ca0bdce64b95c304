package words

import (
	"fmt"

	"tare/notebook"
)

var memoryGivenBack = map[string]string{
	notebook.MemoryByEnd:      "ending it: no process outside maps these pages",
	notebook.MemoryByPressure: "the kernel, when memory is short: pages of files that no other process maps",
	notebook.MemoryByKSM:      "KSM: identical anonymous pages, where their process allows merging (madvise or prctl; QEMU's guest RAM does)",
	notebook.MemoryByOneFile:  "one file instead of copies: identical pages of files, for example of a shared root filesystem",
	notebook.MemoryByMapping:  "mapping the file instead of copying it: anonymous pages that equal a file's, which KSM does not merge",
}

// MemoryGivenBack says by what means memory would be given back.
func MemoryGivenBack(by string) string { return memoryGivenBack[by] }

// MemoryCaveats are the sentences that belong to an account of memory: what it is not, and what is not in it.
func MemoryCaveats(a *notebook.MemoryAccount) (all []string) {
	if a.Withheld != "" {
		return append(a.Missing, "These are the kernel's own sums (smaps_rollup); nothing more is known: "+a.Withheld+".")
	}
	all = append(all, a.Missing...)
	if a.Unseen > 0 {
		all = append(all, fmt.Sprintf("%s of the host's other processes could not be read or ended during the scan; their memory is not included.", Thousands(a.Unseen)))
	}
	if a.Changed > 0 {
		all = append(all, fmt.Sprintf("%s changed during the scan: counted where first seen, and not as duplicates.", Count(a.Changed, "page")))
	}
	if a.Unread > 0 {
		all = append(all, fmt.Sprintf("The content of %s cannot be read: not counted as duplicates.", Count(a.Unread, "page")))
	}
	if a.Spilled > 0 {
		all = append(all, fmt.Sprintf("%d MiB of the list of pages were in a file, beyond --max-memory: the figures are the same, but took longer.", (a.Spilled+notebook.MiB-1)/notebook.MiB))
	}
	if !a.Contents {
		all = append(all, "Contents were not compared, so it is not known what more could be shared.")
	}
	return all
}

// MemoryHead is the head of an account of memory.
func MemoryHead(a *notebook.MemoryAccount) string {
	head := "Memory at " + a.At.Format("15:04:05")
	if a.Withheld == "" {
		head += fmt.Sprintf(", of %s processes on the host, read in %s", Thousands(a.Scanned), Duration(a.Seconds))
	}
	return head
}

// MemoryInHugePages says how much of a guest's memory is in huge pages.
func MemoryInHugePages(g *notebook.MemoryGuest) string {
	return fmt.Sprintf("mapped as huge pages: %s; parts of larger pages: %s", Bytes(g.Huge), Bytes(g.Large))
}

// MemoryOfZeros says how much of a guest's memory holds only zeros.
func MemoryOfZeros(bytes int64) string {
	return Bytes(bytes) + " of the guest's pages contain only zeros"
}
