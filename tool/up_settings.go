package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/teamctl/teamctl/internal/hooks"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/quota"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool/teamfile"
)

// whatSetting is the What of a Change of a setting; its Name is one of these.
const (
	whatSetting        = "setting"
	settingWorktrees   = "worktrees"
	settingHooks       = "hooks"
	settingPermissions = "permissions"
	settingBudgets     = "budgets"
	settingMCP         = "mcp"
	settingLanes       = "lanes"
	settingModel       = SetModel
	settingAgents      = "agents"
)

// upSetting is a setting of the team as the file has it.
type upSetting struct {
	name string
	// was and now are compared as JSON, without what a consent adds.
	was, now any
	// again: it is set although nothing differs, as its consent may have been given meanwhile.
	again bool
	set   func(context.Context) error
}

func (s upSetting) op() string {
	switch {
	case s.was == nil:
		return ChangeAdd
	case s.now == nil:
		return ChangeRemove
	}
	return ChangeChange
}

// has lists the settings that the file has.
func (u *upper) has() (names []string) {
	for _, one := range []struct {
		name string
		has  bool
	}{
		{settingWorktrees, !u.bootstrap().Empty()},
		{settingHooks, len(u.f.Hooks) > 0},
		{settingPermissions, !u.f.Permissions.None()},
		{settingBudgets, !u.budgets().None()},
		{settingMCP, len(u.f.MCP) > 0},
		{settingLanes, len(u.f.Lanes) > 0},
		{settingModel, u.f.Model != ""},
		{settingAgents, len(u.f.Agents) > 0},
	} {
		if one.has {
			names = append(names, one.name)
		}
	}
	return names
}

// mayCreate refuses, before anything is done, a new team with settings that the caller may not
// set.
func (u *upper) mayCreate(ctx context.Context, key string) error {
	if u.caller.Person || len(u.has()) == 0 {
		return nil
	}
	t, err := u.env.Open(ctx, key)
	if team.IsCode(err, team.CodeNotFound) {
		return u.maySet(u.has())
	}
	if err != nil {
		return err
	}
	return t.Close()
}

// maySet refuses settings that the caller may not set. A caller that may not set them can
// still bring up a file that leaves them as they are.
func (u *upper) maySet(names []string) error {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return u.caller.Person || name != settingPermissions && granted(u.caller, OpSettings) != no
	})
	if len(names) == 0 {
		return nil
	}
	return team.Errorf(team.CodeDenied, "%s (%s) may not change the team's settings, and %s changes %s", u.caller.Name, u.caller.Role, u.File, strings.Join(names, ", ")).
		WithReason(team.ReasonRole).WithHint("a person runs: teamctl up -f " + team.ShellQuote(u.File))
}

// set makes the settings of the team those of the file, and notes the commands that wait for
// consent.
func (u *upper) set(ctx context.Context, t *Team) error {
	list, err := u.differing(ctx, t)
	if err != nil {
		return err
	}
	for _, s := range list {
		if err := s.set(ctx); err != nil {
			return err
		}
	}
	b, err := t.Bootstrap(ctx)
	if err != nil {
		return err
	}
	if setup, teardown := b.Commands(); len(setup)+len(teardown) > 0 && !b.Allowed() && !u.bootstrap().Empty() {
		u.waits("the setup commands of "+u.File+" are not run, for it came with the repository:", append(setup, teardown...),
			"when you have read them: teamctl worktree prepare --allow --team "+t.Layout.Key)
	}
	h, err := t.supplied(ctx)
	if err == nil && len(u.f.Hooks) > 0 && !h.Allowed() {
		u.waits("the hooks of "+u.File+" are not run, for they came with the repository:", u.f.Hooks.Commands(),
			"when you have read them: teamctl hooks allow --team "+t.Layout.Key)
	}
	return err
}

// differing returns the settings to set. Those that differ from the file are noted among the
// changes; if the caller may not make one of them, all are refused.
func (u *upper) differing(ctx context.Context, t *Team) (list []upSetting, err error) {
	var names []string
	for _, read := range []func(context.Context, *Team) (upSetting, error){u.worktrees, u.hooks, u.permissions, u.limits, u.servers, u.lanes, u.model, u.agents} {
		s, err := read(ctx, t)
		if err != nil {
			return nil, err
		}
		if s.set == nil {
			continue
		}
		same, err := sameJSON(s.was, s.now)
		if err != nil {
			return nil, err
		}
		if !same {
			names = append(names, s.name)
			u.out.Changes = append(u.out.Changes, Change{Op: s.op(), What: whatSetting, Name: s.name})
		}
		if !same || s.again && u.caller.Person {
			list = append(list, s)
		}
	}
	return list, u.maySet(names)
}

