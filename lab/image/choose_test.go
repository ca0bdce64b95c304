package image

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// says makes an image whose command says which it is, for this host or for what change says.
func says(t testing.TB, name string, change func(*v1.ConfigFile)) v1.Image {
	t.Helper()
	return imageOf(t, func(c *v1.ConfigFile) {
		c.Config.Cmd = []string{name}
		if change != nil {
			change(c)
		}
	}, archiveOf(t, file("f", name)))
}

// artifact makes what is a manifest like an image's, with a configuration of another type.
func artifact(t testing.TB, kind string) v1.Image {
	t.Helper()
	return mutate.ConfigMediaType(says(t, "artifact", func(c *v1.ConfigFile) { c.OS, c.Architecture = "", "" }), types.MediaType(kind))
}

func entryOf(img mutate.Appendable, platform *v1.Platform, name string) mutate.IndexAddendum {
	d := v1.Descriptor{Platform: platform}
	if name != "" {
		d.Annotations = map[string]string{refName: name}
	}
	return mutate.IndexAddendum{Add: img, Descriptor: d}
}

// commandOf is the command of the image that is chosen from a layout of the entries; "" with an error.
func commandOf(t testing.TB, want string, entries ...mutate.IndexAddendum) (string, error) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "layout")
	if _, err := layout.Write(dir, mutate.AppendManifests(empty.Index, entries...)); err != nil {
		t.Fatal(err)
	}
	f, err := fromLayout(dir, want, "the layout")
	if err != nil {
		return "", err
	}
	return f.config.Config.Cmd[0], nil
}

// What stands next to an image in an index is not another image: signatures, artifacts, and images for other hosts, whether their descriptors or
// only their configurations say so.
func TestChoose(t *testing.T) {
	const cosign, sbom = "application/vnd.dev.cosign.artifact.sig.v1+json", "application/vnd.oci.empty.v1+json"
	foreign := "arm64"
	if runtime.GOARCH == foreign {
		foreign = "amd64"
	}
	here, there := &v1.Platform{OS: "linux", Architecture: runtime.GOARCH}, &v1.Platform{OS: "linux", Architecture: foreign}
	theirs := func(c *v1.ConfigFile) { c.Architecture = foreign }
	nowhere := func(c *v1.ConfigFile) { c.OS, c.Architecture = "", "" }
	mine := says(t, "mine", nil)
	inner := func(entries ...mutate.IndexAddendum) v1.ImageIndex {
		return mutate.AppendManifests(empty.Index, entries...)
	}
	for _, tt := range []struct {
		name    string
		want    string
		entries []mutate.IndexAddendum
		got     string // the command, or a part of the error
	}{
		{"a signature after it", "", []mutate.IndexAddendum{entryOf(mine, nil, "app:1"), entryOf(artifact(t, cosign), nil, "")}, "mine"},
		{"a signature before it", "", []mutate.IndexAddendum{entryOf(artifact(t, cosign), nil, ""), entryOf(mine, here, "")}, "mine"},
		{"an artifact that says it is for this host", "", []mutate.IndexAddendum{entryOf(artifact(t, sbom), here, ""), entryOf(mine, here, "")}, "mine"},
		{"in an index inside", "", []mutate.IndexAddendum{entryOf(inner(entryOf(artifact(t, sbom), nil, ""), entryOf(mine, nil, "")), nil, "")}, "mine"},
		{"an index of artifacts", "", []mutate.IndexAddendum{entryOf(inner(entryOf(artifact(t, sbom), nil, "")), nil, ""), entryOf(mine, nil, "")}, "mine"},
		{"configurations tell", "", []mutate.IndexAddendum{entryOf(says(t, "theirs", theirs), nil, ""), entryOf(mine, nil, "")}, "mine"},
		{"configurations tell, of one system", "", []mutate.IndexAddendum{entryOf(says(t, "w", func(c *v1.ConfigFile) { c.OS = "windows" }), nil, ""), entryOf(mine, nil, "")}, "mine"},
		{"neither tells", "", []mutate.IndexAddendum{entryOf(says(t, "any", nowhere), nil, "")}, "any"},
		{"descriptors tell", "", []mutate.IndexAddendum{entryOf(says(t, "theirs", theirs), there, ""), entryOf(mine, here, "")}, "mine"},
		{"an unknown platform", "", []mutate.IndexAddendum{entryOf(says(t, "u", nowhere), &v1.Platform{OS: "unknown", Architecture: "unknown"}, ""), entryOf(mine, here, "")}, "mine"},
		{"two names of one", "", []mutate.IndexAddendum{entryOf(mine, nil, "a"), entryOf(mine, nil, "b")}, "mine"},
		{"by its name", "b", []mutate.IndexAddendum{entryOf(mine, nil, "a"), entryOf(says(t, "other", nil), nil, "b")}, "other"},
		{"two", "", []mutate.IndexAddendum{entryOf(mine, nil, "a"), entryOf(says(t, "other", nil), nil, "b")}, "several images fit"},
		{"two, inside", "", []mutate.IndexAddendum{entryOf(inner(entryOf(mine, here, ""), entryOf(says(t, "other", nil), here, "")), nil, "")}, "mine"},
		{"a signature, by its name", "s", []mutate.IndexAddendum{entryOf(mine, nil, "a"), entryOf(artifact(t, cosign), nil, "s")}, `name "s", an artifact ("` + cosign + `")`},
		{"only a signature", "", []mutate.IndexAddendum{entryOf(artifact(t, cosign), nil, "")}, "no image for linux/" + runtime.GOARCH},
		{"none", "", nil, "found: none"},
		{"only theirs", "", []mutate.IndexAddendum{entryOf(says(t, "theirs", theirs), nil, "")}, `for "linux/` + foreign + `" by its configuration`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := commandOf(t, tt.want, tt.entries...)
			if got != tt.got && (err == nil || !strings.Contains(err.Error(), tt.got)) {
				t.Errorf("%q, %v; want %q", got, err, tt.got)
			}
		})
	}
}

