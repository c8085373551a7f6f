package team

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Environment variables that teamctl reads and hands to its agents.
const (
	EnvHome      = "TEAMCTL_HOME"
	EnvTeam      = "TEAMCTL_TEAM"
	EnvAgentID   = "TEAMCTL_AGENT_ID"
	EnvAgentName = "TEAMCTL_AGENT_NAME"
	EnvTaskID    = "TEAMCTL_TASK_ID"
	EnvAttempt   = "TEAMCTL_TASK_ATTEMPT" // 1 for the first
	EnvRuntime   = "TEAMCTL_RUNTIME_DIR"
	EnvGen       = "TEAMCTL_GENERATION"
	EnvNotify    = "TEAMCTL_NOTIFY_SOCKET"
	EnvColor     = "TEAMCTL_AGENT_COLOR"
	EnvParent    = "TEAMCTL_PARENT_SESSION_ID"
	// EnvCommand is the generation of a command (a task's, a hook) that a member runs; the
	// command has the member's EnvGen as well.
	EnvCommand = "TEAMCTL_COMMAND"
	// EnvDetached marks, with the value 1, a process that belongs to no agent
	// although an agent's command may have started it: a supervisor, a tmux server.
	EnvDetached = "TEAMCTL_DETACHED"
)

// Home is the root of everything that teamctl keeps: $TEAMCTL_HOME, else ~/.teamctl.
type Home struct{ Dir string }

// FindHome resolves the home directory without creating it.
func FindHome() (Home, error) {
	dir := os.Getenv(EnvHome)
	if dir == "" {
		u, err := os.UserHomeDir()
		if err != nil {
			return Home{}, Errorf(CodeInvalid, "find the home directory: %w", err).
				WithHint("set " + EnvHome)
		}
		dir = filepath.Join(u, ".teamctl")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return Home{}, Errorf(CodeInvalid, "resolve %s: %w", dir, err)
	}
	return Home{Dir: abs}, nil
}

// Registry is teams.json, the cache of name -> path.
func (h Home) Registry() string { return filepath.Join(h.Dir, "teams.json") }

// Memory is the file of what agents remember.
func (h Home) Memory() string { return filepath.Join(h.Dir, "memory.db") }

// TeamsDir holds one directory per team.
func (h Home) TeamsDir() string { return filepath.Join(h.Dir, "teams") }

// Team is the layout of one team's directory.
func (h Home) Team(key string) Layout {
	return Layout{Home: h, Key: key, Dir: filepath.Join(h.TeamsDir(), key)}
}

// Layout names every file of one team.
type Layout struct {
	Home Home
	Key  string
	Dir  string
}

// LayoutAt is the layout of the team in dir, which lies in the directory of teams of some
// home.
func LayoutAt(dir string) Layout {
	return Layout{Home: Home{Dir: filepath.Dir(filepath.Dir(dir))}, Key: filepath.Base(dir), Dir: dir}
}

// Config is config.json.
func (l Layout) Config() string { return filepath.Join(l.Dir, "config.json") }

// Ledger is ledger.db.
func (l Layout) Ledger() string { return filepath.Join(l.Dir, "ledger.db") }

// Copies is the directory of the copies of ledger.db.
func (l Layout) Copies() string { return filepath.Join(l.Dir, "copies") }

// LedgerLock is the fair lock of processes that write to the ledger directly.
func (l Layout) LedgerLock() string { return filepath.Join(l.Locks(), "ledger.lock") }

// ConfigLock serialises those who publish config.json. Its dot keeps it apart from
// the mailbox lock of an agent called "config": no mailbox name begins with one.
func (l Layout) ConfigLock() string { return filepath.Join(l.Locks(), ".config.guard") }

// StartingLock serialises those who start the team's supervisor.
func (l Layout) StartingLock() string { return filepath.Join(l.Locks(), ".starting.guard") }

// MailBoot names the boot of the machine in which the mailboxes were last compared
// with the ledger.
func (l Layout) MailBoot() string { return filepath.Join(l.Locks(), "mail.boot") }

