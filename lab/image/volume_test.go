package image

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"
)

// volumesOf makes folders of the host and the image that gets them.
func volumesOf(t *testing.T) (s *Store, base *Image, dir string) {
	t.Helper()
	s, dir = newStore(t), t.TempDir()
	base, err := s.OCI(t.Context(), writeLayout(t, imageOf(t, func(c *v1.ConfigFile) { c.Config.Entrypoint = []string{"/app"} },
		archiveOf(t, file("etc/passwd", "app:x:1000:44::/home:/bin/sh\n"), file("srv/old", "image's"), file("srv/keep/x", "image's"), file("real/y", "image's"), link("place", "real")))), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"web/index": "page", "web/sub/.wh.old": "whiteout", "web/.hidden": "dot", "conf": "file"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	return s, base, dir
}

// A volume is in the place of what the image has there, with its owners, modes and links, on every platform, for it is in the image.
func TestVolumes(t *testing.T) {
	s, base, dir := volumesOf(t)
	web := filepath.Join(dir, "web")
	for _, err := range []error{
		os.Symlink("/etc/shadow", filepath.Join(web, "link")), os.Symlink("web", filepath.Join(dir, "same")),
		os.Chown(filepath.Join(web, "index"), 7, 8), os.Chmod(filepath.Join(web, "index"), os.ModeSetuid|0o751),
		unix.Mkfifo(filepath.Join(web, "pipe"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	volumes := []Volume{{filepath.Join(dir, "conf"), "/place/conf"}, {filepath.Join(dir, "same"), "/srv"}, {filepath.Join(dir, "conf"), "/srv/sub/over"}}
	img, err := s.WithVolumes(t.Context(), base, volumes, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := listing(t, img.Dir)
	for _, want := range []string{"srv/index=page", "srv/sub/.wh.old=whiteout", "srv/.hidden=dot", "srv/sub/over=file", "real/conf=file", "real/y=image's"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in\n%s", want, got)
		}
	}
	for _, not := range []string{"srv/old", "srv/keep", "srv/pipe"} {
		if strings.Contains(got, not) {
			t.Errorf("%s is in\n%s", not, got)
		}
	}
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(img.Dir, "srv/index"), &st); err != nil || st.Uid != 7 || st.Gid != 8 || st.Mode&0o7777 != 0o4751 {
		t.Errorf("%+v, %v", st, err)
	}
	if to, err := os.Readlink(filepath.Join(img.Dir, "srv/link")); err != nil || to != "/etc/shadow" { // as it is: it ends in the guest
		t.Errorf("%s, %v", to, err)
	}
	if !slices.Equal(img.Warnings, []string{"volumes: 1 named pipes left out"}) || img.Base != base.Digest || img.Config.Entrypoint[0] != "/app" {
		t.Errorf("%q, %+v", img.Warnings, img)
	}
	if strings.Contains(listing(t, base.Dir), "srv/index") {
		t.Error("the image itself was changed")
	}

	// The digest is over what the volumes hold, wherever that is on the host.
	moved := filepath.Join(t.TempDir(), "moved")
	if err := os.Rename(web, moved); err != nil {
		t.Fatal(err)
	}
	volumes[1].Host = moved
	again, err := s.WithVolumes(t.Context(), base, volumes, nil)
	if err != nil || again.Digest != img.Digest {
		t.Errorf("%v: %v and %v", err, again, img)
	}
	if err := os.WriteFile(filepath.Join(moved, "index"), []byte("Page"), 0o640); err != nil {
		t.Fatal(err)
	}
	other, err := s.WithVolumes(t.Context(), base, volumes, nil)
	if err != nil || other.Digest == img.Digest {
		t.Errorf("%v: another content has the same digest", err)
	}
}

// An error in one line says what cannot be a volume.
func TestWhatIsWrongWithAVolume(t *testing.T) {
	s, base, dir := volumesOf(t)
	conf := filepath.Join(dir, "conf")
	for _, c := range []struct {
		volumes []Volume
		want    string
	}{
		{[]Volume{{conf, "etc"}}, `volume at "etc": must be an absolute path in the guest`},
		{[]Volume{{conf, "/a/../../etc"}}, `volume at "/a/../../etc": must be an absolute path in the guest, without ..`},
		{[]Volume{{conf, "/"}}, "and not / itself"},
		{[]Volume{{conf, ""}}, "must be HOST:GUEST"},
		{[]Volume{{conf, "/.tare/run/ruler"}}, "/.tare is the guest's own"},
		{[]Volume{{conf, "/tmp/x"}}, "/tmp is the guest's own"},
		{[]Volume{{conf, "/a"}, {conf, "/a/"}}, "only one volume is allowed"},
		{[]Volume{{filepath.Join(dir, "none"), "/a"}}, "none: no such file or directory"},
		{[]Volume{{"/dev/null", "/a"}}, "volume /dev/null: must be a folder or a regular file"},
	} {
		if _, err := s.WithVolumes(t.Context(), base, c.volumes, nil); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: %v; want %s", c.volumes, err, c.want)
		}
	}
}

// A user is found as the image's own would be.
func TestAnotherUserOfAnImage(t *testing.T) {
	_, base, _ := volumesOf(t)
	if cfg, err := base.As("app"); err != nil || cfg.UID != 1000 || cfg.GID != 44 || cfg.Home != "/home" || cfg.Entrypoint[0] != "/app" {
		t.Errorf("%+v, %v", cfg, err)
	}
	if cfg, err := base.As("7:8"); err != nil || cfg.UID != 7 || cfg.GID != 8 {
		t.Errorf("%+v, %v", cfg, err)
	}
	if _, err := base.As("nobody-here"); err == nil {
		t.Error("a user who is not there")
	}
}