// Of one image for several levels of the CPU the lowest is taken, and none above what the CPU can do.
func TestChooseLevel(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the levels are amd64's")
	}
	level := func(v string) mutate.IndexAddendum {
		return entryOf(says(t, v, nil), &v1.Platform{OS: "linux", Architecture: "amd64", Variant: v}, "")
	}
	for _, tt := range []struct {
		entries []mutate.IndexAddendum
		got     string
	}{
		{[]mutate.IndexAddendum{level("v4"), level("v1")}, "v1"},
		{[]mutate.IndexAddendum{level("v1"), level("v4")}, "v1"},
		{[]mutate.IndexAddendum{level("odd"), level("v1")}, "v1"},
		{[]mutate.IndexAddendum{level("odd")}, "odd"},
	} {
		if got, err := commandOf(t, "", tt.entries...); got != tt.got {
			t.Errorf("at the top: %q, %v; want %q", got, err, tt.got)
		}
		nested := entryOf(mutate.AppendManifests(empty.Index, tt.entries...), nil, "")
		if got, err := commandOf(t, "", nested); got != tt.got {
			t.Errorf("inside: %q, %v; want %q", got, err, tt.got)
		}
	}
	for variant, want := range map[string]bool{"": true, "v1": true, "v2": amd64Level() >= 1, "v3": amd64Level() >= 2, "v4": amd64Level() >= 3} {
		if _, ok := platformLevel(&v1.Platform{OS: "linux", Architecture: "amd64", Variant: variant}); ok != want {
			t.Errorf("amd64/%s runs here: %t, want %t", variant, ok, want)
		}
	}
}

// An index may name what its layout does not hold.
func TestChooseWhatIsThere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "layout")
	lacking := says(t, "lacking", nil)
	if _, err := layout.Write(dir, mutate.AppendManifests(empty.Index, entryOf(lacking, nil, ""), entryOf(says(t, "mine", nil), nil, ""))); err != nil {
		t.Fatal(err)
	}
	h, err := lacking.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "blobs", h.Algorithm, h.Hex)); err != nil {
		t.Fatal(err)
	}
	f, err := fromLayout(dir, "", "the layout")
	if err != nil || f.config.Config.Cmd[0] != "mine" {
		t.Errorf("%+v, %v", f, err)
	}
	if _, err := fromLayout(dir, h.String(), "the layout"); err == nil || !strings.Contains(err.Error(), "not in the layout") {
		t.Error(err)
	}
}

