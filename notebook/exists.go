package notebook

import (
	"os"
	"path/filepath"
)

// Exists says whether dir holds a study's folder that Open would go on with.
func Exists(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, studyFile))
	return err == nil
}
