package shim

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/backends"
)

// Terminal is a terminal that the shim holds for the agent if it does not run
// in one itself (backend pty). The shim calls each method once, in the order
// below (except Relisten); of Refused and Serve only one.
type Terminal interface {
	// Slave returns the agent's side: its standard files and controlling
	// terminal.
	Slave() *os.File
	// Refused shows why there is no agent.
	Refused(reason string)
	// Serve closes the slave, reads what the agent writes and serves clients.
	Serve()
	// Relisten recreates the clients' socket if it was removed (SIGUSR1); it
	// may be called at any time.
	Relisten()
	// Drain returns once the output is read to its end and logged. Its time is
	// limited: a process that does not belong to the agent may keep the slave
	// open for ever. tail is the last part of the screen.
	Drain() (tail string)
	// Close notifies clients of the exit, which is already recorded, and
	// releases everything.
	Close(e backends.Exit)
}

// Opener opens terminals of one name.
type Opener struct {
	Name string // Launch.Terminal
	Open func(l backends.Launch) (Terminal, error)
}

func open(l backends.Launch, own []Opener) (Terminal, error) {
	for _, o := range own {
		if o.Name == l.Terminal {
			return o.Open(l)
		}
	}
	return nil, fmt.Errorf("launch.json names the terminal %q, which this shim does not support", l.Terminal)
}

// control makes a terminal held by the shim its controlling terminal, as the
// pane's is under tmux: then, with either backend, the end of the agent does
// not hang up on the processes it leaves behind, whose output is still wanted.
func control(slave int) error {
	if _, err := unix.Setsid(); err != nil && !errors.Is(err, unix.EPERM) { // EPERM: it already leads a session
		return fmt.Errorf("begin a session: %w", err)
	}
	if err := unix.IoctlSetInt(slave, unix.TIOCSCTTY, 0); err != nil {
		return fmt.Errorf("set the controlling terminal: %w", err)
	}
	return nil
}

// ownTerm is the type of a terminal held by the shim.
const ownTerm = "TERM=xterm-256color"

// foreignTerminal lists variables that describe the launcher's terminal and its
// size.
var foreignTerminal = []string{
	"TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "TERMCAP", "COLUMNS", "LINES",
	"TMUX", "TMUX_PANE", "STY", "WINDOWID", "VTE_VERSION", "KONSOLE_VERSION",
}

func ownEnvironment(env []string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		k, _, _ := strings.Cut(kv, "=")
		return slices.Contains(foreignTerminal, k)
	})
	return append(env, ownTerm)
}