// What no guest could be made of is refused before anything is unpacked, also where the store has an image with the same configuration.
func TestConfigurationRefused(t *testing.T) {
	s := newStore(t)
	a, b := archiveOf(t, file("a", "1")), archiveOf(t, file("b", "1"))
	whole := imageOf(t, nil, a)
	if _, err := s.OCI(t.Context(), writeLayout(t, whole), nil); err != nil {
		t.Fatal(err)
	}
	config, err := whole.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	// Two layers, and the configuration of one.
	two, err := mutate.ConfigFile(imageOf(t, nil, a, b), config)
	if err != nil {
		t.Fatal(err)
	}
	with := func(change func(*v1.Config)) v1.Image {
		return imageOf(t, func(c *v1.ConfigFile) { change(&c.Config) }, a)
	}
	for _, tt := range []struct {
		img  v1.Image
		want string
	}{
		{two, "it has 2 layers, but its configuration names 1"},
		{imageOf(t, nil), "it has no layers"},
		{with(func(c *v1.Config) { c.WorkingDir = "app" }), `working directory "app" is not an absolute path`},
		{with(func(c *v1.Config) { c.WorkingDir = "./app" }), "is not an absolute path"},
		{with(func(c *v1.Config) { c.WorkingDir = "/a\x00b" }), "zero byte"},
		{with(func(c *v1.Config) { c.Env = []string{"A=1", "B"} }), `"B" in its environment is not NAME=VALUE`},
		{with(func(c *v1.Config) { c.Env = []string{"=1"} }), "is not NAME=VALUE"},
		{with(func(c *v1.Config) { c.Cmd = []string{"a\x00"} }), "zero byte"},
		{with(func(c *v1.Config) { c.WorkingDir = "/a/b" }), "its working directory: archive refused"}, // a is a file
	} {
		_, err := s.OCI(t.Context(), writeLayout(t, tt.img), nil)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want one line with %q", err, tt.want)
		}
	}
	saved := filepath.Join(t.TempDir(), "saved.tar")
	text, err := whole.RawConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ layers, want string }{
		{`["a","b"]`, "it has 2 layers, but its configuration names 1"}, {`["",""]`, "does not say where layer 1 of 2 is"}, {`[]`, "it has 0 layers"},
		{`["/etc/passwd"]`, "escapes from parent"}, {`["../x"]`, "escapes from parent"},
	} {
		other := strings.Replace(string(text), "{", `{"author":"`+fmt.Sprint(tt.layers[:1], len(tt.layers))+`",`, 1)
		items := []item{file("manifest.json", `[{"Config":"c","Layers":`+tt.layers+`}]`), file("c", other), file("a", string(a)), file("b", string(b))}
		if err := os.WriteFile(saved, archiveOf(t, items...), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := s.OCI(t.Context(), saved, nil); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.layers, err, tt.want)
		}
	}
}

// The working directory is there, made through the image's own links where it was not.
func TestWorkingDir(t *testing.T) {
	for _, tt := range []struct {
		dir   string
		items []item
		made  string
	}{
		{"/srv/app", nil, "srv/app"}, {"//srv/./a b/", nil, "srv/a b"}, {"/a/../../b", nil, "b"}, {"/", nil, "."}, {"", nil, "."},
		{"/srv/app", []item{link("srv", "../../data")}, "data/app"}, {"/tmp/app", nil, "tmp/app"},
	} {
		s := newStore(t)
		img, err := s.OCI(t.Context(), writeLayout(t, imageOf(t, func(c *v1.ConfigFile) { c.Config.WorkingDir = tt.dir }, archiveOf(t, append(tt.items, file("f", ""))...))), nil)
		if err != nil {
			t.Errorf("%s: %v", tt.dir, err)
			continue
		}
		fi, err := os.Lstat(filepath.Join(img.Dir, tt.made))
		if err != nil || !fi.IsDir() || tt.made != "." && fi.Mode().Perm() != 0o755 {
			t.Errorf("%s: %v, %v", tt.dir, fi, err)
		}
	}
}

// An image that an earlier Tare made in another way is made again.
func TestEarlierForm(t *testing.T) {
	s := newStore(t)
	dir := writeLayout(t, imageOf(t, func(c *v1.ConfigFile) { c.Config.WorkingDir = "/srv/app" }, archiveOf(t, file("f", "1"))))
	img, err := s.OCI(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(img.Dir, "srv")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(filepath.Dir(img.Dir), recordName)
	var r record
	if err := readJSON(path, &r); err != nil {
		t.Fatal(err)
	}
	r.Form, r.Config.Home = 0, ""
	old, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, old, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		img, err = s.OCI(t.Context(), dir, nil)
		if err != nil || img.Config.Home != "/" {
			t.Fatalf("%+v, %v", img, err)
		}
		if _, err := os.Stat(filepath.Join(img.Dir, "srv/app")); err != nil {
			t.Error(err)
		}
	}
}

