// Package image makes one root filesystem and gives it to each platform in the form that it needs (design, section 4): a folder for
// bare metal and OCI runtimes, a tar stream for an engine, a disk for a VM. It keeps everything by content. An interrupted build
// leaves no incomplete image.
//
// A Store is a folder of images. Store.Debian makes an image from Debian packages, Store.OCI from any OCI image, and Store.Files
// makes a tree of a workload's own files. The result is a Tree: a folder that nobody changes any more, with Tree.Tar and Tree.Disk
// for its other forms.
//
// Archives are not trusted. Unpacking never touches anything outside its folder (every operation goes through os.Root). It is
// bounded in entries, bytes, names and depth, leaves free space on the file system, and refuses a hostile archive with an error.
// See unpack.go.
package image

// Store is a folder of images and trees, by content. Several processes and goroutines may use it at the same time.
type Store struct {
	root   string
	limits limits
}

// Tree is a folder kept by content, which all its users only read.
type Tree struct {
	Digest string // "sha256:…" of the content
	Dir    string // the folder on the host
	store  *Store
}

// Config is how an image wants its programs to be run.
type Config struct {
	Env        []string `json:"env,omitempty"` // always with a PATH: the engines' own where the image has none
	WorkingDir string   `json:"working_dir,omitempty"`
	Entrypoint []string `json:"entrypoint,omitempty"`
	Cmd        []string `json:"cmd,omitempty"`
	UID        uint32   `json:"uid,omitempty"` // resolved from the image's own passwd file
	GID        uint32   `json:"gid,omitempty"`
	Groups     []uint32 `json:"groups,omitempty"` // the user's supplementary groups, from the image's own group file
	Home       string   `json:"home,omitempty"`   // the user's, from the passwd file; empty in older records of the store
}

// Image is a root filesystem with its configuration. Its folder has the mount points ruler.WorkDir, ruler.ScratchDir (mode 1777)
// and ruler.RunDir, and /proc, /sys, /dev and /tmp, whatever the image has.
//
// The digest of an OCI image is that of its configuration (Docker's image ID). It covers the content of every layer, and does not
// depend on where the image comes from. The digest of a Debian root is that of the tar stream it was unpacked from.
type Image struct {
	Tree
	Reference string // the requested name
	From      string // where it was found, in words: "registry index.docker.io", "the Docker daemon", …
	Base      string // digest of the image without volumes; empty: it has none
	Config    Config
	Warnings  []string // what could not be kept: device nodes, extended attributes, …
}

// Recipe is a Debian root built from packages.
type Recipe struct {
	Suite    string // "trixie"
	Packages []string
}

// Progress is called with a few words about the current step of long work. It may be nil. Only one goroutine at a time calls it.
type Progress func(what string)

func (p Progress) say(what string) {
	if p != nil {
		p(what)
	}
}

// Source is a file of a tree made with Store.Files.
type Source struct {
	Path string // file on the host to copy, or
	Data []byte // the content itself
	Exec bool
}
