package words

import (
	"fmt"

	"tare/notebook"
)

var memoryGivenBack = map[string]string{
	notebook.MemoryByEnd:      "its end: no process outside maps these pages",
	notebook.MemoryByPressure: "the kernel itself when memory is short: pages of files that no other process maps",
	notebook.MemoryByKSM:      "KSM: anonymous pages that are alike, where their process allows it (madvise or prctl; QEMU's guest RAM does)",
	notebook.MemoryByOneFile:  "one file in place of copies: pages of files that are alike, of a root filesystem that is shared, say",
	notebook.MemoryByMapping:  "mapping the file in place of copying it: anonymous pages as a file's, which KSM does not merge",
}

// MemoryGivenBack says by what means memory would be given back.
func MemoryGivenBack(by string) string { return memoryGivenBack[by] }

// MemoryCaveats are the sentences that belong to an account of memory: what it is not, and what is not in it.
func MemoryCaveats(a *notebook.MemoryAccount) (all []string) {
	if a.Withheld != "" {
		return append(a.Missing, "These are the kernel's own sums (smaps_rollup), and all that can be said: "+a.Withheld+".")
	}
	all = append(all, a.Missing...)
	if a.Unseen > 0 {
		all = append(all, fmt.Sprintf("Of the host's other processes %s may not be read, or ended during the scan; what they have is not in the account.", Thousands(a.Unseen)))
	}
	if a.Changed > 0 {
		all = append(all, fmt.Sprintf("%s changed during the scan: counted where they were seen first, and as no duplicates.", Count(a.Changed, "page")))
	}
	if a.Unread > 0 {
		all = append(all, fmt.Sprintf("The content of %s cannot be read: counted as no duplicates.", Count(a.Unread, "page")))
	}
	if a.Spilled > 0 {
		all = append(all, fmt.Sprintf("%d MiB of the list of pages lay in a file, beyond --max-memory: the figures are the same, and took longer.", (a.Spilled+notebook.MiB-1)/notebook.MiB))
	}
	if !a.Contents {
		all = append(all, "Contents were not compared: what could be shared and is not is not known.")
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
	return fmt.Sprintf("of which mapped as huge pages %s, parts of larger pages %s", Bytes(g.Huge), Bytes(g.Large))
}

// MemoryOfZeros says how much of a guest's memory holds only zeros.
func MemoryOfZeros(bytes int64) string {
	return Bytes(bytes) + " of the guest's pages hold nothing but zeros"
}
