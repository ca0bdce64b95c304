package studyfile

import (
	"strings"
	"testing"

	"tare/workloads"
)

// A study names the least length. The chosen length is the parameter's value in the treatment.
func TestChosenLength(t *testing.T) {
	text := `name: mine
workloads: [{name: ffmpeg, params: {frames: 60 or more, width: [480, 640]}}]
platforms: [{platform: bm}]
instances: [1/1GB]
design: {rounds: {cap: 6}}
`
	s, err := Parse("mine.yaml", []byte(text), ".", known)
	if err != nil {
		t.Fatal(err)
	}
	of := func() (frames []string) {
		us, err := s.works(workloads.FS)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range us {
			if !u.Open {
				t.Errorf("%v: its length may be chosen", u.Params)
			}
			frames = append(frames, u.Params["width"]+":"+u.Params["frames"])
		}
		return frames
	}
	if got := strings.Join(of(), " "); got != "480:60 640:60" {
		t.Error(got)
	}
	us, _ := s.works(workloads.FS)
	s.Lengths = map[string]string{us[1].Label(): "200"}
	if got := strings.Join(of(), " "); got != "480:60 640:200" {
		t.Error(got)
	}
	for _, wrong := range []string{"frames: sixty or more", "width: 480 or more", "frames: 60 or less"} {
		s, err := Parse("mine.yaml", []byte(strings.Replace(text, "frames: 60 or more, width: [480, 640]", wrong, 1)), ".", known)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.works(workloads.FS); err == nil || !strings.Contains(err.Error(), "a whole number") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}
