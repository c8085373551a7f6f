package tool

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"time"

	"github.com/teamctl/teamctl/supervisor/trees"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool/teamfile"
	"github.com/teamctl/teamctl/worktree"
)

// DefaultFile is the team file where none is named.
const DefaultFile = "teamctl.yaml"

// UpIn names a team file and says what may be done about it. What a person allows is
// refused of any other caller.
type UpIn struct {
	File   string // default DefaultFile
	Team   string // instead of the name in the file
	DryRun bool   // report the difference, change nothing
	Remove bool   // also remove what an earlier up made and the file no longer has

	Agree            bool // to all commands of a file that lies in a repository
	AllowSetup       bool // to its setup commands
	AllowHooks       bool
	AllowPermissions bool
	Bypass           bool // members in mode bypassPermissions

	TMUX, TMUXPane string // of the caller's terminal

	// Who verifies the caller in a team that exists; nil: it is the one that calls.
	Who func(context.Context, *Team) (Caller, error)
	// Consent shows a person commands that came with a repository, and asks; nil: nobody
	// is asked.
	Consent func(repo string, commands []string) bool
	// Started is called before members are started, and what it returns afterwards.
	Started func(*Team) (end func())
}

// UpOut is what Up has done. It is filled as far as Up came where Up fails.
type UpOut struct {
	Team    TeamCreateOut `json:"team"`
	Tasks   []string      `json:"tasks"`   // new ones
	Members []Spawned     `json:"members"` // new ones
	Changes []Change      `json:"changes"` // what differed from the file
	DryRun  bool          `json:"dryRun,omitempty"`
	Outcome string        `json:"outcome,omitempty"` // already_up: nothing differed
	Waiting []UpWaiting   `json:"waiting,omitempty"` // parts of the file that are left out until a person allows them

	Created bool           `json:"-"` // the team is new
	Undone  *TeamDeleteOut `json:"-"` // the new team did not come up, and was deleted again
}

// UpWaiting is a part of a team file that came with a repository and waits for consent.
type UpWaiting struct {
	Text string   `json:"text"`
	What []string `json:"what"`
	Hint string   `json:"hint,omitempty"`
}

// upper is one run of Up.
type upper struct {
	UpIn
	env    *Env
	caller Caller
	f      *teamfile.File
	d      Declared
	out    UpOut
}

// Up brings the team of a file up: it creates the team, or makes what the file has more
// or has changed in a team that exists. An up that was killed is completed by the next.
// If a member of a new team cannot be started, the team is deleted again.
func (e *Env) Up(ctx context.Context, c Caller, in UpIn) (UpOut, error) {
	u := &upper{UpIn: in, env: e, caller: c, out: UpOut{Tasks: []string{}, Members: []Spawned{}, Changes: []Change{}, DryRun: in.DryRun}}
	if u.File == "" {
		u.File = DefaultFile
	}
	err := u.run(ctx)
	return u.out, err
}

func (u *upper) run(ctx context.Context) (err error) {
	if u.f, err = teamfile.Read(u.File); err != nil {
		return err
	}
	if u.Team != "" {
		u.f.Team = u.Team
	}
	if err := u.check(); err != nil {
		return err
	}
	if err := u.prices(ctx); err != nil {
		return err
	}
	in, err := u.creates()
	if err != nil {
		return err
	}
	if u.d, err = u.declared(); err != nil {
		return err
	}
	key, err := team.TeamKey(u.f.Team)
	if err != nil {
		return err
	}
	if !u.DryRun {
		if err := u.agree(ctx); err != nil {
			return err
		}
	}
	for _, op := range []Operation{OpTeamCreate, OpSpawn} {
		if granted(u.caller, op) == no {
			return errRole(u.caller, op)
		}
	}
	if err := u.mayCreate(ctx, key); err != nil {
		return err
	}
	if u.DryRun {
		return u.compare(ctx, key, in)
	}
	u.out.Team, err = u.env.TeamCreate(ctx, u.caller, in)
	u.out.Created = err == nil
	if team.ReasonOf(err) == team.ReasonTeamExists {
		u.out.Team, err = u.there(ctx, key, in)
	}
	if err != nil {
		return err
	}
	if err := u.fill(ctx); err != nil {
		if !u.out.Created {
			return err
		}
		back := u.takeBack(ctx)
		if team.ReasonOf(err) == team.ReasonSetup { // its log went with the team
			err = team.Errorf(team.CodeOf(err), "%w", err).WithReason(team.ReasonSetup).
				WithHint("try the command in a checkout of the repository, then teamctl up -f " + team.ShellQuote(u.File))
		}
		if back != nil {
			err = team.Errorf(team.CodeOf(err), "%w (and team %s could not be deleted again: %v)", err, key, back).
				WithReason(team.ReasonOf(err)).WithHint("teamctl delete " + key + " --force")
		}
		return err
	}
	if !u.out.Created && !slices.ContainsFunc(u.out.Changes, func(c Change) bool { return c.Skipped == "" }) {
		u.out.Outcome = "already_up"
	}
	return nil
}

