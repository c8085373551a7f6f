package tool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/internal/dirwatch"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/worktree"
)

// Team is one open team.
type Team struct {
	Env    *Env
	Layout team.Layout
	Ledger *ledger.Ledger
	// Watch reports changes to the team's files.
	Watch team.Watcher
	// Elsewhere is why the team is read-only: its directory is a copy, or was moved.
	Elsewhere error
	release   func() error // ends the use of the ledger
	via       Settler      // the supervisor, for messages; may be nil
}

// resolveRepo validates the repository before anything is created; base is recorded as a commit if
// it was given.
func resolveRepo(ctx context.Context, path, base string) (root, commit string, err error) {
	if path == "" {
		if base != "" {
			return "", "", team.Errorf(team.CodeInvalid, "a base needs a repository").WithHint("add --repo PATH")
		}
		return "", "", nil
	}
	repo, err := worktree.OpenRepo(ctx, path)
	if err != nil {
		return "", "", err
	}
	if _, err := repo.Head(ctx); err != nil {
		return "", "", err
	}
	if base != "" {
		commit, err = repo.Resolve(ctx, base)
	}
	return repo.Root(), commit, err
}

func unwritable(path string, err error) error {
	return team.Errorf(team.CodeUnavailable, "write to %s: %w", path, err).
		WithReason(team.ReasonHomeUnwritable).WithHint("set " + team.EnvHome + " to a directory that you can write to")
}

// firstCoded returns the first coded error of a joined one if the clean-up succeeded.
func firstCoded(err error) error {
	var e *team.Error
	if errors.As(err, &e) && err.Error() == e.Error() {
		return e
	}
	return err
}

// rebuildRegistry writes teams.json, a cache of name -> path, from the directories.
func (e *Env) rebuildRegistry() error {
	keys, err := e.Keys()
	if err != nil {
		return err
	}
	data := []byte("{")
	for i, k := range keys {
		if i > 0 {
			data = append(data, ',')
		}
		data = fmt.Appendf(data, "\n  %q: %q", k, e.Home.Team(k).Dir)
	}
	if len(keys) > 0 {
		data = append(data, '\n')
	}
	data = append(data, "}\n"...)
	if err := atomicfile.Write(e.Home.Registry(), data, 0o600, false); err != nil {
		return unwritable(e.Home.Registry(), err)
	}
	return nil
}

// Keys returns the teams whose directory has a ledger, sorted.
func (e *Env) Keys() ([]string, error) {
	entries, err := os.ReadDir(e.Home.TeamsDir())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, team.Errorf(team.CodeUnavailable, "list teams: %w", err)
	}
	var keys []string
	for _, d := range entries {
		if strings.HasPrefix(d.Name(), ".") || !d.IsDir() {
			continue
		}
		if _, err := os.Lstat(filepath.Join(e.Home.TeamsDir(), d.Name(), "ledger.db")); err == nil {
			keys = append(keys, d.Name())
		}
	}
	return keys, nil
}

// Resolve determines the team of a command: the named one, else $TEAMCTL_TEAM, else the only one,
// else the one to which the directory Dir belongs, else team.DefaultTeam.
func (e *Env) Resolve(ctx context.Context, name string) (string, error) {
	if name == "" {
		name = os.Getenv(team.EnvTeam)
	}
	keys, err := e.Keys()
	if err != nil {
		return "", err
	}
	if name != "" {
		key, err := team.TeamKey(name)
		if err != nil {
			return "", err
		}
		if !slices.Contains(keys, key) {
			return "", e.noTeam(key, keys)
		}
		return key, nil
	}
	several, where := keys, ""
	if len(keys) > 1 {
		switch near := e.here(ctx, keys); {
		case len(near) == 1:
			return near[0], nil
		case len(near) > 1:
			several, where = near, " on this repository"
		case slices.Contains(keys, team.DefaultTeam):
			return team.DefaultTeam, nil
		}
	}
	switch len(keys) {
	case 0:
		if lost := e.LostTeams(); len(lost) > 0 {
			return "", errLostLedger(lost[0])
		}
		if err := e.onlyNative(); err != nil {
			return "", err
		}
		return "", team.Errorf(team.CodeNotFound, "there is no team yet").WithReason(team.ReasonTeamNotFound).
			WithHint("teamctl create demo --repo .")
	case 1:
		return keys[0], nil
	default:
		return "", team.Errorf(team.CodeInvalid, "there are %d teams%s: %s", len(several), where, strings.Join(several, ", ")).
			WithReason(team.ReasonTeamAmbiguous).WithHint("add --team " + several[0] + ", or export " + team.EnvTeam + "=" + several[0])
	}
}

