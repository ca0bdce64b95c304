package terminal_test

import (
	"log"
	"os"

	"tare/desk/data"
	"tare/desk/terminal"
)

// The first answer, for a terminal of 90 columns.
func ExampleAnswer() {
	s, err := data.Read([]string{"../export/testdata/made-before"}, data.Options{})
	if err != nil {
		log.Fatal(err)
	}
	if err := terminal.Answer(os.Stdout, s, false, terminal.Screen{Width: 90}); err != nil {
		log.Fatal(err)
	}
	// Output:
	// Bare metal varied too much to give an interval for FFmpeg. Try `tare doctor --noise`, or a
	// longer workload.
	//
	// ffmpeg (frames=12, preset=ultrafast, segments=1, width=160), 1 CPU, 1 GB. Execution time;
	// lower is better.
	//
	//   environment                 mean               vs bare metal          at ±1 %
	//   bare metal                  313 ms (0 to 817)  reference
	//   Docker, CPU quota (--cpus)  331 ms (0 to 852)  +5.6 % (no interval)
	//   runc, CPU quota             321 ms (0 to 750)  +2.4 % (no interval)
	//   runc, CPU set               147 ± 26 ms        −52.9 % (no interval)
	//
	// 4 rounds in random order, with fresh environments in each round; 0 of 60 runs failed.
	// Intervals are of 95 %. 21 Nov 2026, 21:07 UTC.
	//
	// What this does not say
	//   Only FFmpeg was measured, on this host. Other work may cost more or less.
	//   The host, vm, is itself a virtual machine (KVM): "bare metal" means this VM without
	//   another layer.
	//
	// How far to trust it
	//   ! A/A check of ffmpeg (frames=12, preset=ultrafast, segments=1, width=160) at 1/1GB: not
	//     known: too few or too noisy rounds.
	//   ! ../export/testdata/made-before: 4 of 7 rounds were run; its last session ended: cap on
	//     rounds.
	//   ! Bare metal's rounds of ffmpeg (frames=12, preset=ultrafast, segments=1, width=160) at
	//     1/1GB lie between 136 ms and 896 ms: the host is unsteady.
	//
	// Next
	//   Continue          sudo tare run quick --explain --out ../export/testdata/made-before
	//   Your own command  sudo tare bench --image IMAGE --platforms bm,cn:docker,cn:runc -- COMMAND
	//   Your own service  sudo tare bench --image IMAGE --platforms bm,cn:docker,cn:runc --service PORT --load /
	//   Full report       tare report ../export/testdata/made-before
	//   All details       tare summary ../export/testdata/made-before --verbose
}