// The root folder keeps the owner and the mode that the image gives it.
func TestRootFolder(t *testing.T) {
	s := newStore(t)
	img, err := s.OCI(t.Context(), writeLayout(t, imageOf(t, nil, archiveOf(t, owned(dir("./", 0o711), 7, 8, 0o711), file("f", "")))), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, _, _ := strings.Cut(attributes(t, img.Dir), "\n"); !strings.HasPrefix(got, ". drwx--x--x 7:8 ") {
		t.Errorf("the root is %s", got)
	}
}

// An archive's index.json and blobs are read inside the folder that they were unpacked into, whatever links they are.
func TestLayoutLinksStayInside(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("root:x:0"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newStore(t)
	refused := func(ref string) {
		t.Helper()
		_, err := s.OCI(t.Context(), ref, nil)
		if err == nil || !strings.Contains(err.Error(), "escapes from parent") || strings.Contains(err.Error(), "invalid character") {
			t.Errorf("%s: %v", ref, err)
		}
	}
	arch := filepath.Join(t.TempDir(), "layout.tar")
	for _, target := range []string{secret, strings.Repeat("../", 40) + secret} {
		if err := os.WriteFile(arch, archiveOf(t, file("oci-layout", "{}"), link("index.json", target)), 0o644); err != nil {
			t.Fatal(err)
		}
		refused("docker-archive:" + arch)
	}
	img := imageOf(t, nil, archiveOf(t, file("f", "")))
	m, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range []func(dir string) error{
		func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "index.json")), os.Symlink(secret, filepath.Join(dir, "index.json")))
		},
		func(dir string) error {
			blobs := filepath.Join(dir, "blobs")
			return errors.Join(os.Rename(blobs, dir+".blobs"), os.Symlink(dir+".blobs", blobs))
		},
		func(dir string) error {
			blob := filepath.Join(dir, "blobs", "sha256", m.Layers[0].Digest.Hex)
			return errors.Join(os.Remove(blob), os.Symlink(secret, blob))
		},
	} {
		dir := writeLayout(t, img)
		if err := change(dir); err != nil {
			t.Fatal(err)
		}
		refused(dir)
	}
	// A pipe would be waited for.
	piped := writeLayout(t, img)
	blob := filepath.Join(piped, "blobs", "sha256", m.Layers[0].Digest.Hex)
	if err := errors.Join(os.Remove(blob), mkfifo(blob)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.OCI(t.Context(), piped, nil); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Error(err)
	}
}

