package image

import "path/filepath"

// Has reports whether the store in a folder has the root of a recipe. It changes nothing. A store that cannot be read has nothing.
func Has(folder string, r Recipe) bool {
	abs, err := filepath.Abs(folder)
	if err != nil {
		return false
	}
	key, err := r.key()
	if err != nil {
		return false
	}
	_, rec, err := (&Store{root: abs, limits: defaultLimits}).recall(key)
	return err == nil && rec != nil
}
