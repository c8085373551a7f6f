package backends

import (
	"context"
	"strings"
	"time"

	"github.com/teamctl/teamctl/team"
)

// Launch contains everything that a backend needs to start one generation. It
// is written to the bundle as launch.json, from which the shim reads it.
type Launch struct {
	Team       string      `json:"team"`
	Agent      string      `json:"agent"`
	Generation string      `json:"generation"`
	Argv       []string    `json:"argv"`
	Env        []string    `json:"env"` // the agent's whole environment, KEY=VALUE
	Dir        string      `json:"dir"`
	Bundle     team.Bundle `json:"bundle"`
	Notify     string      `json:"notify"` // datagram socket of the supervisor; may not exist any more
	Title      string      `json:"title"`
	Color      string      `json:"color"` // one of team.Colors
	Cols       int         `json:"cols,omitempty"`
	Rows       int         `json:"rows,omitempty"`
	Place      team.Place  `json:"place"`
	// Terminal is "" if the agent uses the terminal in which the shim runs,
	// otherwise the name of the backend whose terminal the shim itself holds
	// ("pty").
	Terminal string `json:"terminal,omitempty"`
	// Socket is the socket for attaching to such a terminal; the backend
	// chooses it.
	Socket string `json:"socket,omitempty"`
	// Limits apply to the agent with all its descendants. proc.json records
	// what enforces them; a limit that cannot be enforced on this system does
	// not prevent the start.
	Limits team.Limits `json:"limits,omitzero"`
}

// ProcID identifies one process uniquely; a pid alone is reused.
type ProcID struct {
	BootID     string `json:"bootId"`
	PID        int    `json:"pid"`
	StartTicks uint64 `json:"startTicks"` // field 22 of /proc/<pid>/stat; microseconds since the epoch on macOS
}

// Proc is the content of proc.json.
type Proc struct {
	Generation string    `json:"generation"`
	Shim       ProcID    `json:"shim"`
	Agent      ProcID    `json:"agent"`
	StartedAt  time.Time `json:"startedAt"`
	// Cgroup is the directory of the agent's control group; empty if it has
	// none.
	Cgroup string `json:"cgroup,omitempty"`
	// Uncontained is the reason why it has none.
	Uncontained string `json:"uncontained,omitempty"`
	// Limits records what enforces each limit of the launch.
	Limits Kept `json:"limits,omitzero"`
}

// Kept records what enforces each limit.
type Kept struct {
	Memory Keeper `json:"memory,omitempty"`
	PIDs   Keeper `json:"pids,omitempty"`
	CPU    Keeper `json:"cpu,omitempty"`
}

// Keeper is the mechanism that enforces a limit.
type Keeper string

// Keepers. A resource limit is an approximation: for memory it limits the
// writable memory of each single process, for processes it counts all of the
// user's.
const (
	NotLimited    Keeper = ""
	KeptByCgroup  Keeper = "cgroup"
	KeptByRlimit  Keeper = "rlimit"
	KeptByNothing Keeper = "nothing"
)

// Exit describes how a generation ended. If its status was not observed, Known
// is false and it is never shown as 0.
type Exit struct {
	Generation string    `json:"generation"`
	Known      bool      `json:"known"`
	Code       int       `json:"code"`             // exit status; -1 for a signal or unknown
	Signal     string    `json:"signal,omitempty"` // "SIGKILL", ...
	Reason     string    `json:"reason,omitempty"` // "exec failed: ...", "shim killed", "oom", "user killed pane"
	ExecFailed bool      `json:"execFailed,omitempty"`
	At         time.Time `json:"at"`
	Tail       string    `json:"tail,omitempty"` // last output, if the backend has it
	// Ran is how long the agent ran, by the monotonic clock; 0 if unknown.
	Ran      time.Duration `json:"ranNs,omitempty"`
	Leftover int           `json:"leftover"` // descendants that outlived the agent and were ended
}

// Success reports whether the exit status was observed and is 0.
func (e Exit) Success() bool { return e.Known && e.Signal == "" && e.Code == 0 }

// Imposed reports whether the agent ended because its terminal, its shim or the machine
// did. Its exit status, even 0, then says nothing about its work.
func (e Exit) Imposed() bool {
	switch why, _, _ := strings.Cut(e.Reason, "; "); why {
	case ReasonPaneKilled, ReasonServerGone, ReasonTerminalGone, ReasonShimTerminated:
		return true
	}
	return false
}

