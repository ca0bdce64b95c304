package notebook

// Moments of a start, and of a restore, in the order in which they usually come. Each has the host's time, when the host saw it.
const (
	MomentSandbox  = "sandbox_ready"        // a pod's namespaces and network are there, and the process that holds them
	MomentImage    = "image_ready"          // the engine has the image
	MomentCreated  = "guest_created"        // the machine, paused; the container's cgroup, or what its engine says; the process's root
	MomentFirst    = "first_process"        // the first process has written its first byte
	MomentReturned = "engine_returned"      // lxc-start has returned, or the engine's call to start
	MomentHello    = "ruler_hello"          // the ruler in the guest has answered
	MomentOrdered  = "work_ordered"         // Tare's part is over: it has read back the limits and connected the network
	MomentLogin    = "login_prompt"         // a whole system shows its prompt on its console
	MomentAnswer   = "first_answer"         // success: a service has answered a request, or a function has ended with its result
	MomentRestored = "restored"             // the restoring program has told the guest to go on
	MomentAgain    = "answer_after_restore" // the restored guest has given its first answer
)

// StartMoments are the moments of a start. RestoreMoments are the moments of a restore, counted from the request to restore.
var (
	StartMoments   = []string{MomentSandbox, MomentImage, MomentCreated, MomentFirst, MomentReturned, MomentHello, MomentOrdered, MomentLogin, MomentAnswer}
	RestoreMoments = []string{MomentRestored, MomentAgain}
)

// Moment is a moment of a trial.
type Moment struct {
	Name string `json:"name"`
	NS   int64  `json:"ns"` // nanoseconds of the host's clock since the request for the guest or its restore
}
