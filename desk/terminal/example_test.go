package terminal_test

import (
	"log"
	"os"

	"tare/desk/data"
	"tare/desk/terminal"
)

// A summary for a terminal of 90 columns.
func ExampleSummary() {
	s, err := data.Read([]string{"../export/testdata/made-before"}, data.Options{})
	if err != nil {
		log.Fatal(err)
	}
	if err := terminal.Summary(os.Stdout, s, terminal.Screen{Width: 90}); err != nil {
		log.Fatal(err)
	}
	// Output:
	// For ffmpeg at 1/1GB, no overhead has bounds yet: bare metal varied too much. More rounds
	// or a quieter host would give it some.
	//
	// ffmpeg (frames=12, preset=ultrafast, segments=1, width=160) on vm: execution time in s
	// instance  platform            mean 95 %    ratio 95 %      trials
	// 1/1GB     bm                  0.28 ±0.42       1 baseline       4
	//           bm again (A/A)      0.34 ±0.59    1.21 none           4  [1]
	//           cn docker vanilla   0.33 ±0.52    1.06 none           4  [1–3]
	//           cn runc vanilla     0.32 ±0.43    1.02 none           4  [1,4,5]
	//           cn runc pinned     0.147 ±0.026   0.47 none           4  [1,4,5]
	//
	// [1] the ratio's interval is unbounded: bare metal varied too much
	// [2] network: the engine's bridge
	// [3] the engine's seccomp filter
	// [4] network: the loopback alone, in a namespace
	// [5] no seccomp filter
	//
	// A/A check: bare metal against itself
	//   ffmpeg (frames=12, preset=ultrafast, segments=1, width=160) at 1/1GB: not known: too few
	//   rounds, or too unsteady ones, for an interval
	//
	// The ruler's own cost
	//   bm: 155 µs for an empty process (135 µs to 230 µs over 8 guests), round trip 28.8 µs
	//   cn runc: 122 µs for an empty process (112 µs to 4.00 ms over 8 guests), round trip 27.8
	//   µs
	//   cn docker: 150 µs for an empty process (129 µs to 194 µs over 4 guests), round trip 39.8
	//   µs
	//
	// Warnings
	//   the guest's clock says 0.7228 s, the host's 0.7466 s (1 trial of 1 treatment)
	//
	// Notes
	//   the host vm is itself a virtual machine (KVM): bare metal here means this machine
	//   without a further layer
	//   ../export/testdata/made-before: 4 of 7 rounds were run; its last session ended: cap on
	//   rounds
}
