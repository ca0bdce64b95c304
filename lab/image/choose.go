package image

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/sys/cpu"
)

const (
	maxNested  = 4   // indexes inside each other
	maxChoices = 256 // manifests read to choose one
)

// chooser looks for the images of an index that this host can run.
type chooser struct {
	check check
	read  int // manifests read so far
	seen  []listed
}

// candidate is an image that this host can run.
type candidate struct {
	descriptor v1.Descriptor // in the outermost index
	image      v1.Image
	level      int // level of the CPU that it needs
}

// listed is an entry of an index, for an error.
type listed struct {
	descriptor v1.Descriptor
	note       string // why it does not fit, where its descriptor does not say so
}

// choose picks the image of an index for this host, and of this name or digest if one is given. Signatures, attestations and other
// artifacts are not images. An image without a platform is for the platform in its configuration.
//
// With strict exactly one image must fit; otherwise choose takes the first, as container engines do. Of one image for several
// levels of this CPU it takes the lowest, which runs on every platform: an emulated CPU may have no other.
func choose(idx v1.ImageIndex, want string, strict bool, c check) (v1.Image, error) {
	ch := &chooser{check: c}
	fit, err := ch.fitting(idx, want, 0)
	if err != nil {
		return nil, err
	}
	switch {
	case len(fit) == 0 && want != "":
		return nil, fmt.Errorf("no image %q for linux/%s; found:%s", want, runtime.GOARCH, describe(ch.seen))
	case len(fit) == 0:
		return nil, fmt.Errorf("no image for linux/%s; found:%s", runtime.GOARCH, describe(ch.seen))
	}
	best := lowest(fit)
	if strict && slices.ContainsFunc(fit, func(o candidate) bool { return ambiguous(best, o) }) {
		var several []listed
		for _, o := range fit {
			several = append(several, listed{descriptor: o.descriptor})
		}
		return nil, fmt.Errorf("several images fit; choose one with REFERENCE:NAME or REFERENCE@DIGEST:%s", describe(several))
	}
	return best.image, nil
}

// lowest is the first of the candidates with the lowest level.
func lowest(fit []candidate) candidate {
	return slices.MinFunc(fit, func(a, b candidate) int { return cmp.Compare(a.level, b.level) })
}

// ambiguous reports whether only the user can choose between the two.
func ambiguous(a, b candidate) bool {
	return a.descriptor.Digest != b.descriptor.Digest && (a.level == b.level || nameOf(a.descriptor) != nameOf(b.descriptor))
}

// fitting returns the images of an index that this host can run. An index inside it contributes at most one.
func (ch *chooser) fitting(idx v1.ImageIndex, want string, depth int) (fit []candidate, err error) {
	if depth > maxNested {
		return nil, hostile("indexes more than %d deep", maxNested)
	}
	m, err := idx.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("its index: %w", err)
	}
	for _, d := range m.Manifests {
		if !d.MediaType.IsImage() && !d.MediaType.IsIndex() || d.Annotations["vnd.docker.reference.type"] != "" {
			continue // artifacts, attestations
		}
		note, level, ok := "", 0, false
		if want == "" || want == d.Annotations[refName] || want == d.Annotations[containerdName] || want == d.Digest.String() {
			level, ok = platformLevel(d.Platform)
		}
		if ok {
			var one *candidate
			if one, note, err = ch.candidate(idx, d, depth); err != nil {
				return nil, err
			}
			if one != nil {
				one.level = max(one.level, level)
				fit = append(fit, *one)
			}
		}
		ch.seen = append(ch.seen, listed{d, note})
	}
	return fit, nil
}

// candidate reads the image of a descriptor of idx; nil, with a note why, where this host cannot run it.
func (ch *chooser) candidate(idx v1.ImageIndex, d v1.Descriptor, depth int) (_ *candidate, note string, err error) {
	if ch.read++; ch.read > maxChoices {
		return nil, "", hostile("an index of more than %d images for this host", maxChoices)
	}
	if err := ch.check(d); errors.Is(err, fs.ErrNotExist) { // a layout may lack images that its indexes name
		return nil, "not in the layout", nil
	} else if err != nil {
		return nil, "", err
	}
	if d.MediaType.IsIndex() {
		inner, err := idx.ImageIndex(d.Digest)
		if err != nil {
			return nil, "", err
		}
		if err := verify(inner, d.Digest); err != nil {
			return nil, "", err
		}
		fit, err := ch.fitting(inner, "", depth+1)
		if err != nil || len(fit) == 0 {
			return nil, "an index", err
		}
		best := lowest(fit)
		best.descriptor = d
		return &best, "", nil
	}
	img, err := idx.Image(d.Digest)
	if err != nil {
		return nil, "", err
	}
	if err := verify(img, d.Digest); err != nil {
		return nil, "", err
	}
	m, err := img.Manifest()
	if err != nil {
		return nil, "", fmt.Errorf("the manifest %s: %w", d.Digest, err)
	}
	if !isImage(m) {
		return nil, fmt.Sprintf("an artifact (%.60q)", m.Config.MediaType), nil
	}
	if !platformless(d.Platform) {
		return &candidate{descriptor: d, image: img}, "", nil
	}
	if err := ch.check(m.Config); err != nil {
		return nil, "", err
	}
	raw, err := img.RawConfigFile()
	if err != nil {
		return nil, "", err
	}
	cfg, err := v1.ParseConfigFile(bytes.NewReader(raw))
	if err != nil {
		return nil, "", hostile("the configuration %s is not an image's: %v", m.Config.Digest, err)
	}
	level, ok := platformLevel(&v1.Platform{OS: cfg.OS, Architecture: cfg.Architecture, Variant: cfg.Variant})
	if !ok {
		return nil, fmt.Sprintf("for %.60q by its configuration", cfg.OS+"/"+cfg.Architecture), nil
	}
	return &candidate{descriptor: d, image: img, level: level}, "", nil
}

