package workload

// Setting is what a command of the user's own gets in addition to its image. A study's hash covers it by the study's own text.
type Setting struct {
	Env    []string // KEY=VALUE
	Before []string // runs in the guest, unmeasured: before each run of the command, or before the service starts
}
