package studyfile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// hash covers everything that decides the meaning of the trials; a folder is continued only with the same hash.
func hash(parts ...any) string {
	h := sha256.New()
	e := json.NewEncoder(h)
	for _, p := range parts {
		if err := e.Encode(p); err != nil { // plain data: cannot fail
			panic(err)
		}
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}
