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

// Terminal is a terminal of the agent's own that the shim holds for it, where it
// does not stand in one itself (backend pty). The shim calls each method once, in
// the order below (Relisten apart); of Refused and Serve only one.
type Terminal interface {
	// Slave is the agent's side: its standard files and controlling terminal.
	Slave() *os.File
	// Refused shows, instead of an agent, why there is none.
	Refused(reason string)
	// Serve closes the slave, reads what the agent writes and serves clients.
	Serve()
	// Relisten makes the clients' socket anew where it was removed (SIGUSR1); it may
	// be called at any time.
	Relisten()
	// Drain returns once the output is read to its end and logged. It is bounded:
	// a process that is not ours to end may hold the slave for ever. tail is the
	// end of what the screen shows.
	Drain() (tail string)
	// Close tells clients of the exit, which is recorded already, and frees all.
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
	return nil, fmt.Errorf("launch.json asks for the terminal %q, which this shim does not have", l.Terminal)
}

// control makes a terminal of ours our controlling terminal, as the pane's is under
// tmux: then the agent's end does not hang up on what it leaves behind, whose
// output is still wanted, whichever backend it is.
func control(slave int) error {
	if _, err := unix.Setsid(); err != nil && !errors.Is(err, unix.EPERM) { // EPERM: it leads one
		return fmt.Errorf("begin a session: %w", err)
	}
	if err := unix.IoctlSetInt(slave, unix.TIOCSCTTY, 0); err != nil {
		return fmt.Errorf("take the terminal: %w", err)
	}
	return nil
}

// ownTerm is what a terminal of ours speaks.
const ownTerm = "TERM=xterm-256color"

// foreignTerminal names the terminal that the launcher stood in, and its size.
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