func (e *Env) noTeam(key string, keys []string) error {
	if lostLedger(e.Home.Team(key)) {
		return errLostLedger(key)
	}
	if err := e.isNative(team.CodeNotFound, key); err != nil {
		return err
	}
	err := team.Errorf(team.CodeNotFound, "Team %q does not exist", key).WithReason(team.ReasonTeamNotFound)
	if len(keys) == 0 {
		return err.WithHint("there is no team yet: teamctl create " + key + " --repo .")
	}
	if near := team.Closest(key, keys); near != "" {
		return err.WithHint("did you mean " + near + "? teams are " + strings.Join(keys, ", "))
	}
	return err.WithHint("teams are " + strings.Join(keys, ", "))
}

// Open opens a team by its key.
func (e *Env) Open(ctx context.Context, key string) (*Team, error) {
	l := e.Home.Team(key)
	if _, err := os.Lstat(l.Ledger()); err != nil {
		keys, _ := e.Keys()
		return nil, e.noTeam(key, keys)
	}
	hub := e.Watch
	if hub == nil {
		hub = new(dirwatch.Hub)
	}
	ledgers := e.Ledgers
	if ledgers == nil {
		ledgers = new(ledger.Shared)
	}
	db, release, err := ledgers.Open(ctx, l.Ledger(), ledger.Options{LockPath: l.LedgerLock(), Watch: hub})
	if err != nil {
		return nil, err
	}
	t := &Team{Env: e, Layout: l, Watch: hub, release: release}
	w := ledger.Direct(db)
	read := ledger.New(db, w)
	place, err := read.Place(ctx)
	if err != nil {
		return nil, errors.Join(err, release())
	}
	if t.Elsewhere = place.Refusal(l.Dir); t.Elsewhere == nil {
		t.Layout = At(place, l)
		if e.Writer != nil {
			w, t.via = e.Writer(t.Layout, w)
		}
	}
	t.Ledger = ledger.New(db, w)
	return t, nil
}

// At returns the layout of a team with the path in its ledger, so that the sockets are the same
// for all paths to its directory.
func At(place ledger.Place, l team.Layout) team.Layout {
	if place.Path == "" || place.Path == l.Dir {
		return l
	}
	return team.LayoutAt(place.Path)
}

// Canonical is At for a team whose ledger can be read; other teams keep the given path.
func Canonical(ctx context.Context, l team.Layout) team.Layout {
	db, err := ledger.Open(ctx, l.Ledger(), ledger.Options{LockPath: l.LedgerLock()})
	if err != nil {
		return l // the next one to open it reports the reason
	}
	place, err := ledger.New(db, nil).Place(ctx)
	_ = db.Close() // it was only read
	if here, _ := place.Here(l.Dir); err != nil || !here {
		return l
	}
	return At(place, l)
}

// Close ends the use of the ledger.
func (t *Team) Close() error { return t.release() }

// as returns the ledger with the caller as the actor of its events.
func (t *Team) as(c Caller) *ledger.Ledger { return t.Ledger.As(c.Name).Via(c.Door) }

// supervisor dials the team's supervisor, and starts one if none is running.
func (t *Team) supervisor(ctx context.Context) (Supervisor, error) {
	if t.Elsewhere != nil {
		return nil, t.Elsewhere
	}
	if t.Env.Dial == nil {
		return nil, team.Errorf(team.CodeUnavailable, "no supervisor can be started here")
	}
	return t.Env.Dial(ctx, t.Layout, true)
}