func sameJSON(a, b any) (bool, error) {
	x, err := json.Marshal(a)
	if err != nil {
		return false, err
	}
	y, err := json.Marshal(b)
	return bytes.Equal(x, y), err
}

// waits notes what is left out until a person allows it.
func (u *upper) waits(text string, what []string, hint string) {
	u.out.Waiting = append(u.out.Waiting, UpWaiting{Text: text, What: what, Hint: hint})
}

// bootstrap is what the file says that new worktrees get.
func (u *upper) bootstrap() team.Bootstrap {
	w := u.f.Worktrees
	b := team.Bootstrap{Furnishing: furnishing(w.Furnishing)}
	for name, one := range w.Repos {
		if b.Repos == nil {
			b.Repos = map[string]team.Furnishing{}
		}
		b.Repos[name] = furnishing(one)
	}
	return b
}

func furnishing(w teamfile.Furnishing) team.Furnishing {
	return team.Furnishing{Copy: w.Copy, Link: w.Link, Setup: w.Setup, Teardown: w.Teardown, Limit: w.Timeout}
}

// worktrees is how the team's worktrees are set up. The commands of a file in the repository are
// not run before a person has consented to them: whoever clones the repository has not read them.
func (u *upper) worktrees(ctx context.Context, t *Team) (upSetting, error) {
	b, s := u.bootstrap(), upSetting{name: settingWorktrees}
	if b.Empty() {
		return s, nil
	}
	if u.out.Team.Repo == "" && len(u.out.Team.Repos) == 0 {
		return s, team.Errorf(team.CodeInvalid, "worktrees need a repository").WithReason(team.ReasonNoRepository).WithHint("add repo: PATH to " + u.File)
	}
	var err error
	if b.FromRepo, err = liesIn(u.File, u.out.Team); err != nil {
		return s, err
	}
	was, err := t.Bootstrap(ctx)
	if err != nil {
		return s, err
	}
	s.again = u.AllowSetup || u.Agree || !was.Allowed()
	bare := was
	bare.Hash, bare.Consent = "", ""
	if s.now = b; !was.Empty() {
		s.was = bare
	}
	s.set = func(ctx context.Context) error {
		_, err := t.SetBootstrap(ctx, u.caller, b, u.AllowSetup || u.Agree)
		return err
	}
	return s, nil
}

// hooks is the hooks of the file.
func (u *upper) hooks(ctx context.Context, t *Team) (upSetting, error) {
	s := upSetting{name: settingHooks}
	if len(u.f.Hooks) == 0 {
		return s, nil
	}
	file, err := realPath(u.File)
	if err != nil {
		return s, err
	}
	h := hooks.Supplied{Hooks: u.f.Hooks, Repo: u.out.Team.Repo}
	roots := []string{u.out.Team.Repo}
	for _, root := range u.out.Team.Repos {
		roots = append(roots, root)
	}
	for _, root := range roots {
		if root != "" && strings.HasPrefix(file, root+"/") {
			h.FromRepo, h.Repo = true, root
		}
	}
	if !h.FromRepo {
		repo, err := RepositoryOf(file)
		if err != nil {
			return s, err
		}
		h.FromRepo = repo != ""
	}
	was, err := t.supplied(ctx)
	if err != nil {
		return s, err
	}
	s.again = u.AllowHooks || u.Agree || !was.Allowed()
	bare := was
	bare.Consent = ""
	if s.now = h; len(was.Hooks) > 0 {
		s.was = bare
	}
	s.set = func(ctx context.Context) error {
		_, err := t.setHooks(ctx, u.caller, h, u.AllowHooks || u.Agree)
		return err
	}
	return s, nil
}

// permissions is the rules of the file. What they allow holds only once a person has allowed it,
// where the file came with a repository. Rules that deny hold at once.
func (u *upper) permissions(ctx context.Context, t *Team) (upSetting, error) {
	p, s := u.f.Permissions, upSetting{name: settingPermissions}
	if p.None() {
		return s, nil
	}
	inRepo, err := liesIn(u.File, u.out.Team)
	if err != nil {
		return s, err
	}
	was, err := t.Permissions(ctx)
	if err != nil {
		return s, err
	}
	if !was.None() {
		s.was = was
	}
	allowed, err := sameJSON(was, p) // by a person, before
	if err != nil {
		return s, err
	}
	if inRepo && len(p.Allow) > 0 && !u.AllowPermissions && !allowed {
		var what []string
		for _, r := range p.Allow {
			what = append(what, r.String())
		}
		p.Allow = nil
		u.waits("what "+u.File+" allows does not hold, for it came with the repository:", what,
			"when you have read it: teamctl approvals rules -f "+team.ShellQuote(u.File)+" --team "+t.Layout.Key)
	}
	s.now = p
	s.set = func(ctx context.Context) error { return t.SetPermissions(ctx, u.caller, p) }
	return s, nil
}