// isImage reports whether a manifest is a container image's. A signature's, for example, names a configuration of another type.
func isImage(m *v1.Manifest) bool {
	switch m.Config.MediaType {
	case types.OCIConfigJSON, types.DockerConfigJSON, "application/octet-stream": // the last is early Docker's
		return true
	}
	return false
}

// platformless reports whether a descriptor leaves the platform to the configuration.
func platformless(p *v1.Platform) bool { return p == nil || p.Architecture == "" }

// platformLevel reports whether this host runs images for a platform, and the level of its CPU that they need; 0 is the lowest. An
// unnamed platform is any.
// is not named is any.
func platformLevel(p *v1.Platform) (level int, ok bool) {
	if platformless(p) {
		return 0, true
	}
	if p.OS != "" && p.OS != "linux" || p.Architecture != runtime.GOARCH {
		return 0, false
	}
	i := slices.Index(levels[p.Architecture], p.Variant)
	switch {
	case p.Variant == "":
		return 0, true
	case i < 0: // equal to any other, after the known ones
		return len(levels[p.Architecture]), true
	case p.Architecture == "amd64":
		return i, i <= amd64Level()
	}
	return i, true
}

// levels are the architectures' variants, the lowest first.
var levels = map[string][]string{
	"amd64": {"v1", "v2", "v3", "v4"},
	"arm64": {"v8", "v8.1", "v8.2", "v8.3", "v8.4", "v8.5", "v8.6", "v8.7", "v8.8", "v8.9", "v9"},
}

// amd64Level is the index in levels of what this host's CPU can run (x86-64 psABI, "micro-architecture levels").
func amd64Level() int {
	x := cpu.X86
	switch {
	case !x.HasSSE3 || !x.HasSSSE3 || !x.HasSSE41 || !x.HasSSE42 || !x.HasPOPCNT || !x.HasCX16:
		return 0
	case !x.HasAVX || !x.HasAVX2 || !x.HasBMI1 || !x.HasBMI2 || !x.HasFMA:
		return 1
	case !x.HasAVX512F || !x.HasAVX512BW || !x.HasAVX512CD || !x.HasAVX512DQ || !x.HasAVX512VL:
		return 2
	}
	return 3
}

// Annotations that name an image in a layout: the OCI specification's, and containerd's.
const (
	refName        = "org.opencontainers.image.ref.name"
	containerdName = "io.containerd.image.name"
)

func nameOf(d v1.Descriptor) string {
	return cmp.Or(d.Annotations[refName], d.Annotations[containerdName])
}

// describe lists images, for an error.
func describe(ds []listed) string {
	const most = 20
	var b strings.Builder
	before := "\n\t"
	if len(ds) == 1 {
		before = " "
	}
	for i, l := range ds {
		if i == most {
			fmt.Fprintf(&b, "\n\tand %d more", len(ds)-most)
			break
		}
		d := l.descriptor
		b.WriteString(before + d.Digest.String())
		if d.Platform != nil {
			fmt.Fprintf(&b, " %.60q", d.Platform.String())
		}
		for _, k := range []string{refName, containerdName} {
			if n := d.Annotations[k]; n != "" {
				fmt.Fprintf(&b, " name %.100q", n)
			}
		}
		if l.note != "" {
			fmt.Fprintf(&b, ", %s", l.note)
		}
	}
	if len(ds) == 0 {
		return " none"
	}
	return b.String()
}

// verify checks a manifest against the digest that it was found by.
func verify(m interface{ RawManifest() ([]byte, error) }, want v1.Hash) error {
	raw, err := m.RawManifest()
	if err != nil {
		return err
	}
	got, _, err := v1.SHA256(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	if got != want {
		return hostile("a manifest is %s; must be %s", got, want)
	}
	return nil
}
