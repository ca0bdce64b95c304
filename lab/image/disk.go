package image

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"tare/lab/proc"
)

const (
	diskBlock    = 4096
	diskHeadroom = 32 << 30 // bytes that a guest may write, including a database of many rows; the file is sparse, so unwritten ones cost nothing
	diskInodes   = 1 << 16  // files that a guest may make
	diskInode    = 256      // bytes of one inode in the table
	diskLabel    = "tare"
	diskJournal  = 64 // MiB of its journal, included in the size
	diskVersion  = 3  // part of the file's name: raise it when disks are made in another way
)

// Disk returns the path of a file with an ext4 file system. Its root has the folder's content, and it has about 32 GiB of free
// space. mke2fs makes it once, and it is kept next to the tree. Nobody may write to it: a guest gets a copy-on-write layer over it.
//
// It has a journal, although no guest's disk is ever mounted again after a crash. The disk of every installed system has one.
// Without a journal Linux (6.1, for example) flushes nothing at an fdatasync(2) of existing blocks, which is what a database does.
func (t *Tree) Disk(ctx context.Context) (_ string, err error) {
	shelf := filepath.Dir(t.Dir)
	path := filepath.Join(shelf, fmt.Sprintf("disk%d.ext4", diskVersion))
	defer func() {
		if err != nil {
			err = fmt.Errorf("disk of %s: %w", t.Digest, err)
		}
	}()
	unlock, err := t.store.lock(ctx, t.Digest)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	tool, err := findTool("mke2fs")
	if err != nil {
		return "", err
	}
	w, err := t.store.workspace()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	tmp := filepath.Join(w.dir, "disk")
	if err := t.makeDisk(ctx, tool, tmp, w); err != nil {
		return "", noSpace(err, t.store.root)
	}
	return path, os.Rename(tmp, path)
}

// findTool finds a program of e2fsprogs, which Debian keeps in a folder that only root's PATH has.
func findTool(name string) (string, error) {
	for _, candidate := range []string{name, "/usr/sbin/" + name, "/sbin/" + name} {
		if path, err := exec.LookPath(candidate); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s, which makes ext4 file systems, is not installed: apt-get install e2fsprogs", name)
}

// setRootMode sets the mode of the root folder of a disk.
func setRootMode(ctx context.Context, path string, mode uint32, w *workspace, said *proc.Tail) error {
	tool, err := findTool("debugfs")
	if err != nil {
		return err
	}
	return run(ctx, func(cmd *exec.Cmd) {
		cmd.Stderr = said
		cmd.ExtraFiles = []*os.File{w.lock} // see workspace
	}, nil, tool, "-w", "-R", fmt.Sprintf("set_inode_field / mode 0%o", mode), path)
}

func (t *Tree) makeDisk(ctx context.Context, tool, path string, w *workspace) error {
	var content, inodes int64
	// An fs.FS would refuse names that are not UTF-8, but an image may have some.
	err := filepath.WalkDir(t.Dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		inodes++
		content += (fi.Size() + diskBlock - 1) / diskBlock * diskBlock
		return context.Cause(ctx)
	})
	if err != nil {
		return err
	}
	inodes += diskInodes
	size := content + content*15/100 + inodes*diskInode + diskJournal<<20 + diskHeadroom
	size = (size + diskBlock - 1) / diskBlock * diskBlock
	if err := room(filepath.Dir(path), content, t.store.limits.reserve); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
		return err
	}
	st, err := os.Stat(t.Dir)
	if err != nil {
		return err
	}
	root := st.Sys().(*syscall.Stat_t)
	// The random parts of a file system come from the content's digest here.
	h := sha256.Sum256([]byte(t.Digest))
	uuid := fmt.Sprintf("%x-%x-%x-%x-%x", h[:4], h[4:6], h[6:8], h[8:10], h[10:16])
	said := &proc.Tail{}
	err = run(ctx, func(cmd *exec.Cmd) {
		cmd.Stderr = said
		cmd.ExtraFiles = []*os.File{w.lock} // see workspace
	}, nil, tool, "-q", "-F", "-t", "ext4", "-b", strconv.Itoa(diskBlock), "-I", strconv.Itoa(diskInode),
		"-O", "has_journal", "-J", "size="+strconv.Itoa(diskJournal), "-m", "0", "-N", strconv.FormatInt(inodes, 10), "-L", diskLabel,
		"-U", uuid, "-E", "hash_seed="+uuid+",lazy_itable_init=1,lazy_journal_init=1,nodiscard,root_owner="+fmt.Sprintf("%d:%d", root.Uid, root.Gid), "-d", t.Dir, path)
	if err == nil && root.Mode&^syscall.S_IFMT != 0o755 { // mke2fs makes the root with this mode; before e2fsprogs 1.47.1 it has no option for another
		err = setRootMode(ctx, path, root.Mode, w, said)
	}
	if err != nil {
		return fmt.Errorf("%w%s", err, outputTail(said))
	}
	// Write it to the disk now: later the write-back would disturb a trial.
	f, err = os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(unix.Fsync(int(f.Fd())), f.Close())
}
