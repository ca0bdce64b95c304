// Package image makes one root filesystem and gives each platform the form of it that it needs (design,
// section 4): a folder for bare metal and OCI runtimes, a tar stream for an engine, a disk for a VM. Everything is
// kept by content; an interrupted build leaves no half image.
package image

import (
	"context"
	"io"
)

// Store is a folder of images and trees, by content. Several processes may use it at once.
type Store struct{ root string }

// Tree is a folder kept by content, read-only to all who use it.
type Tree struct {
	Digest string // "sha256:…" of the content
	Dir    string // the folder on the host
	store  *Store
}

// Config is what an image says about how its programs want to be run.
type Config struct {
	Env        []string `json:"env,omitempty"`
	WorkingDir string   `json:"working_dir,omitempty"`
	Entrypoint []string `json:"entrypoint,omitempty"`
	Cmd        []string `json:"cmd,omitempty"`
	UID        uint32   `json:"uid,omitempty"` // resolved from the image's own passwd file
	GID        uint32   `json:"gid,omitempty"`
}

// Image is a root filesystem with its configuration. Its folder has ruler.WorkDir, ruler.ScratchDir (mode 1777)
// and ruler.RunDir, and /proc, /sys, /dev and /tmp, as folders to mount on, whatever the image brought.
type Image struct {
	Tree
	Reference string // what was asked for
	Config    Config
	Warnings  []string // what could not be kept: device nodes, extended attributes, …
}

// Recipe is a Debian root built from packages.
type Recipe struct {
	Suite    string // "trixie"
	Packages []string
}

// Progress is told, in a few words, what long work is doing now. May be nil.
type Progress func(what string)

// The methods that others rely on, for the reader; see the files beside this one.
var _ interface {
	Debian(context.Context, Recipe, Progress) (*Image, error)
	OCI(ctx context.Context, ref string, p Progress) (*Image, error)
	Files(ctx context.Context, files map[string]Source) (*Tree, error)
} = (*Store)(nil)

var _ interface {
	Tar(w io.Writer) error                    // the folder as an uncompressed tar stream
	Disk(ctx context.Context) (string, error) // path of an ext4 file-system image of the folder, cached
} = (*Tree)(nil)

// Source is one file of a tree made with Store.Files.
type Source struct {
	Path string // file on the host to copy, or
	Data []byte // the content itself
	Exec bool
}