// Done reports whether the exit status is 125: done, do not restart.
func (e Exit) Done() bool { return e.Known && e.Signal == "" && e.Code == 125 }

// Because adds a reason to those it has.
func (e *Exit) Because(reason string) {
	if e.Reason != "" {
		reason = e.Reason + "; " + reason
	}
	e.Reason = reason
}

// Backend starts teammates and adopts those that an earlier supervisor started.
// Its methods are safe for concurrent use.
type Backend interface {
	// Name is "tmux", "pty" or "in-process".
	Name() string
	// Check reports whether the backend can work on this system; the error is
	// coded unavailable and has a hint.
	Check(ctx context.Context) error
	// Start starts a generation and returns when it is up: the agent's process
	// is running (or has run: Exited reports an instant exit, not Start). ctx
	// limits starting only. After an error nothing of the generation is
	// running.
	Start(ctx context.Context, l Launch) (Handle, error)
	// Adopt attaches to the generation in the bundle. A generation that has
	// ended is CodeNotFound; its Exit can still be read with ReadExit.
	Adopt(ctx context.Context, b team.Bundle) (Attached, error)
	// CloseTeam removes what the backend keeps for the team as a whole (a
	// private server, an empty session), none of which may be in use.
	CloseTeam(ctx context.Context) error
	// Close releases this process's own resources (connections, watches); agents
	// keep running.
	Close() error
}

// Attached is a living generation, whichever process started it.
type Attached interface {
	Proc() Proc
	Pane() team.Pane
	// Exited is closed once the exit is known and recorded; from then on Exit
	// is valid.
	Exited() <-chan struct{}
	Exit() Exit
	// Interrupt sends SIGINT to the agent's foreground process group.
	Interrupt(ctx context.Context) error
	// Stop ends the whole process tree: SIGTERM and SIGCONT, SIGKILL after
	// grace, then it checks that no descendant is left. It returns when Exited
	// is closed.
	Stop(ctx context.Context, grace time.Duration) error
	// TypeText pastes text into the terminal, as one bracketed paste if the
	// program enabled that, followed by Enter if enter is set.
	TypeText(ctx context.Context, text string, enter bool) error
	// Capture returns the screen, with up to scrollback lines of history above it.
	Capture(ctx context.Context, scrollback int) (string, error)
	Resize(ctx context.Context, cols, rows int) error
	// Dispose removes the place (the dead pane) after the generation has
	// exited.
	Dispose(ctx context.Context) error
	// Detach releases this process's resources; the agent keeps running.
	Detach()
}

// Viewer is a generation whose screen has colours; an Attached may implement it. The screen of one
// that does not is its Capture.
type Viewer interface {
	// View returns the lines of the screen with their colours, as package sgr writes them: a line
	// has text and colours only, and ends with the default ones. Up to scrollback lines of history
	// come before them. One that has exited is CodeNotFound.
	View(ctx context.Context, scrollback int) ([]string, error)
	// ViewEvery is the shortest time between two calls of View that follow each other while the
	// program writes.
	ViewEvery() time.Duration
}

// FrameEvery is ViewEvery where a look starts no process.
const FrameEvery = 50 * time.Millisecond

// Freezer is a generation that can be paused; a Handle or Attached may
// implement it.
type Freezer interface {
	// Freeze pauses or resumes every process of the agent, and returns when
	// that is done. SIGSTOP would not suffice: tmux continues a stopped
	// process, and the agent can too. Without a control group it returns
	// CodeUnavailable with the reason "no_freezer". Anything that ends the
	// agent thaws it first.
	Freeze(ctx context.Context, on bool) error
	// Frozen reports whether it is paused, by any process.
	Frozen() (bool, error)
}

// Handle is a generation that this process started.
type Handle interface {
	Attached
	// Launch returns what was started.
	Launch() Launch
}

// Disposer is a backend that can remove the place of a generation known only
// from its bundle.
type Disposer interface {
	Dispose(ctx context.Context, p team.Pane, proc Proc) error
}

// Hider is a backend that can hide a teammate's screen and show it again.
type Hider interface {
	Hide(ctx context.Context, p team.Pane) error
	Show(ctx context.Context, p team.Pane) error
}