// ClockJump has the modification time at which the wall clock was last seen to have jumped against the
// timers, because the machine has slept or the clock was set: what lies before it has no age.
func (l Layout) ClockJump() string { return filepath.Join(l.Locks(), "clock.jump") }

// Inboxes is the directory of mailboxes.
func (l Layout) Inboxes() string { return filepath.Join(l.Dir, "inboxes") }

// LeadAsked notes how far the lead's mailbox was looked through for requests.
func (l Layout) LeadAsked() string { return filepath.Join(l.Locks(), LeadName+".asked") }

// LeadLock is held by the process that runs the lead's conversation.
func (l Layout) LeadLock() string { return filepath.Join(l.Locks(), ".lead.guard") }

// LeadProcess names that process.
func (l Layout) LeadProcess() string { return filepath.Join(l.Locks(), LeadName+".process") }

// Locks is the directory of lock files; it is not the watched mailbox directory.
func (l Layout) Locks() string { return filepath.Join(l.Dir, "locks") }

// Members is the directory of bundles.
func (l Layout) Members() string { return filepath.Join(l.Dir, "members") }

// Bundle is one member's facts for adoption.
func (l Layout) Bundle(agent string) Bundle { return Bundle(filepath.Join(l.Members(), agent)) }

// Commands is the directory of records of the gates, set-up commands and hooks that
// are running.
func (l Layout) Commands() string { return filepath.Join(l.Dir, "commands") }

// Reviews is the directory of comments that were too long for a message.
func (l Layout) Reviews() string { return filepath.Join(l.Dir, "reviews") }

// Worktrees is the default parent of the members' worktrees.
func (l Layout) Worktrees() string { return filepath.Join(l.Dir, "worktrees") }

// SupervisorLock is held by flock for the life of the team's supervisor.
func (l Layout) SupervisorLock() string { return filepath.Join(l.Dir, "supervisor.lock") }

// SupervisorPID is the visible owner of the supervisor lock.
func (l Layout) SupervisorPID() string { return filepath.Join(l.Dir, "supervisor.pid") }

// SupervisorEnv is the person's environment, which every supervisor of the team is started
// with: variables as in an environment, each ended by NUL. It may hold secrets.
func (l Layout) SupervisorEnv() string { return filepath.Join(l.Dir, "supervisor.env") }

// SupervisorAdopted is the second line of SupervisorPID, once every member that an
// earlier supervisor left has been looked at: what the ledger says of them is true.
const SupervisorAdopted = "adopted"

// ParseSupervisorPID reads the content of SupervisorPID. The error is that of
// strconv.Atoi: the file is empty for a moment.
func ParseSupervisorPID(content []byte) (pid int, adopted bool, err error) {
	first, rest, _ := strings.Cut(string(content), "\n")
	pid, err = strconv.Atoi(strings.TrimSpace(first))
	return pid, strings.TrimSpace(rest) == SupervisorAdopted, err
}

// supervisorEnded begins the lines of SupervisorPID after those of the supervisor.
const supervisorEnded = "ended "

// SupervisorEnd returns the line that is appended to SupervisorPID by a process that has seen the
// end of a supervisor which could not remove the file, with the time in Unix milliseconds.
func SupervisorEnd(at time.Time) string {
	return supervisorEnded + strconv.FormatInt(at.UnixMilli(), 10) + "\n"
}

// ParseSupervisorEnd reads from SupervisorPID when its supervisor was first seen to have ended, zero
// if that is not known.
func ParseSupervisorEnd(content []byte) time.Time {
	for line := range strings.Lines(string(content)) {
		ms, is := strings.CutPrefix(line, supervisorEnded)
		if !is || !strings.HasSuffix(ms, "\n") {
			continue
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(ms), 10, 64); err == nil {
			return time.UnixMilli(n)
		}
	}
	return time.Time{}
}

// SupervisorLog is the supervisor's structured log.
func (l Layout) SupervisorLog() string { return filepath.Join(l.Dir, "supervisor.log") }

