package terminal_test

import (
	"testing"

	"tare/desk/data"
	"tare/notebook"
)

// A folder names images by workload and parameters; other bytes are other rows.
func TestOtherInputsDoNotMerge(t *testing.T) {
	with := func(digest string) string {
		l := newLab().add(treatmentOf("bm", "", "", "", large), 4)
		l.study.Images = map[string]notebook.Image{notebook.Label("ffmpeg", map[string]string{"segments": "1"}): {Digest: "sha256:1", Input: digest}}
		return l.write(t)
	}
	s := read(t, data.Options{}, with("sha256:a"), with("sha256:a"), with("sha256:b"))
	if len(s.Rows) != 2 || s.Rows[0].Image.Input != "sha256:a" || s.Rows[0].Rounds != 10 || s.Rows[1].Image.Input != "sha256:b" {
		t.Errorf("%d rows: %+v", len(s.Rows), s.Rows)
	}
}
