package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/internal/cgroup"
	"github.com/teamctl/teamctl/internal/glob"
	"github.com/teamctl/teamctl/internal/private"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor"
	"github.com/teamctl/teamctl/team"
)

// CheckStatus is the result of a check.
type CheckStatus string

// Statuses of a check. A warning is for information, a failure keeps teamctl from working.
const (
	CheckOK   CheckStatus = "ok"
	CheckWarn CheckStatus = "warn"
	CheckFail CheckStatus = "fail"
)

// Check is one line of the doctor's report.
type Check struct {
	Name   string      `json:"name"`
	Status CheckStatus `json:"status"`
	Detail string      `json:"detail"`
	Hint   string      `json:"hint,omitempty"` // what to do about it
}

func checked(name, format string, args ...any) Check {
	return Check{Name: name, Status: CheckOK, Detail: fmt.Sprintf(format, args...)}
}

func (c Check) warn(hint string) Check { c.Status, c.Hint = CheckWarn, hint; return c }
func (c Check) fail(hint string) Check { c.Status, c.Hint = CheckFail, hint; return c }

// Doctor checks the machine and every team on it, and changes nothing.
func (e *Env) Doctor(ctx context.Context) []Check {
	list := []Check{
		tmuxCheck(ctx),
		gitCheck(ctx),
		goCheck(ctx),
		checked("sqlite", "%s, built in", ledger.SQLiteVersion()),
		e.homeCheck(),
		e.diskCheck(),
		runtimeCheck(),
		socketCheck(e.Home.Team("x")),
		containCheck(cgroup.Probe()),
	}
	list = append(list, watchChecks()...)
	for _, c := range list {
		if (c.Name == homeCheckName || c.Name == runtimeCheckName) && c.Status == CheckFail {
			return list // opening another user's ledger would create files in it
		}
	}
	list = append(list, e.agentChecks(ctx)...)
	return append(append(list, e.keptChecks(ctx)...), e.teamChecks(ctx)...)
}

// ask runs a program that prints its version.
func ask(ctx context.Context, argv ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if errors.Is(err, exec.ErrWaitDelay) { // it has succeeded, and what it has left keeps the pipe
		err = nil
	}
	return strings.TrimSpace(string(out)), err
}

