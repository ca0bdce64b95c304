package notebook

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// How the layers of an image in a registry are compressed.
const (
	CompressionNone = "none"
	CompressionGzip = "gzip"
	CompressionZstd = "zstd"
	// CompressionEstargz is gzip for each file, and a list of the files, so that a container can start before its layers are there.
	CompressionEstargz = "estargz"
)

// Compressions are all of these.
var Compressions = []string{CompressionNone, CompressionGzip, CompressionZstd, CompressionEstargz}

// MostLayers is the greatest number of layers of an image: Docker takes no more than 127 (overlay2), of which it makes one itself.
const MostLayers = 100

// Pull is how a guest's start gets its image from a registry. The zero value: its engine has the image already.
type Pull struct {
	Compression string // one of Compressions
	Layers      int    // 1 to MostLayers
}

// noPull is the text of the zero value.
const noPull = "no"

// None reports whether nothing is pulled.
func (p Pull) None() bool { return p == Pull{} }

// Text is what ParsePull reads: "no", "gzip:8".
func (p Pull) Text() string {
	if p.None() {
		return noPull
	}
	return fmt.Sprintf("%s:%d", p.Compression, p.Layers)
}

// ParsePull reads "no", or a compression and a number of layers, such as "gzip:8".
func ParsePull(text string) (Pull, error) {
	if text == noPull {
		return Pull{}, nil
	}
	compression, number, _ := strings.Cut(text, ":")
	layers, err := strconv.Atoi(number)
	if err != nil || !slices.Contains(Compressions, compression) || layers < 1 || layers > MostLayers || number != strconv.Itoa(layers) {
		return Pull{}, fmt.Errorf("%q: must be %s, or COMPRESSION:LAYERS such as gzip:8; COMPRESSION is one of %s, LAYERS is 1 to %d", text, noPull, strings.Join(Compressions, ", "), MostLayers)
	}
	return Pull{compression, layers}, nil
}

// PullOf is how starts of the treatment get their image.
func PullOf(t Treatment) Pull {
	p, err := ParsePull(FactorPull.Of(t))
	if err != nil { // the factor is missing, or from a newer version
		return Pull{}
	}
	return p
}
