package image

import (
	"context"
	"errors"
	"io"
)

var errLater = errors.New("image: not written yet")

// OpenStore opens the store in folder root, making it where it is not there.
func OpenStore(root string) (*Store, error) { return nil, errLater }

// Sweep removes what builds of dead processes left in the store's temporary folder.
func (s *Store) Sweep() (removed []string, err error) { return nil, errLater }

// Debian makes, or finds, the root of a recipe.
func (s *Store) Debian(ctx context.Context, r Recipe, p Progress) (*Image, error) {
	return nil, errLater
}

// OCI makes, or finds, the root of an OCI image.
func (s *Store) OCI(ctx context.Context, ref string, p Progress) (*Image, error) {
	return nil, errLater
}

// Files makes, or finds, a tree of files.
func (s *Store) Files(ctx context.Context, files map[string]Source) (*Tree, error) {
	return nil, errLater
}

// Tar writes the folder as an uncompressed tar stream.
func (t *Tree) Tar(w io.Writer) error { return errLater }

// Disk gives the path of an ext4 image of the folder.
func (t *Tree) Disk(ctx context.Context) (string, error) { return "", errLater }