// budgets are those of the file.
func (u *upper) budgets() team.Budgets {
	b := team.Budgets{Team: u.f.Budget, Members: map[string]team.Budget{}, Resume: u.f.OnLimit == teamfile.OnLimitResume}
	for _, m := range u.f.Members {
		for _, name := range m.Names() {
			if !m.Budget.None() {
				b.Members[name] = m.Budget
			}
		}
	}
	return b
}

// limits is the budgets, to be set before any member starts.
func (u *upper) limits(ctx context.Context, t *Team) (upSetting, error) {
	b, s := u.budgets(), upSetting{name: settingBudgets}
	if b.None() {
		return s, nil
	}
	declared := map[string]bool{} // checked by prices
	for _, m := range u.d.Members {
		declared[m.Name] = true
	}
	if err := t.countAll(ctx, b, declared); err != nil {
		return s, err
	}
	q, err := quota.Limits(ctx, t.Ledger)
	if err != nil {
		return s, err
	}
	if s.now = b; !q.Budgets.None() {
		s.was = q.Budgets
	}
	s.set = func(ctx context.Context) error { return t.SetBudgets(ctx, u.caller, b) }
	return s, nil
}

// lanes is the widths of lanes. Those that the file leaves out stay as they are.
func (u *upper) lanes(ctx context.Context, t *Team) (upSetting, error) {
	s := upSetting{name: settingLanes}
	if len(u.f.Lanes) == 0 {
		return s, nil
	}
	was := teamfile.Lanes{}
	for lane := range u.f.Lanes {
		width, err := t.settingInt(ctx, ledger.SettingLane+string(lane), 0)
		if err != nil {
			return s, err
		}
		if width > 0 {
			was[lane] = width
		}
	}
	if s.now = u.f.Lanes; len(was) > 0 {
		s.was = was
	}
	s.set = func(ctx context.Context) error {
		for _, lane := range team.Lanes() {
			if width := u.f.Lanes[lane]; width > 0 && width != was[lane] {
				if err := t.Set(ctx, u.caller, ledger.SettingLane+string(lane), strconv.Itoa(width)); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return s, nil
}

// model is the model of sessions that have none of their own. A file without one leaves it as it is.
func (u *upper) model(ctx context.Context, t *Team) (upSetting, error) {
	s := upSetting{name: settingModel}
	if u.f.Model == "" {
		return s, nil
	}
	was, err := t.Model(ctx)
	if err != nil {
		return s, err
	}
	if s.now = u.f.Model; was != "" {
		s.was = was
	}
	s.set = func(ctx context.Context) error { return t.Set(ctx, u.caller, SetModel, u.f.Model) }
	return s, nil
}

// agents are the specs of the file. Those that the file leaves out stay as they are.
func (u *upper) agents(ctx context.Context, t *Team) (upSetting, error) {
	s := upSetting{name: settingAgents}
	if len(u.f.Agents) == 0 {
		return s, nil
	}
	have, err := t.Specs(ctx)
	if err != nil {
		return s, err
	}
	var was, differ []team.AgentSpec
	for _, spec := range u.f.Agents {
		i := slices.IndexFunc(have, func(h ledger.Spec) bool { return h.ID == spec.ID })
		if i >= 0 {
			was = append(was, have[i].AgentSpec)
			if same, err := sameJSON(have[i].AgentSpec, spec); err != nil || same {
				if err != nil {
					return s, err
				}
				continue
			}
		}
		differ = append(differ, spec)
	}
	if s.now = u.f.Agents; len(was) > 0 {
		s.was = was
	}
	s.set = func(ctx context.Context) error {
		for _, spec := range differ {
			if _, err := t.PutSpec(ctx, u.caller, spec); err != nil {
				return err
			}
		}
		return nil
	}
	return s, nil
}

// servers is the MCP servers for agents of kind llm.
func (u *upper) servers(ctx context.Context, t *Team) (upSetting, error) {
	s := upSetting{name: settingMCP}
	was, err := t.Servers(ctx)
	if err != nil || len(was)+len(u.f.MCP) == 0 {
		return s, err
	}
	if len(was) > 0 {
		s.was = was
	}
	if len(u.f.MCP) > 0 {
		s.now = u.f.MCP
	}
	s.set = func(ctx context.Context) error { return t.SetServers(ctx, u.caller, u.f.MCP) }
	return s, nil
}