var versionRE = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(\d+)\.(\d+)`) })

// atLeast reports whether the first version in text is major.minor or newer; ok is false if there
// is none.
func atLeast(text string, major, minor int) (yes, ok bool) {
	m := versionRE().FindStringSubmatch(text)
	if m == nil {
		return false, false
	}
	a, _ := strconv.Atoi(m[1]) // digits, by the expression
	b, _ := strconv.Atoi(m[2])
	return a > major || a == major && b >= minor, true
}

func tmuxCheck(ctx context.Context) Check {
	out, err := ask(ctx, "tmux", "-V")
	if err != nil {
		return checked("tmux", "not found: %v", err).fail("install tmux 3.0 or newer: apt install tmux, or brew install tmux")
	}
	switch yes, ok := atLeast(out, 3, 0); {
	case !ok && strings.Contains(out, "master"):
		return checked("tmux", "%s, a development version", out)
	case !ok:
		return checked("tmux", "version not understood: %q", out).warn("teamctl needs tmux 3.0 or newer")
	case !yes:
		return checked("tmux", "%s is too old", out).fail("install tmux 3.0 or newer")
	}
	if yes, _ := atLeast(out, 3, 6); !yes {
		return checked("tmux", "%s (before 3.6 tmux may miss that a pane's process has ended; teamctl sees it by itself)", out)
	}
	return checked("tmux", "%s", out)
}

func gitCheck(ctx context.Context) Check {
	out, err := ask(ctx, "git", "--version")
	if err != nil {
		return checked("git", "not found: %v", err).fail("install git: worktrees need it")
	}
	if yes, ok := atLeast(out, 2, 25); ok && !yes {
		return checked("git", "%s is old", out).warn("install git 2.25 or newer")
	}
	return checked("git", "%s", out)
}

func goCheck(ctx context.Context) Check {
	out, err := ask(ctx, "go", "version")
	if err != nil {
		return checked("go", "not found").warn("needed to build teamctl, and by scripts/quickstart only")
	}
	return checked("go", "%s", out)
}

// existing returns the closest existing directory at or above path.
func existing(path string) string {
	for {
		if fi, err := os.Stat(path); err == nil && fi.IsDir() {
			return path
		}
		up := filepath.Dir(path)
		if up == path {
			return path
		}
		path = up
	}
}

func (e *Env) homeCheck() Check {
	return dirCheck(homeCheckName, homeDir(e.Home), "made by the first team", "set "+team.EnvHome+" to a directory that you can write to", homeHint())
}

// Names of checks whose failure prevents the checks of teams.
const (
	homeCheckName    = "home"
	runtimeCheckName = "runtime"
)

// dirCheck checks one of teamctl's directories: whether it is writable, and only by the user.
func dirCheck(name string, d private.Dir, later, hint, own string) Check {
	dir := d.Path
	fi, err := os.Stat(dir)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case missing:
		if at := existing(dir); unix.Access(at, unix.W_OK|unix.X_OK) != nil {
			return checked(name, "%s does not exist and %s cannot be written to", dir, at).fail(hint)
		}
	case err != nil:
		return checked(name, "%v", err).fail(hint)
	case !fi.IsDir():
		return checked(name, "%s is not a directory", dir).fail(hint)
	}
	if c := placeCheck(checked(name, "%s", dir), d, own); c.Status != CheckOK {
		return c
	}
	if missing {
		return checked(name, "%s (%s)", dir, later)
	}
	if unix.Access(dir, unix.W_OK|unix.X_OK) != nil {
		return checked(name, "%s cannot be written to", dir).fail(hint)
	}
	return checked(name, "%s", dir)
}

const (
	gib      = 1 << 30
	diskFail = gib / 10
	diskWarn = gib
)

func (e *Env) diskCheck() Check {
	at := existing(e.Home.Dir)
	var st unix.Statfs_t
	if err := unix.Statfs(at, &st); err != nil {
		return checked("disk", "%s: %v", at, err).warn("teamctl cannot see how much is free")
	}
	free := uint64(st.Bavail) * uint64(st.Bsize) // the types differ between systems
	c := checked("disk", "%.1f GiB free at %s", float64(free)/gib, at)
	switch {
	case free < diskFail:
		return c.fail("free some space: the ledger must be able to grow")
	case free < diskWarn:
		return c.warn("worktrees need space")
	}
	return c
}

func runtimeCheck() Check {
	return dirCheck(runtimeCheckName, runtimeRoot(), "made when needed", backends.RuntimeHint, backends.RuntimeHint)
}

// maxSocket is the longest socket path on all supported systems, one byte less than Linux allows.
const maxSocket = 103

func socketCheck(l team.Layout) Check {
	n := len(l.Socket())
	c := checked("sockets", "paths are %d bytes long, at most %d are possible", n, maxSocket)
	if n > maxSocket {
		return c.fail("set " + team.EnvRuntime + " to a shorter directory")
	}
	return c
}

// teamChecks reports problems of teams, and a single line if there are none.
func (e *Env) teamChecks(ctx context.Context) []Check {
	teams, err := e.Teams(ctx)
	if err != nil {
		return []Check{checked("teams", "%v", err).fail("look at " + e.Home.TeamsDir())}
	}
	var bad, hooks []Check
	for _, t := range teams {
		if t.Problem != "" {
			bad = append(bad, checked("team "+t.Key, "%s", t.Problem).warn(cmp.Or(t.Hint, "look at "+t.Path)))
			continue
		}
		if c, ok := e.hungCheck(ctx, t); ok {
			bad = append(bad, c)
		}
		if c, ok := e.ledgerCheck(ctx, t.Key); ok {
			bad = append(bad, c)
		}
		if c, ok := e.orphanCheck(ctx, t); ok {
			bad = append(bad, c)
		}
		if c, ok := walCheck(t); ok {
			bad = append(bad, c)
		}
		if c, ok := e.mailCheck(ctx, t); ok {
			bad = append(bad, c)
		}
		bad = append(bad, e.bundleChecks(ctx, t.Key)...)
		if c, ok := killedCheck(t); ok {
			bad = append(bad, c)
		}
		if c, ok := e.hooksCheck(ctx, t.Key); ok {
			hooks = append(hooks, c)
		}
	}
	bad = append(bad, e.leftovers(teams)...)
	bad = append(bad, lostChecks()...)
	bad = append(bad, e.strayChecks()...)
	if len(bad) == 0 {
		bad = []Check{checked("teams", "%d, none needs attention", len(teams))}
	}
	return append(bad, hooks...)
}

// hungCheck reports a supervisor that does not answer.
func (e *Env) hungCheck(ctx context.Context, info TeamInfo) (_ Check, bad bool) {
	if info.Supervisor == 0 || e.Dial == nil {
		return Check{}, false
	}
	t, err := e.Open(ctx, info.Key)
	if err == nil {
		_, err = e.Dial(ctx, t.Layout, false)
		err = errors.Join(err, t.Close())
	}
	if err == nil {
		return Check{}, false
	}
	return checked("team "+info.Key, "%v", err).fail(team.HintOf(firstCoded(err))), true
}

// ledgerCheck reports a damaged ledger. Damage in pages that are not read shows nowhere else.
func (e *Env) ledgerCheck(ctx context.Context, key string) (_ Check, bad bool) {
	got, err := e.LedgerCheck(ctx, key)
	if err != nil {
		got.Problems = append(got.Problems, err.Error())
	}
	if len(got.Problems) == 0 {
		return Check{}, false
	}
	text := got.Problems[0]
	if more := len(got.Problems) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more: teamctl ledger check %s)", more, key)
	}
	return checked("team "+key, "its ledger is not sound: %s", text).
		fail("teamctl doctor --repair --team " + key + "; where it cannot mend it, teamctl ledger recover " + key), true
}

// lostChecks reports supervisors whose team was deleted while they were running.
func lostChecks() []Check {
	var out []Check
	files, _ := filepath.Glob(filepath.Join(glob.Escape(team.RuntimeRoot()), "*", filepath.Base(team.Layout{}.LastWords()))) // the pattern is valid
	for _, path := range files {
		w, err := supervisor.ReadLastWords(path)
		if err != nil || w == nil || w.Why != "removed" {
			continue
		}
		text := fmt.Sprintf("%s was removed at %s while its supervisor ran", w.Dir, w.At.Local().Format(time.DateTime))
		if len(w.Ended) > 0 {
			text += "; members that were ended: " + agentNames(w.Ended)
		}
		if len(w.Left) > 0 {
			text += "; members that could not be ended: " + agentNames(w.Left)
		}
		out = append(out, checked("team "+w.Team, "%s", text).warn("put the directory back from a backup, or rm "+team.ShellQuote(path)))
	}
	return out
}

// strayChecks reports agents of deleted teams: a directory was removed while no supervisor was
// running.
func (e *Env) strayChecks() []Check {
	home, err := filepath.EvalSymlinks(e.Home.Dir)
	if err != nil {
		return nil
	}
	list, err := proc.OfTeam(home, "")
	if err != nil {
		return []Check{checked("agents", "cannot look for processes of teams that are gone: %v", err).warn("run the doctor again")}
	}
	of := map[string][]proc.Marked{}
	for _, m := range list {
		if _, err := os.Lstat(e.Home.Team(m.Team).Dir); errors.Is(err, os.ErrNotExist) {
			of[m.Team] = append(of[m.Team], m)
		}
	}
	var out []Check
	for _, key := range slices.Sorted(maps.Keys(of)) {
		agents, end := []supervisor.Agent{}, "kill"
		for _, m := range of[key] {
			agents = append(agents, supervisor.Agent{Name: m.Agent, PID: m.ID.PID})
			end += " " + strconv.Itoa(m.ID.PID)
		}
		socket := team.Home{Dir: home}.Team(key).TmuxSocket()
		if _, err := os.Lstat(socket); err == nil {
			end += "; tmux -S " + team.ShellQuote(socket) + " kill-server"
		}
		out = append(out, checked("team "+key, "its directory is gone, and processes of its members live: %s", agentNames(agents)).warn(end))
	}
	return out
}

func agentNames(list []supervisor.Agent) string {
	names := make([]string, len(list))
	for i, a := range list {
		names[i] = fmt.Sprintf("%s (pid %d)", a.Name, a.PID)
	}
	return strings.Join(names, ", ")
}

// orphanCheck reports a team that should have running members and has no supervisor.
func (e *Env) orphanCheck(ctx context.Context, info TeamInfo) (_ Check, bad bool) {
	if info.Supervisor != 0 {
		return Check{}, false
	}
	t, err := e.Open(ctx, info.Key)
	if err != nil {
		return checked("team "+info.Key, "%v", err).warn("look at " + info.Path), true
	}
	members, err := t.Ledger.Members(ctx, false)
	if err = errors.Join(err, t.Close()); err != nil {
		return checked("team "+info.Key, "%v", err).warn("look at " + info.Path), true
	}
	var names []string
	for _, m := range members {
		if m.Name != team.LeadName && m.Desired == team.WantRunning && !m.Observed.Terminal() {
			names = append(names, m.Name)
		}
	}
	if len(names) == 0 {
		return Check{}, false
	}
	return checked("team "+info.Key, "no supervisor runs, but members should: %s", strings.Join(names, ", ")).
		warn("teamctl ps --team " + info.Key + " brings it back"), true
}

// walCheck reports a write-ahead log that does not shrink.
func walCheck(info TeamInfo) (_ Check, bad bool) {
	path := team.Layout{Dir: info.Path}.Ledger()
	fi, err := os.Stat(path + "-wal")
	if err != nil || fi.Size() <= ledger.WALMuch {
		return Check{}, false
	}
	return checked("team "+info.Key, "the ledger's log has %d MB: a program reads the ledger and does not end", fi.Size()>>20).
		warn("see who has it open: lsof " + team.ShellQuote(path)), true
}

// leftovers returns registry entries without a directory, and directories that are not teams.
func (e *Env) leftovers(teams []TeamInfo) []Check {
	var out []Check
	var registry map[string]string
	data, err := regular.ReadFile(e.Home.Registry())
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		out = append(out, checked("registry", "%v", err).warn("it is a cache: remove it"))
	case json.Unmarshal(data, &registry) != nil:
		out = append(out, checked("registry", "%s is not readable", e.Home.Registry()).warn("it is a cache: remove it"))
	}
	var gone []string
	for name, path := range registry {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			gone = append(gone, name)
		}
	}
	if slices.Sort(gone); len(gone) > 0 {
		out = append(out, checked("registry", "entries without a directory: %s", strings.Join(gone, ", ")).
			warn("it is a cache: the next teamctl create corrects it"))
	}
	dirs, err := os.ReadDir(e.Home.TeamsDir())
	if err != nil {
		return out // Teams has reported it
	}
	for _, d := range dirs {
		known := slices.ContainsFunc(teams, func(t TeamInfo) bool { return t.Key == d.Name() })
		if !d.IsDir() || known {
			continue
		}
		path := filepath.Join(e.Home.TeamsDir(), d.Name())
		switch {
		case strings.HasPrefix(d.Name(), creating), strings.HasPrefix(d.Name(), deleted):
			if held, err := lockDir(path); held == nil && err == nil {
				continue // locked at the moment, or gone
			} else if held != nil {
				_ = held.Close() // opened for its lock
			}
			out = append(out, checked("leftover", "%s was left by a create or a delete that was killed", path).
				warn("teamctl doctor --repair removes it"))
		default:
			out = append(out, e.stranger(d.Name(), path))
		}
	}
	return out
}

// stranger describes a directory among the teams that is not a team. It does not suggest to remove
// one with unread mail.
func (e *Env) stranger(name, path string) Check {
	if l := e.Home.Team(name); lostLedger(l) {
		return noTeamCheck(l)
	}
	if n, ok := e.nativeTeam(name); ok {
		return checked("native team", "%s", n).warn(n.Bridge)
	}
	if n := unreadIn(e.Home.Team(name)); n > 0 {
		return checked("leftover", "%s is not a team, and has %d unread messages in its mailboxes", path, n).
			warn("look at " + filepath.Join(path, "inboxes"))
	}
	return noTeamCheck(e.Home.Team(name))
}