// FuzzLayout reads an index, a manifest and a configuration that anybody may have written. The blobs have the names of their content, which
// stands in the index and the manifest for MANIFEST and CONFIG.
func FuzzLayout(f *testing.F) {
	const manifest = `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"CONFIG","size":SIZE},"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar","digest":"CONFIG","size":1}]}`
	const config = `{"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":["sha256:0000000000000000000000000000000000000000000000000000000000000000"]}}`
	entry := func(more string) string {
		return `{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"MANIFEST","size":SIZE` + more + `}`
	}
	f.Add(`{"schemaVersion":2,"manifests":[`+entry("")+`]}`, manifest, config, "")
	f.Add(`{"manifests":[`+entry(`,"platform":{"os":"linux","architecture":"amd64","variant":"v2"}`)+`,`+entry(`,"annotations":{"org.opencontainers.image.ref.name":"a"}`)+`]}`, manifest, config, "a")
	f.Add(`{"manifests":[{"mediaType":"application/vnd.oci.image.index.v1+json","digest":"MANIFEST","size":SIZE}]}`, `{"manifests":[{"digest":"CONFIG","size":SIZE,"mediaType":"application/vnd.oci.image.index.v1+json"}]}`, `{"manifests":null}`, "")
	f.Add(`{"manifests":[{"digest":"sha256:../../../../etc/passwd"}]}`, `[]`, `{"rootfs":null}`, "MANIFEST")
	f.Add(`{"manifests":[`+entry("")+`]}`, `{"config":{"digest":"sha512:","size":-1}}`, `{"config":{"WorkingDir":"a","Env":["x"]}}`, "")
	f.Fuzz(func(t *testing.T, index, manifest, config, want string) {
		dir := t.TempDir()
		blobs := filepath.Join(dir, "blobs", "sha256")
		if err := os.MkdirAll(blobs, 0o755); err != nil {
			t.Fatal(err)
		}
		put := func(text string) (digest, size string) {
			h, n, err := v1.SHA256(strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(blobs, h.Hex), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			return h.String(), fmt.Sprint(n)
		}
		digest, size := put(config)
		digest, size = put(strings.NewReplacer("CONFIG", digest, "SIZE", size).Replace(manifest))
		if err := os.WriteFile(filepath.Join(dir, "index.json"), []byte(strings.NewReplacer("MANIFEST", digest, "SIZE", size).Replace(index)), 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := fromLayout(dir, want, "the layout")
		if err != nil {
			return
		}
		checkFound(t, got)
	})
}

// checkFound holds what is true of every image that is not refused.
func checkFound(t *testing.T, f *found) {
	t.Helper()
	layers, err := f.layers()
	if err == nil && len(layers) != len(f.config.RootFS.DiffIDs) || len(f.config.RootFS.DiffIDs) == 0 {
		t.Errorf("%d layers, %v, and %d in the configuration", len(layers), err, len(f.config.RootFS.DiffIDs))
	}
	if !digestForm.MatchString(f.digest) {
		t.Errorf("the digest %q", f.digest)
	}
	if err := checkConfig(&f.config.Config); err != nil {
		t.Error(err)
	}
	for _, l := range layers {
		if r, err := l.Uncompressed(); err == nil {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// FuzzSaved reads the manifest.json of an archive and what it names.
func FuzzSaved(f *testing.F) {
	const config = `{"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":["sha256:0000000000000000000000000000000000000000000000000000000000000000"]}}`
	f.Add(`[{"Config":"c","RepoTags":["app:1"],"Layers":["l"]}]`, config, "")
	f.Add(`[{"Config":"c","RepoTags":["app:1"],"Layers":["l"]},{"Config":"c","Layers":["../l"]}]`, config, "app:1")
	f.Add(`[{"Config":"../../etc/passwd","Layers":[""]}]`, `{}`, "UPPER:case:")
	f.Add(`[null]`, `null`, "")
	f.Fuzz(func(t *testing.T, manifest, config, want string) {
		dir := t.TempDir()
		for name, text := range map[string]string{"manifest.json": manifest, "c": config, "l": ""} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := fromSaved(place{dir: dir, from: "the archive"}, want); err == nil {
			checkFound(t, got)
		}
	})
}

// FuzzStore reads an entry and a record of a store: files that Tare wrote, in a folder that may have come from elsewhere.
func FuzzStore(f *testing.F) {
	const key, digest = "oci amd64 app:1", "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	f.Add(`{"key":"`+key+`","digest":"`+digest+`","time":"2026-01-01T00:00:00Z"}`, `{"digest":"`+digest+`","form":1,"config":{"env":["A=1"],"uid":1,"groups":[1,2]}}`)
	f.Add(`{"key":"`+key+`","digest":"sha256:../../x"}`, `{"digest":"`+digest+`","form":-1}`)
	f.Add(`{"key":"another"}`, `{"config":{"uid":-1}}`)
	f.Add(``, `[`)
	f.Fuzz(func(t *testing.T, e, r string) {
		s, err := OpenStore(filepath.Join(t.TempDir(), "store"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(s.keptPath(digest), 0o755); err != nil {
			t.Fatal(err)
		}
		for path, text := range map[string]string{
			filepath.Join(s.root, indexDir, hashName(key)+".json"): e, filepath.Join(s.keptPath(digest), recordName): r,
		} {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		entry, rec, err := s.recall(key)
		if err != nil {
			return
		}
		if (entry == nil) != (rec == nil) {
			t.Errorf("%+v, %+v", entry, rec)
		}
		if rec != nil && (entry.Key != key || entry.Digest != rec.Digest || rec.Digest != digest) {
			t.Errorf("%+v, %+v", entry, rec)
		}
		if known, err := s.findOCI(digest); err == nil && known != nil && known.Form < ociForm {
			t.Errorf("%+v", known)
		}
	})
}
