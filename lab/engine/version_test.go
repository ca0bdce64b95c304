//go:build linux

package engine

import (
	"testing"
	"unicode/utf8"
)

func TestParseVersion(t *testing.T) {
	for text, want := range map[string]string{
		"crun version 1.8.1\ncommit: f8a096be060b22ccd3d5f3ebe44108517fbf6c30\n": "1.8.1",
		"runc version 1.1.5+ds1\ncommit: 1.1.5+ds1-1+deb12u1\n":                  "1.1.5+ds1",
		"podman version 4.3.1\n": "4.3.1",
		"5.0.2\n":                "5.0.2",
		"runsc version v0.0.0-20260905035102-160fafc42237\nspec: 1.2.1\n":                                 "v0.0.0-20260905035102-160fafc42237",
		"QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)\nCopyright (c) 2003-2022 Fabrice": "7.2.22",
		"Docker version 20.10.24+dfsg1, build 297e128":                                                    "20.10.24+dfsg1",
		"unknown option --version": "",
		"version":                  "",
		"version \x1b[31m1":        "",
		"":                         "",
	} {
		if got := parseVersion(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func FuzzParseVersion(f *testing.F) {
	f.Add("crun version 1.8.1\n")
	f.Add("5.0.2")
	f.Fuzz(func(t *testing.T, text string) {
		got := parseVersion(text)
		if len(got) > 128 || !utf8.ValidString(got) {
			t.Errorf("%q from %q", got, text)
		}
		for _, r := range got {
			if r < ' ' || r > '~' {
				t.Errorf("%q has %q", got, r)
			}
		}
	})
}
