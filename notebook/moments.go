package notebook

// Moments of a start, and of a restore, in the order in which they usually come. Each is the host's, of the instant at which the host saw it.
const (
	MomentCreated  = "guest_created"        // the machine, paused; the container's cgroup, or what its engine says; the process's root
	MomentFirst    = "first_process"        // it said its first byte
	MomentReturned = "engine_returned"      // lxc-start has, or the engine's call to start
	MomentHello    = "ruler_hello"          // in the guest
	MomentOrdered  = "work_ordered"         // its limits are read back and its network is connected; what is of Tare is over
	MomentLogin    = "login_prompt"         // of a whole system, on its console
	MomentAnswer   = "first_answer"         // a service has answered a request, a function has ended with its result
	MomentRestored = "restored"             // the guest was told to go on, by what restored it
	MomentAgain    = "answer_after_restore" // the first that the restored guest gave
)

// StartMoments are those of a start, RestoreMoments those of a restore, which are counted from the request to restore.
var (
	StartMoments   = []string{MomentCreated, MomentFirst, MomentReturned, MomentHello, MomentOrdered, MomentLogin, MomentAnswer}
	RestoreMoments = []string{MomentRestored, MomentAgain}
)

// Moment is one of a trial's.
type Moment struct {
	Name string `json:"name"`
	NS   int64  `json:"ns"` // nanoseconds of the host's clock since the guest was asked for, or its restore was
}