// check refuses members that cannot be started, before anything is done.
func (u *upper) check() error {
	for _, m := range u.f.Members {
		if m.Mode == team.ModeBypass && !u.Bypass {
			return team.Errorf(team.CodeDenied, "%s of %s would skip all permission prompts: its mode is %s", m.Name, u.File, m.Mode).
				WithReason(team.ReasonBypass).WithHint("teamctl up -f " + team.ShellQuote(u.File) + " --dangerously-skip-permissions, if you mean it")
		}
		if m.Agent != "" && u.env.CheckAgent != nil {
			if err := u.env.CheckAgent(m.Agent); err != nil {
				return err
			}
		}
	}
	return nil
}

// creates is the team of the file, as TeamCreate takes it.
func (u *upper) creates() (in TeamCreateIn, err error) {
	f := u.f
	in = TeamCreateIn{TeamName: f.Team, Description: f.Description, Base: f.Base}
	if f.Repo != "" {
		in.Repo = f.Repo
		if !filepath.IsAbs(in.Repo) {
			in.Repo = filepath.Join(filepath.Dir(u.File), in.Repo)
		}
	}
	for name, path := range f.Repos {
		if in.Repos == nil {
			in.Repos = map[string]string{}
		}
		if in.Repos[name], err = besides(u.File, path); err != nil {
			return in, err
		}
	}
	in.WorktreeDir, err = besides(u.File, f.Worktrees.Root)
	return in, err
}

// declared is what the file says there is, each member by a name of its own.
func (u *upper) declared() (d Declared, err error) {
	if d.Tasks, err = teamfile.NewTasks(u.f.Tasks); err != nil {
		return d, err
	}
	for _, m := range u.f.Members {
		in := m.Spawn
		in.Bypass = u.Bypass && m.Mode == team.ModeBypass
		in.Origin = team.Origin{TMUX: u.TMUX, TMUXPane: u.TMUXPane}
		if in.Declared, err = m.Entry(); err != nil {
			return d, err
		}
		if in.Cwd, err = besides(u.File, in.Cwd); err != nil {
			return d, err
		}
		in.Writable = slices.Clone(in.Writable)
		for i, path := range in.Writable {
			if in.Writable[i], err = besides(u.File, path); err != nil {
				return d, err
			}
		}
		if !slices.Contains([]string{"", "own", "none"}, in.WorktreeMode) {
			if in.WorktreeMode, err = besides(u.File, in.WorktreeMode); err != nil {
				return d, err
			}
		}
		for _, name := range m.Names() {
			in.Name, in.Count, in.Exact = name, 1, true
			d.Members = append(d.Members, in)
		}
	}
	for _, e := range u.f.Edges {
		d.Edges = append(d.Edges, team.Edge{From: e.From, Type: e.Type, To: e.To})
	}
	return d, nil
}

// compare is a dry run.
func (u *upper) compare(ctx context.Context, key string, in TeamCreateIn) error {
	t, err := u.env.Open(ctx, key)
	if team.IsCode(err, team.CodeNotFound) {
		u.out.Changes = append(u.out.Changes, Change{Op: ChangeAdd, What: "team", Name: key})
		for _, name := range u.has() {
			u.out.Changes = append(u.out.Changes, Change{Op: ChangeAdd, What: whatSetting, Name: name})
		}
		u.out.Changes = append(u.out.Changes, u.d.All()...)
		return nil
	}
	if err != nil {
		return err
	}
	u.out.Team, err = u.there(ctx, key, in)
	if err == nil {
		err = u.verify(ctx, t)
	}
	if err == nil {
		_, err = u.differing(ctx, t)
	}
	if err == nil {
		var diff Difference
		diff, err = t.Compare(ctx, u.d, u.Remove)
		u.out.Changes = append(u.out.Changes, diff.Changes...)
	}
	return errors.Join(err, t.Close())
}

