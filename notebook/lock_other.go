//go:build !unix || aix || solaris

package notebook

import (
	"fmt"
	"os"
	"runtime"
)

// lockFolder fails: a folder is written where the laboratory runs, on Linux. Reading needs no lock.
func lockFolder(dir string) (*os.File, error) {
	return nil, fmt.Errorf("%s cannot be written on %s: results are read here, and measured on Linux", dir, runtime.GOOS)
}