// RunningSupervisor returns the team's supervisor; CodeUnavailable if none is running.
func (t *Team) RunningSupervisor(ctx context.Context) (Supervisor, error) {
	if t.Env.Dial != nil && t.Elsewhere == nil {
		s, err := t.Env.Dial(ctx, t.Layout, false)
		if s != nil || err != nil {
			return s, err
		}
	}
	return nil, team.Errorf(team.CodeUnavailable, "no supervisor of team %q is up", t.Layout.Key).
		WithReason(team.ReasonSupervisorDown).WithHint("teamctl ps starts one where a member should run")
}

// supervise runs f with the team's supervisor. If the supervisor exited between the dial and the
// request because it was idle, another one is started: it reports that before it does anything.
func supervise[T any](ctx context.Context, t *Team, f func(Supervisor) (T, error)) (T, error) {
	for try := 0; ; try++ {
		s, err := t.supervisor(ctx)
		if err != nil {
			var zero T
			return zero, err
		}
		out, err := f(s)
		if err == nil || try >= 3 || !errors.Is(err, supervisor.ErrStopped) && !refused(err) {
			return out, err
		}
	}
}

// refused reports whether an error says that the request was not begun.
func refused(err error) bool {
	return team.ReasonOf(err) == supervisor.ErrStopped.Reason && !errors.Is(err, ledger.ErrWriterGone)
}

// Teams lists every team, sorted by key. It asks all supervisors together whether they answer.
func (e *Env) Teams(ctx context.Context) ([]TeamInfo, error) {
	keys, err := e.Keys()
	if err != nil {
		return nil, err
	}
	list := make([]TeamInfo, len(keys))
	rest := make([]func() error, len(keys))
	for i, k := range keys {
		list[i] = TeamInfo{Key: k, Name: k, Path: e.Home.Team(k).Dir}
		rest[i] = list[i].ask(ctx, e)
	}
	for i := range list {
		if err := rest[i](); err != nil {
			list[i].Problem, list[i].Hint = err.Error(), team.HintOf(err)
		}
	}
	return list, nil
}

// ask opens a team and asks its supervisor. rest reads the team with the answer, and closes it.
func (i *TeamInfo) ask(ctx context.Context, e *Env) (rest func() error) {
	t, err := e.Open(ctx, i.Key)
	if err != nil {
		return func() error { return err }
	}
	silent := t.Ask(ctx)
	return func() error {
		defer func() { _ = t.Close() }() // opened for reading only
		since, err := silent()
		if err != nil {
			return err
		}
		if err := i.read(ctx, t, since); err != nil {
			return err
		}
		return t.Elsewhere
	}
}

// read reads a team whose supervisor has not answered since silent, unless that is zero.
func (i *TeamInfo) read(ctx context.Context, t *Team, silent time.Time) error {
	row, err := t.Ledger.Team(ctx)
	if err != nil {
		return err
	}
	i.Name, i.Repo, i.CreatedAt = row.Name, row.Repo, row.CreatedAt
	members, err := t.Ledger.Members(ctx, false)
	if err != nil {
		return err
	}
	for _, m := range members {
		if m.Name == team.LeadName {
			continue
		}
		i.Members++
		if m.Observed == team.Running {
			i.Running++
		}
	}
	down, quiet, err := t.Unmaintained(ctx, members, silent)
	if err != nil {
		return err
	}
	if i.Silent = quiet; !down.IsZero() {
		i.Down = down.UnixMilli()
	}
	i.Supervisor, _ = t.supervisorPID()
	i.Tasks, err = t.Ledger.Counts(ctx)
	return err
}

// supervisorPID returns the pid of the team's supervisor while its lock is held, else 0. adopted
// reports whether it has checked every member that an earlier one left.
func (t *Team) supervisorPID() (pid int, adopted bool) {
	b, err := regular.ReadFile(t.Layout.SupervisorPID())
	if err != nil {
		return 0, false
	}
	if held, err := lockHeld(t.Layout.SupervisorLock()); err != nil || !held {
		return 0, false
	}
	pid, adopted, err = team.ParseSupervisorPID(b)
	if err != nil {
		return 0, false
	}
	if !Lives(pid) {
		return 0, false
	}
	return pid, adopted
}

