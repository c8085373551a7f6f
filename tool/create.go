package tool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/internal/publish"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/trees"
	"github.com/teamctl/teamctl/team"
)

// creating is the prefix of a directory in which a team is being created. The directory is renamed
// to the team's name when it is complete, so that no process sees an incomplete team, and a killed
// create occupies no name.
const creating = ".creating-"

// deleted is the prefix of a team's directory that is being removed.
const deleted = ".deleted-"

// TeamCreate creates a team: the ledger with the lead as first member, and config.json, in a
// directory that becomes the team's in one step; then the registry entry. A name in use is
// CodeConflict with a free one in the hint, unless in.Unique picks that. An error leaves nothing
// behind.
func (e *Env) TeamCreate(ctx context.Context, c Caller, in TeamCreateIn) (out TeamCreateOut, err error) {
	key, err := team.TeamKey(in.TeamName)
	if err != nil {
		return out, err
	}
	if granted(c, OpTeamCreate) != yes {
		return out, team.Errorf(team.CodeDenied, "only a person or a lead creates teams").
			WithHint("send the lead a message instead")
	}
	repo, base, err := resolveRepo(ctx, in.Repo, in.Base)
	if err != nil {
		return out, err
	}
	repos, err := resolveRepos(ctx, repo, in.Repos)
	if err != nil {
		return out, err
	}
	cwd := repo
	if cwd == "" {
		if cwd, err = os.Getwd(); err != nil {
			return out, fmt.Errorf("find working directory: %w", err)
		}
	}
	if err := os.MkdirAll(e.Home.TeamsDir(), 0o700); err != nil {
		return out, unwritable(e.Home.Dir, err)
	}
	if _, err := e.sweepCreating(); err != nil {
		return out, err
	}
	made := newTeam{
		row:      ledger.TeamRow{Name: in.TeamName, Description: in.Description, Repo: repo, Base: base, WorktreeDir: in.WorktreeDir},
		leadType: in.AgentType, cwd: cwd, repos: repos, by: c.Name,
	}
	l := e.Home.Team(key)
	for n := 2; ; n++ {
		if n > 2 {
			l = e.Home.Team(key + "-" + strconv.Itoa(n-1))
		}
		taken, err := e.create(ctx, l, made)
		switch {
		case err != nil:
			return out, err
		case taken && !in.Unique:
			if err := e.isNative(team.CodeConflict, key); err != nil {
				return out, err
			}
			return out, team.Errorf(team.CodeConflict, "Team '%s' already exists. Please choose a different name.", key).
				WithReason(team.ReasonTeamExists).WithHint(fmt.Sprintf("%q is free", e.freeKey(key)))
		case taken:
			continue
		}
		break
	}
	e.reached("named")
	if err := e.rebuildRegistry(); err != nil { // the team stays: others may use it since it has its name
		return out, fmt.Errorf("team %s is created: %w", l.Key, err)
	}
	return TeamCreateOut{
		TeamName: l.Key, TeamFilePath: l.Config(), LeadAgentID: team.AgentID(team.LeadName, l.Key),
		Repo: repo, Base: base, Repos: repos,
	}, nil
}

// newTeam describes the initial state of a team.
type newTeam struct {
	row      ledger.TeamRow // without the fields that depend on the name
	leadType string
	cwd      string // the lead's
	repos    trees.Repositories
	by       string
}

// create creates the team at l, unless the name is in use.
func (e *Env) create(ctx context.Context, l team.Layout, n newTeam) (taken bool, err error) {
	if _, err := os.Lstat(l.Dir); err == nil && !emptyDir(l.Dir) {
		return true, nil
	}
	tmp, held, err := e.creatingDir(l.Key)
	if err != nil {
		return false, err
	}
	defer func() {
		if taken || err != nil {
			err = firstCoded(errors.Join(err, os.RemoveAll(tmp.Dir)))
		}
		_ = held.Close() // opened for its lock
	}()
	e.reached("made")
	if err := e.fill(ctx, tmp, n); err != nil {
		return false, err
	}
	e.reached("filled")
	// An empty directory is not a team and is replaced; any other is refused.
	switch err := unix.Rename(tmp.Dir, l.Dir); {
	case errors.Is(err, unix.ENOTEMPTY), errors.Is(err, unix.EEXIST), errors.Is(err, unix.ENOTDIR):
		return true, nil
	case err != nil:
		return false, unwritable(l.Dir, err)
	}
	return false, e.keepNames()
}

// keepNames syncs the directory of the teams.
func (e *Env) keepNames() error {
	root, err := os.OpenRoot(e.Home.TeamsDir())
	if err == nil {
		err = errors.Join(atomicfile.SyncDir(root), root.Close())
	}
	if err != nil {
		return unwritable(e.Home.TeamsDir(), err)
	}
	return nil
}

