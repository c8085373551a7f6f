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
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/backends/holder"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/team"
)

// Name is the name of the backend.
const Name = "tmux"

// Options configures a Backend. Layout and ShimArgv are required to start
// generations, the rest has defaults.
type Options struct {
	Layout   team.Layout
	ShimArgv []string         // absolute command of the shim, for example [/usr/bin/teamctl shim]
	LeadArgv []string         // command for the lead's pane of the private server; default: none
	LineArgv []string         // command whose output is the line of the private server's status; default: the team's name
	Notifier *bundle.Notifier // nil: starts are noticed by polling, within 50 ms
	Log      *slog.Logger     // nil: silent
	Tmux     string           // default "tmux", from PATH
	Cols     int              // of the private server's windows without an attached client; default 200
	Rows     int              // default 50
}

// Backend is the tmux backend of one team. New creates it without side effects.
type Backend struct {
	opt     Options
	log     *slog.Logger
	looks   proc.Looks // scans of the process table, shared by all generations that end at once
	starter holder.Starter

	// place serialises everything that creates or moves panes: a split and the
	// following layout are one step.
	place    sync.Mutex
	queue    queue // launches for the private server's windows
	removals removals
	resizes  resizes

	// asking is held while querying tmux's version: concurrent starts and
	// adoptions share one answer.
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
	b.starter = holder.Starter{Argv: opt.ShimArgv, Notifier: opt.Notifier, Looks: &b.looks, Log: log}
	return b
}

// Name returns "tmux".
func (b *Backend) Name() string { return Name }

// version is a version of tmux; "next-3.6" counts as 3.6.
type version struct {
	major, minor int
	text         string
}

func (v version) atLeast(major, minor int) bool {
	return v.major > major || v.major == major && v.minor >= minor
}

var versionRE = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(\d+)\.(\d+)`) })

// parseVersion parses "tmux 3.3a", "tmux next-3.6", "tmux master" (which counts
// as the newest).
func parseVersion(out string) (version, bool) {
	text := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(out), "tmux"))
	if text == "master" {
		return version{99, 0, text}, true
	}
	if strings.HasPrefix(text, "openbsd-") { // numbered like OpenBSD; all since 6.6 are 3.0 or newer
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

// Check requires tmux 3.0 or newer.
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
		return team.Errorf(team.CodeUnavailable, "read the version of tmux: %w", err).WithHint(installHint)
	}
	v, ok := parseVersion(string(out))
	if !ok {
		return team.Errorf(team.CodeUnavailable, "tmux -V printed %q", strings.TrimSpace(string(out))).WithHint(installHint)
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

// Close releases watches and connections; agents keep running.
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
	b.resizes.close()
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
