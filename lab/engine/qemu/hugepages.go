//go:build linux

package qemu

import (
	"context"
	"fmt"
	"os"
	"path"
	"strconv"

	"tare/lab/engine"
	"tare/lab/journal"
	"tare/lab/proc"
)

// KindHugePages is the journal's kind for huge pages of one size that Tare added on the host. Its target is the file with
// their number.
const KindHugePages = "huge-pages"

// detailPages is the key under which an entry keeps the earlier number.
const detailPages = "pages"

// hugePagesFolder contains a folder for each size of huge pages (the kernel's Documentation/admin-guide/mm/hugetlbpage.rst).
const hugePagesFolder = "/sys/kernel/mm/hugepages"

// reserve makes the host's kernel keep enough free huge pages of a size for this much memory. It does nothing where size is 0 or
// enough are free already.
func reserve(k engine.Kind, changes *journal.Changes, size, memory int64) error {
	if size == 0 {
		return nil
	}
	what := fmt.Sprintf("huge-pages: %d of %d MiB", memory/size, size>>20)
	folder := fmt.Sprintf("%s/hugepages-%dkB", hugePagesFolder, size>>10)
	file := path.Join(folder, "nr_hugepages")
	all, err := number(file)
	if os.IsNotExist(err) {
		return k.Unsupported(what, "the host's kernel has none of that size")
	}
	if err != nil {
		return err
	}
	free, err := number(path.Join(folder, "free_hugepages"))
	if err != nil {
		return err
	}
	promised, err := number(path.Join(folder, "resv_hugepages"))
	if err != nil {
		return err
	}
	missing := memory/size - (free - promised)
	if missing <= 0 {
		return nil
	}
	available, err := proc.Host.Memory("MemAvailable")
	if err != nil {
		return err
	}
	if missing*size > available { // the kernel would take all memory before it gave up
		return k.Unsupported(what, fmt.Sprintf("%d more are needed but only %d MiB of memory are available: use a smaller instance", missing, available>>20))
	}
	if err := changes.Announce(journal.Entry{Kind: KindHugePages, Target: file, Detail: map[string]string{detailPages: strconv.FormatInt(all, 10)}}); err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(strconv.FormatInt(all+missing, 10)), 0); err != nil {
		return err
	}
	got, err := number(file)
	if err == nil && got < all+missing {
		err = k.Unsupported(what, fmt.Sprintf("the host's kernel found room for only %d of %d more: use a smaller instance, or reserve them at boot (kernel option hugepages=)", got-all, missing))
	}
	return err
}

// giveBack undoes an entry of reserve.
func giveBack(_ context.Context, e journal.Entry) error {
	// The path is from Tare's own journal, but Tare writes only to a number of huge pages.
	if ok, err := path.Match(hugePagesFolder+"/hugepages-*kB/nr_hugepages", e.Target); err != nil || !ok {
		return fmt.Errorf("%q is not a file with a number of huge pages", e.Target)
	}
	if _, err := strconv.ParseUint(e.Detail[detailPages], 10, 63); err != nil {
		return err
	}
	return os.WriteFile(e.Target, []byte(e.Detail[detailPages]), 0)
}

func number(file string) (int64, error) {
	text, err := proc.Host.Read(file)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
}

// hugePagesOf is the size in bytes of the host's huge pages that back this much memory of a process; 0 for ordinary pages.
func hugePagesOf(pid int, memory int64) (int64, error) {
	all, err := proc.Backings(pid)
	if err != nil {
		return 0, err
	}
	return hugePagesIn(all, memory), nil
}

// hugePagesIn is hugePagesOf for the mappings of a process.
func hugePagesIn(all []proc.Backing, memory int64) int64 {
	of := map[int64]int64{} // bytes that are mapped, by the size of their pages
	for _, b := range all {
		of[b.PageSize] += int64(b.End - b.Start)
	}
	for size, mapped := range of {
		if size > int64(os.Getpagesize()) && mapped >= memory {
			return size
		}
	}
	return 0
}