// fill creates the initial content of a team.
func (e *Env) fill(ctx context.Context, l team.Layout, n newTeam) (err error) {
	for _, d := range []string{l.Inboxes(), l.Locks(), l.Members()} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return unwritable(d, err)
		}
	}
	e.reached("places")
	db, err := ledger.Open(ctx, l.Ledger(), ledger.Options{Create: true, LockPath: l.LedgerLock()})
	if err != nil {
		return err
	}
	// The ledger's log must be merged into its file before the file is renamed.
	defer func() { err = errors.Join(err, db.Close()) }()
	e.reached("ledger")
	led := ledger.New(db, ledger.Direct(db)).As(n.by)
	n.row.Key, n.row.LeadSession = l.Key, team.LeadSessionKey(n.leadType, l.Key)
	row, err := led.CreateTeam(ctx, n.row)
	if err != nil {
		return err
	}
	e.reached("team")
	if len(n.repos) > 0 {
		if err := led.Set(ctx, trees.SettingRepos, n.repos); err != nil {
			return err
		}
	}
	leadType := n.leadType
	if leadType == "" {
		leadType = team.LeadName
	}
	_, _, err = led.AddMember(ctx, ledger.Member{
		SessionKey: row.LeadSession, Name: team.LeadName, Role: team.RoleLeader,
		Spec:    team.MemberSpec{Agent: "lead", AgentType: leadType, Cwd: n.cwd, WorktreeMode: "none"},
		Desired: team.WantStopped, Observed: team.Pending, Activity: team.ActivityUnknown,
	}, true)
	if err != nil {
		return err
	}
	e.reached("lead")
	place, err := ledger.PlaceAt(l.Dir, e.Home.Team(l.Key).Dir)
	if err != nil {
		return err
	}
	if err := led.SetPlace(ctx, place); err != nil {
		return err
	}
	return publish.Config(ctx, l, led)
}

// creatingDir creates a directory for a new team, reserved while held is open.
func (e *Env) creatingDir(key string) (l team.Layout, held *os.File, err error) {
	for {
		l = team.Layout{Home: e.Home, Key: key, Dir: filepath.Join(e.Home.TeamsDir(), creating+key+"-"+team.NewUUID()[:8])}
		if err := os.Mkdir(l.Dir, 0o700); err != nil {
			return l, nil, unwritable(l.Dir, err)
		}
		held, err := lockDir(l.Dir)
		if held != nil || err != nil {
			return l, held, err
		}
		// A sweep came in between and removes the directory.
	}
}

// lockDir locks a directory while the file is open; nil if the directory is locked or gone. The
// kernel releases the lock when its holder exits.
func lockDir(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, unwritable(dir, err)
	}
	got := false
	if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		err = nil
	} else if err == nil { // the previous holder may have removed it
		here, statErr := f.Stat()
		there, goneErr := os.Lstat(dir)
		got = statErr == nil && goneErr == nil && os.SameFile(here, there)
	}
	if got {
		return f, nil
	}
	_ = f.Close() // opened for its lock
	if err != nil {
		return nil, unwritable(dir, err)
	}
	return nil, nil
}

// sweepCreating removes the directories of killed creates: they are unlocked, and only the killed
// process knew their names.
func (e *Env) sweepCreating() (n int, err error) { return e.sweepTeams(creating) }

// sweepUnfinished also completes killed deletes, whose last step renames the directory and then
// removes it.
func (e *Env) sweepUnfinished() (n int, err error) { return e.sweepTeams(creating, deleted) }

func (e *Env) sweepTeams(prefixes ...string) (n int, err error) {
	entries, err := os.ReadDir(e.Home.TeamsDir())
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, unwritable(e.Home.TeamsDir(), err)
	}
	for _, d := range entries {
		begins := func(prefix string) bool { return strings.HasPrefix(d.Name(), prefix) }
		if !d.IsDir() || !slices.ContainsFunc(prefixes, begins) {
			continue
		}
		path := filepath.Join(e.Home.TeamsDir(), d.Name())
		held, err := lockDir(path)
		if err != nil {
			return n, err
		}
		if held == nil {
			continue
		}
		if err := errors.Join(os.RemoveAll(path), held.Close()); err != nil {
			return n, unwritable(path, err)
		}
		n++
	}
	return n, nil
}

// freeKey returns an unused name similar to key.
func (e *Env) freeKey(key string) string {
	for n := 2; ; n++ {
		next := key + "-" + strconv.Itoa(n)
		if _, err := os.Lstat(e.Home.Team(next).Dir); errors.Is(err, os.ErrNotExist) {
			return next
		}
	}
}

func emptyDir(path string) bool {
	entries, err := os.ReadDir(path)
	return err == nil && len(entries) == 0
}

// reached reports the progress of an operation to a test.
func (e *Env) reached(step string) {
	if e.step != nil {
		e.step(step)
	}
}
