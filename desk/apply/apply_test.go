package apply

import (
	"strings"
	"testing"
)

func TestImageReferences(t *testing.T) {
	for _, s := range []string{"busybox", "debian:trixie", "ghcr.io/a/b-c:1.2", "localhost:5000/x", "a@sha256:" + strings.Repeat("0", 64), "lay:1"} {
		if !reference.MatchString(s) {
			t.Errorf("%q is refused", s)
		}
	}
	for _, s := range []string{"", "./layout", "/abs", "debian:trixie+ffmpeg", "oci:./x", "-v/:/x", "a b", "a;b", "a$(b)", "UPPER", "a\nb", "docker://x"} {
		if reference.MatchString(s) {
			t.Errorf("%q is taken", s)
		}
	}
}