// verify replaces the caller by the one that the team knows.
func (u *upper) verify(ctx context.Context, t *Team) (err error) {
	if u.Who != nil {
		u.caller, err = u.Who(ctx, t)
	}
	return err
}

// agree asks for the consent to the commands of the file. Setup commands and hooks alone
// need none to come up: they are left out until they are allowed.
func (u *upper) agree(ctx context.Context) error {
	commands, later := u.f.Commands()
	if len(commands) == 0 {
		return nil
	}
	commands = append(commands, later...)
	repo, err := RepositoryOf(u.File)
	if err != nil || repo == "" {
		u.Agree = false // of a file that lies in no repository there is nothing to agree to
		return err
	}
	ok, err := u.env.Agreed(ctx, u.caller, repo, commands, u.Agree)
	if err != nil || ok {
		return err
	}
	again := "teamctl up"
	if u.File != DefaultFile {
		again += " -f " + team.ShellQuote(u.File)
	}
	if u.Consent == nil {
		u.out.Waiting = append(u.out.Waiting, UpWaiting{
			Text: "the commands of " + u.File + " are not run, for it came with the repository " + repo + ":",
			What: commands, // the error has the hint
		})
	} else if u.Consent(repo, commands) {
		u.Agree = true
		_, err := u.env.Agreed(ctx, u.caller, repo, commands, true)
		return err
	}
	return team.Errorf(team.CodeDenied, "the commands of %s need your consent: %d", u.File, len(commands)).
		WithReason(team.ReasonConsent).WithHint("when you have read them: " + again + " --agree")
}

// there is the team that exists already. Its repository is the file's, or it is another
// team that happens to have the name.
func (u *upper) there(ctx context.Context, key string, in TeamCreateIn) (made TeamCreateOut, err error) {
	t, err := u.env.Open(ctx, key)
	if err != nil {
		return made, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	row, err := t.Ledger.Team(ctx)
	if err != nil {
		return made, err
	}
	repo := ""
	if in.Repo != "" {
		r, err := worktree.OpenRepo(ctx, in.Repo)
		if err != nil {
			return made, err
		}
		repo = r.Root()
	}
	if repo != row.Repo {
		return made, team.Errorf(team.CodeConflict, "there is a team %s already, which works on %s and not on %s", key, cmp.Or(row.Repo, "-"), cmp.Or(repo, "-")).
			WithReason(team.ReasonTeamExists).WithHint("teamctl up -f " + team.ShellQuote(u.File) + " --team NAME")
	}
	more, err := trees.RepositoriesOf(ctx, t.Ledger)
	return TeamCreateOut{TeamName: key, TeamFilePath: t.Layout.Config(), LeadAgentID: team.AgentID(team.LeadName, key), Repo: row.Repo, Base: row.Base, Repos: more}, err
}

// fill makes the team as the file says.
func (u *upper) fill(ctx context.Context) (err error) {
	t, err := u.env.Open(ctx, u.out.Team.TeamName)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := t.Close(); err == nil {
			err = cerr
		}
	}()
	if !u.out.Created {
		if err := u.verify(ctx, t); err != nil {
			return err
		}
	}
	lock, err := t.upLock(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Unlock() }()
	if err := u.set(ctx, t); err != nil {
		return err
	}
	if u.Started != nil {
		defer u.Started(t)()
	}
	for try := 0; ; try++ {
		diff, err := t.Compare(ctx, u.d, u.Remove)
		if err != nil {
			return err
		}
		if try == 0 {
			u.out.Changes = append(u.out.Changes, diff.Changes...)
		}
		applied, err := t.Apply(ctx, u.caller, diff)
		u.out.Tasks, u.out.Members = append(u.out.Tasks, applied.Tasks...), append(u.out.Members, applied.Members...)
		// The last request of an up that was killed may be carried out only now.
		if team.ReasonOf(err) != team.ReasonNameTaken || try == 3 {
			return err
		}
	}
}

// takeBack deletes a team that did not come up whole. Its members had seconds at most;
// what they wrote is saved all the same, as delete --force does.
func (u *upper) takeBack(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	out, err := u.env.Delete(ctx, u.caller, u.out.Team.TeamName, DeleteIn{Force: true})
	u.out.Undone = &out
	return err
}
