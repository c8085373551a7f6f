package tmux

import (
	"context"
	"errors"
	"log/slog"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/shim"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/team"
)

// Name of the backend.
const Name = "tmux"

// Options of a Backend. Layout and ShimArgv are needed to start, the rest has
// defaults.
type Options struct {
	Layout   team.Layout
	ShimArgv []string       // absolute command of the shim, for example [/usr/bin/teamctl shim]
	LeadArgv []string       // what runs in the lead's pane of the private server; default: nothing
	Notifier *shim.Notifier // nil: starts are noticed by looking, within 50 ms
	Log      *slog.Logger   // nil: silent
	Tmux     string         // default "tmux", from PATH
	Cols     int            // of the private server's windows while nobody looks; default 200
	Rows     int            // default 50
}

// Backend is one team's. New makes it without touching anything.
type Backend struct {
	opt     Options
	log     *slog.Logger
	looks   proc.Looks // through the process table, of all who end at once
	starter shim.Starter

	// place orders everything that makes or moves panes: a split and the layout
	// after it are one step.
	place    sync.Mutex
	queue    queue // of launches for the private server's windows
	removals removals

	// asking is held while tmux is asked for its version: many starts or adoptions
	// at once need one answer.
	asking sync.Mutex

	mu      sync.Mutex
	closed  bool
	version version            // zero until checked
	servers map[string]*server // by socket
	live    map[*attached]struct{}
}

var (
	_ backends.Backend = (*Backend)(nil)
	_ backends.Hider   = (*Backend)(nil)
)

// New returns the backend of one team.
func New(opt Options) *Backend {
	if opt.Tmux == "" {
		opt.Tmux = "tmux"
	}
	if opt.Cols <= 0 {
		opt.Cols = 200
	}
	if opt.Rows <= 0 {
		opt.Rows = 50
	}
	log := opt.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	b := &Backend{opt: opt, log: log, servers: map[string]*server{}, live: map[*attached]struct{}{}}
	b.starter = shim.Starter{Argv: opt.ShimArgv, Notifier: opt.Notifier, Looks: &b.looks, Log: log}
	return b
}

// Name is "tmux".
func (b *Backend) Name() string { return Name }

// version of tmux; "next-3.6" counts as 3.6.
type version struct {
	major, minor int
	text         string
}

func (v version) atLeast(major, minor int) bool {
	return v.major > major || v.major == major && v.minor >= minor
}

var versionRE = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(\d+)\.(\d+)`) })

// parseVersion reads "tmux 3.3a", "tmux next-3.6", "tmux master" (taken for the newest).
func parseVersion(out string) (version, bool) {
	text := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(out), "tmux"))
	if text == "master" {
		return version{99, 0, text}, true
	}
	if strings.HasPrefix(text, "openbsd-") { // numbered after the system; all since 6.6 are 3.0 or newer
		if m := versionRE().FindStringSubmatch(text); m != nil {
			major, _ := strconv.Atoi(m[1])
			if major >= 7 {
				return version{3, 2, text}, true
			}
			return version{2, 9, text}, true
		}
	}
	m := versionRE().FindStringSubmatch(text)
	if m == nil {
		return version{}, false
	}
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	return version{major, minor, text}, true
}

const installHint = "install tmux 3.0 or newer (apt install tmux, brew install tmux), or use --backend pty"

// Check asks for tmux 3.0 or newer.
func (b *Backend) Check(ctx context.Context) error {
	b.asking.Lock()
	defer b.asking.Unlock()
	b.mu.Lock()
	known := b.version
	b.mu.Unlock()
	if known.major > 0 {
		return nil
	}
	out, err := exec.CommandContext(ctx, b.opt.Tmux, "-V").Output()
	if errors.Is(err, exec.ErrNotFound) {
		return team.Errorf(team.CodeUnavailable, "tmux was not found in PATH").WithHint(installHint)
	}
	if err != nil {
		return team.Errorf(team.CodeUnavailable, "ask tmux for its version: %w", err).WithHint(installHint)
	}
	v, ok := parseVersion(string(out))
	if !ok {
		return team.Errorf(team.CodeUnavailable, "tmux says %q for its version", strings.TrimSpace(string(out))).WithHint(installHint)
	}
	if !v.atLeast(3, 0) {
		return team.Errorf(team.CodeUnavailable, "tmux %s is too old: 3.0 or newer is needed", v.text).WithHint(installHint)
	}
	b.mu.Lock()
	b.version = v
	b.mu.Unlock()
	return nil
}

func (b *Backend) session() string { return "teamctl-" + b.opt.Layout.Key }

// Close frees watches and connections; agents keep running.
func (b *Backend) Close() error {
	b.mu.Lock()
	b.closed = true
	var as []*attached
	for a := range b.live {
		as = append(as, a)
	}
	b.mu.Unlock()
	for _, a := range as {
		a.Detach()
	}
	b.queue.close()
	b.mu.Lock()
	servers := b.servers
	b.servers = map[string]*server{}
	b.mu.Unlock()
	for _, s := range servers {
		s.close()
	}
	return nil
}

func (b *Backend) errClosed() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return team.Errorf(team.CodeUnavailable, "the tmux backend is closed")
	}
	return nil
}
