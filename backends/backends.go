package backends

import (
	"context"
	"time"

	"github.com/teamctl/teamctl/team"
)

// Launch is everything that a backend needs to start one generation. It is
// written to the bundle as launch.json; the shim reads it from there.
type Launch struct {
	Team       string      `json:"team"`
	Agent      string      `json:"agent"`
	Generation string      `json:"generation"`
	Argv       []string    `json:"argv"`
	Env        []string    `json:"env"` // the agent's whole environment, KEY=VALUE
	Dir        string      `json:"dir"`
	Bundle     team.Bundle `json:"bundle"`
	Notify     string      `json:"notify"` // datagram socket of the supervisor; may be gone
	Title      string      `json:"title"`
	Color      string      `json:"color"` // one of team.Colors
	Cols       int         `json:"cols,omitempty"`
	Rows       int         `json:"rows,omitempty"`
	Place      Place       `json:"place"`
	// Terminal is "" where the agent uses the terminal that the shim stands in, else
	// the name of the backend whose terminal the shim itself holds ("pty").
	Terminal string `json:"terminal,omitempty"`
	// Socket is where such a terminal is attached to; the backend chooses it.
	Socket string `json:"socket,omitempty"`
	// Limits are for the agent with everything below it. What keeps them stands in
	// proc.json; one that nothing can keep here does not hinder the start.
	Limits team.Limits `json:"limits,omitzero"`
}

// Layout says where a terminal backend puts a teammate.
type Layout string

// Layouts. Auto splits the person's window inside tmux and uses the team's
// private server outside.
const (
	LayoutAuto    Layout = ""
	LayoutSplit   Layout = "split"
	LayoutWindow  Layout = "window"
	LayoutSession Layout = "session"
)

// Place is where the person was when they asked: the values of $TMUX and
// $TMUX_PANE of the asking process, empty outside tmux.
type Place struct {
	Layout   Layout `json:"layout,omitempty"`
	TMUX     string `json:"tmux,omitempty"`
	TMUXPane string `json:"tmuxPane,omitempty"`
}

// ProcID names one process for good: a pid alone is reused.
type ProcID struct {
	BootID     string `json:"bootId"`
	PID        int    `json:"pid"`
	StartTicks uint64 `json:"startTicks"` // field 22 of /proc/<pid>/stat; microseconds since the epoch on macOS
}

// Proc is proc.json.
type Proc struct {
	Generation string    `json:"generation"`
	Shim       ProcID    `json:"shim"`
	Agent      ProcID    `json:"agent"`
	StartedAt  time.Time `json:"startedAt"`
	// Cgroup is the directory of the agent's control group; empty where it has none.
	Cgroup string `json:"cgroup,omitempty"`
	// Uncontained says why it has none.
	Uncontained string `json:"uncontained,omitempty"`
	// Limits says what keeps each limit of the launch.
	Limits Kept `json:"limits,omitzero"`
}

// Kept says by what each limit is kept.
type Kept struct {
	Memory Keeper `json:"memory,omitempty"`
	PIDs   Keeper `json:"pids,omitempty"`
	CPU    Keeper `json:"cpu,omitempty"`
}

// Keeper is what keeps a limit.
type Keeper string

// Keepers. A resource limit is a makeshift: of memory it counts what each single
// process could write to, of processes all that the user has.
const (
	NotLimited    Keeper = ""
	KeptByCgroup  Keeper = "cgroup"
	KeptByRlimit  Keeper = "rlimit"
	KeptByNothing Keeper = "nothing"
)

// Exit is how a generation ended. An exit whose status nobody saw has Known
// false and is never shown as 0.
type Exit struct {
	Generation string    `json:"generation"`
	Known      bool      `json:"known"`
	Code       int       `json:"code"`             // exit status; -1 for a signal or unknown
	Signal     string    `json:"signal,omitempty"` // "SIGKILL", ...
	Reason     string    `json:"reason,omitempty"` // "exec failed: ...", "shim killed", "oom", "user killed pane"
	ExecFailed bool      `json:"execFailed,omitempty"`
	At         time.Time `json:"at"`
	Tail       string    `json:"tail,omitempty"` // last output, where the backend has it
	// Ran is how long the agent lived, by a clock that nobody sets; 0: not known.
	Ran      time.Duration `json:"ranNs,omitempty"`
	Leftover int           `json:"leftover"` // descendants that outlived the agent and were ended
}