// Runtime is the short directory of the team's sockets: a socket path has 107
// bytes at most, a home may be long. $TEAMCTL_RUNTIME_DIR, else
// $XDG_RUNTIME_DIR/teamctl, else /tmp/teamctl-<uid>; below it one directory per
// team, named by a hash of the team's path. It is not created here.
func (l Layout) Runtime() string {
	sum := sha256.Sum256([]byte(l.Dir))
	return filepath.Join(RuntimeRoot(), hex.EncodeToString(sum[:6]))
}

// IsRuntimeName reports whether name can be that of a team's directory in RuntimeRoot.
func IsRuntimeName(name string) bool {
	raw, err := hex.DecodeString(name)
	return err == nil && len(raw) == 6
}

// RuntimeRoot is the parent of every team's runtime directory.
func RuntimeRoot() string {
	if d := os.Getenv(EnvRuntime); d != "" {
		return d
	}
	if d := os.Getenv("XDG_RUNTIME_DIR"); d != "" {
		return filepath.Join(d, "teamctl")
	}
	return filepath.Join("/tmp", "teamctl-"+strconv.Itoa(os.Getuid()))
}

// Socket is the supervisor's socket.
func (l Layout) Socket() string { return filepath.Join(l.Runtime(), "s") }

// RuntimeLock is held with SupervisorLock: two directories that had the path one after
// the other have two of those, and the sockets in common.
func (l Layout) RuntimeLock() string { return filepath.Join(l.Runtime(), "lock") }

// LastWords are what a supervisor says that has lost its team's directory.
func (l Layout) LastWords() string { return filepath.Join(l.Runtime(), "lost.json") }

// NotifySocket takes datagrams from shims and agents.
func (l Layout) NotifySocket() string { return filepath.Join(l.Runtime(), "n") }

// TmuxSocket is the socket of the team's private tmux server.
func (l Layout) TmuxSocket() string { return filepath.Join(l.Runtime(), "t") }

// TmuxServer says which process the team's private tmux server is.
func (l Layout) TmuxServer() string { return filepath.Join(l.Dir, "tmux.json") }

// Bundle is the directory of one member: what the next supervisor needs to adopt it.
type Bundle string

// Launch is what to start, written before anything is started.
func (b Bundle) Launch() string { return filepath.Join(string(b), "launch.json") }

// Outputs is the directory of results that are too long for a conversation.
func (b Bundle) Outputs() string { return filepath.Join(string(b), "outputs") }

// Temp is the temporary directory of what a confined agent starts.
func (b Bundle) Temp() string { return filepath.Join(string(b), "tmp") }

// Proc is the identity of the shim and the agent, written by the shim.
func (b Bundle) Proc() string { return filepath.Join(string(b), "proc.json") }

// Group is the control group of the newest generation, written by the shim before
// anything is in it.
func (b Bundle) Group() string { return filepath.Join(string(b), "group.json") }

// Pane is where the backend put it, written by the backend.
func (b Bundle) Pane() string { return filepath.Join(string(b), "pane.json") }

// Exit is the agent's exit, written by the shim before it tells anyone.
func (b Bundle) Exit() string { return filepath.Join(string(b), "exit.json") }

// RunLock is held by the shim for life: lock held means a generation lives.
func (b Bundle) RunLock() string { return filepath.Join(string(b), "run.lock") }

// StartLock is held by the supervisor while it starts a generation; the shim
// waits for it before it starts the agent.
func (b Bundle) StartLock() string { return filepath.Join(string(b), "start.lock") }

// Backoff is the end of the member's back-off by the clock of the boot.
func (b Bundle) Backoff() string { return filepath.Join(string(b), "backoff.json") }

// Ready is the word of the newest generation that it takes messages, written by the
// agent itself where it can say so.
func (b Bundle) Ready() string { return filepath.Join(string(b), "ready.json") }

// Log is the member's output.
func (b Bundle) Log() string { return filepath.Join(string(b), "output.log") }

// VerifyLog is the output of the commands that the member's tasks were verified by.
func (b Bundle) VerifyLog() string { return filepath.Join(string(b), "verify.log") }

// Logger says which process writes the log of a generation whose terminal is not
// the shim's own.
func (b Bundle) Logger() string { return filepath.Join(string(b), "logger.json") }