// Lives reports whether the process with a supervisor's pid is alive and was not killed. Its lock
// and socket are no evidence: it has both until the kernel has removed it, and a child that it was
// starting holds them until its exec.
func Lives(pid int) bool {
	_, err := proc.Identify(pid)
	return err == nil && !proc.Dying(pid)
}

// Members returns the roster, lead first, and the supervisor's pid or 0. The ledger's state of
// processes needs a supervisor: if none is running although members should be, one is started, and
// one that has not adopted them yet (another member may have just started it) is awaited.
func (t *Team) Members(ctx context.Context) ([]ledger.Member, int, error) {
	pid, adopted := t.supervisorPID()
	members, err := t.Ledger.Members(ctx, false)
	if err != nil {
		return nil, 0, err
	}
	switch {
	case t.Elsewhere != nil:
	case adopted:
		err = t.answers(ctx)
	default:
		var started bool
		if started, err = t.awake(ctx, members); started {
			members, err = t.Ledger.Members(ctx, false)
			pid, _ = t.supervisorPID()
		}
	}
	if err != nil {
		return members, 0, err
	}
	slices.SortStableFunc(members, func(a, b ledger.Member) int {
		switch {
		case a.Name == team.LeadName:
			return -1
		case b.Name == team.LeadName:
			return 1
		default:
			return int(a.JoinedAt - b.JoinedAt)
		}
	})
	return members, pid, nil
}

// owed reports whether work is pending that only a supervisor does.
func (t *Team) owed(ctx context.Context) (bool, error) {
	open, err := t.Ledger.Intents(ctx)
	if err != nil || len(open) > 0 {
		return err == nil, err
	}
	todo, err := t.Ledger.Unverified(ctx)
	return len(todo) > 0, err
}

// Member finds a member by name, name@team or session key.
func (t *Team) Member(ctx context.Context, nameOrID string) (ledger.Member, error) {
	name, err := t.address(nameOrID)
	if err != nil {
		return ledger.Member{}, err
	}
	if strings.HasPrefix(name, "agent:") {
		return t.Ledger.MemberBySession(ctx, name)
	}
	return t.Ledger.Member(ctx, name)
}

// address strips @team from an agent id and refuses that of another team.
func (t *Team) address(nameOrID string) (string, error) {
	if nameOrID == "" {
		return "", team.Errorf(team.CodeInvalid, "recipient must not be empty")
	}
	name, key, ok := team.ParseAgentID(nameOrID)
	if ok && !strings.HasPrefix(nameOrID, "agent:") && key != t.Layout.Key {
		return "", team.Errorf(team.CodeInvalid, "%q is not on team %q", nameOrID, t.Layout.Key)
	}
	if strings.HasPrefix(nameOrID, "agent:") {
		return nameOrID, nil
	}
	if key, err := team.AgentKey(name); err == nil {
		return key, nil // spawn treats a typed name in the same way
	}
	return name, nil
}

// Follow calls each with every event after seq, then with new ones, until ctx ends or each fails.
func (t *Team) Follow(ctx context.Context, after int64, each func(ledger.Event) error) (err error) {
	ctx, leave := t.Attended(ctx)
	defer leave(&err)
	changes, stop, err := t.Ledger.Changes(ctx)
	if err != nil {
		return err
	}
	defer stop()
	for {
		for {
			events, err := t.Ledger.Events(ctx, after, 500, ledger.EventFilter{})
			if err != nil {
				return err
			}
			for _, e := range events {
				after = e.Seq
				if err := each(e); err != nil {
					return err
				}
			}
			if len(events) < 500 {
				break
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changes:
		}
	}
}

// nowMS returns the time in Unix milliseconds.
func nowMS() int64 { return time.Now().UnixMilli() }