// Success reports a seen exit status of 0.
func (e Exit) Success() bool { return e.Known && e.Signal == "" && e.Code == 0 }

// Done reports exit status 125: done, do not restart.
func (e Exit) Done() bool { return e.Known && e.Signal == "" && e.Code == 125 }

// Pane is pane.json: where a terminal backend put a generation. Ids of a tmux
// server mean nothing on another one, so its identity stands beside them.
type Pane struct {
	Generation  string `json:"generation"`
	Backend     string `json:"backend"`
	Socket      string `json:"socket,omitempty"`
	ServerPID   int    `json:"serverPid,omitempty"`
	ServerStart uint64 `json:"serverStart,omitempty"`
	PaneID      string `json:"paneId"` // "%3", or "in-process"
	WindowID    string `json:"windowId,omitempty"`
	SessionID   string `json:"sessionId,omitempty"`
	Session     string `json:"session,omitempty"`
	Private     bool   `json:"private,omitempty"` // the server is the team's own
}

// Backend starts teammates and adopts those that an earlier supervisor started.
// Its methods are safe for concurrent use.
type Backend interface {
	// Name is "tmux", "pty" or "in-process".
	Name() string
	// Check says whether the backend can work here; the error is coded
	// unavailable and carries a hint.
	Check(ctx context.Context) error
	// Start starts a generation and returns when it is up: the agent's process
	// lives (or has lived: an instant exit is reported by Exited, not here). ctx
	// bounds starting only. On error nothing of the generation is left running.
	Start(ctx context.Context, l Launch) (Handle, error)
	// Adopt attaches to the generation in the bundle. A generation that is gone
	// is CodeNotFound; its Exit can still be read with ReadExit.
	Adopt(ctx context.Context, b team.Bundle) (Attached, error)
	// CloseTeam removes what the backend keeps for the team as a whole (a private
	// server, an empty session). Nothing of it may still be in use.
	CloseTeam(ctx context.Context) error
	// Close releases this process's own resources (connections, watches); agents
	// keep running.
	Close() error
}

// Attached is a living generation, whoever started it.
type Attached interface {
	Proc() Proc
	Pane() Pane
	// Exited is closed once the exit is known and recorded; Exit is valid then.
	Exited() <-chan struct{}
	Exit() Exit
	// Interrupt sends SIGINT to the agent's foreground process group.
	Interrupt(ctx context.Context) error
	// Stop ends the whole tree: SIGTERM + SIGCONT, after grace SIGKILL, then
	// verifies that no descendant lives. It returns when Exited is closed.
	Stop(ctx context.Context, grace time.Duration) error
	// TypeText pastes text into the terminal, as one bracketed paste where the
	// program asked for it; Enter is sent after it if enter is set.
	TypeText(ctx context.Context, text string, enter bool) error
	// Capture returns the screen, with up to scrollback lines of history above it.
	Capture(ctx context.Context, scrollback int) (string, error)
	Resize(ctx context.Context, cols, rows int) error
	// Dispose removes the place (the dead pane) once the generation has exited.
	Dispose(ctx context.Context) error
	// Detach releases this process's resources; the agent keeps running.
	Detach()
}

// Freezer is a generation that can be paused: a Handle or Attached may be one.
type Freezer interface {
	// Freeze stops every process of the agent where it is, or lets all go on, and
	// returns when that is so. SIGSTOP will not do: tmux continues what is stopped,
	// and the agent can. Where there is no control group it is CodeUnavailable with
	// the reason "no_freezer". What ends the agent thaws it first.
	Freeze(ctx context.Context, on bool) error
	// Frozen reports whether it is paused, by whomever.
	Frozen() (bool, error)
}

// Handle is a generation that this process started.
type Handle interface {
	Attached
	// Launch is what was started.
	Launch() Launch
}

// Disposer is a backend that can remove the place of a generation which it knows
// only from the bundle.
type Disposer interface {
	Dispose(ctx context.Context, p Pane, proc Proc) error
}

// Hider is a backend that can take a teammate's screen away and bring it back.
type Hider interface {
	Hide(ctx context.Context, p Pane) error
	Show(ctx context.Context, p Pane) error
}
