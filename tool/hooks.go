package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/teamctl/teamctl/internal/hooks"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// HooksOut has the hooks of a team that are in effect.
type HooksOut struct {
	Hooks   []HookInfo `json:"hooks"`
	Allowed bool       `json:"allowed"`         // false: those of the team file lack consent
	Files   []string   `json:"files,omitempty"` // of the repository, covered by a consent
}

// HookInfo is one hook.
type HookInfo struct {
	Hook    string `json:"hook"` // what it is asked about
	Command string `json:"command"`
	Timeout string `json:"timeout"`
	From    string `json:"from"` // "config": $TEAMCTL_HOME/config.yaml; "team": the team file
	Runs    bool   `json:"runs"`
}

func (t *Team) hooks() hooks.Asker { return hooks.Asker{Layout: t.Layout, Ledger: t.Ledger} }

// supplied returns the hooks of the team's file.
func (t *Team) supplied(ctx context.Context) (s hooks.Supplied, err error) {
	_, err = t.Ledger.Setting(ctx, hooks.Setting, &s)
	return s, err
}

// Hooks lists the hooks of the team that are in effect.
func (t *Team) Hooks(ctx context.Context) (HooksOut, error) {
	out := HooksOut{Hooks: []HookInfo{}}
	own, err := hooks.Load(t.Env.Home)
	if err != nil {
		return out, err
	}
	s, err := t.supplied(ctx)
	if err != nil {
		return out, err
	}
	out.Allowed = s.Allowed()
	if s.FromRepo {
		out.Files = s.Files()
	}
	for _, k := range hooks.Kinds() {
		for _, from := range []struct {
			name string
			list []hooks.Hook
			runs bool
		}{{"config", own[k], true}, {"team", s.Hooks[k], out.Allowed}} {
			for _, r := range from.list {
				limit := r.Timeout
				if limit == 0 {
					limit = hooks.DefaultTimeout
				}
				out.Hooks = append(out.Hooks, HookInfo{Hook: string(k), Command: r.Command, Timeout: limit.String(), From: from.name, Runs: from.runs})
			}
		}
	}
	return out, nil
}

// setHooks sets the hooks of the team's file. With allow they may run although they came with the
// repository; a consent on this machine lasts until the commands, or the repository's files that
// they name, change. allowed reports whether they may run.
func (t *Team) setHooks(ctx context.Context, c Caller, s hooks.Supplied, allow bool) (allowed bool, err error) {
	if err := t.may(ctx, c, OpSettings); err != nil {
		return false, err
	}
	s.Consent = ""
	if len(s.Hooks) > 0 && s.FromRepo {
		hash := s.Hash()
		if s.Consent, err = t.Env.consented(ctx, c, hash, s.Repo, s.Hooks.Commands(), allow); err != nil {
			return false, err
		}
	}
	var v any
	if len(s.Hooks) > 0 {
		v = s
	}
	return s.Allowed(), t.as(c).Set(ctx, hooks.Setting, v)
}

// HooksAllow consents to the team file's hooks as they are now.
func (t *Team) HooksAllow(ctx context.Context, c Caller) (HooksOut, error) {
	s, err := t.supplied(ctx)
	if err != nil {
		return HooksOut{}, err
	}
	if _, err := t.setHooks(ctx, c, s, true); err != nil {
		return HooksOut{}, err
	}
	return t.Hooks(ctx)
}

// blocked returns the error for an action that a hook refused.
func blocked(format string, args ...any) error {
	return team.Errorf(team.CodeDenied, format, args...).WithReason(team.ReasonHookBlocked).WithHint("teamctl hooks ls shows the hooks, teamctl events what they said")
}

// askCreated runs the hooks on tasks to be added to the board.
func (t *Team) askCreated(ctx context.Context, c Caller, tasks []ledger.NewTask) error {
	asker := t.hooks()
	if has, err := asker.Has(ctx, hooks.TaskCreated); err != nil || !has {
		return err
	}
	who, err := t.Ledger.Member(ctx, c.Name)
	if err != nil {
		return err
	}
	for _, n := range tasks {
		in := hooks.Input{Event: hooks.TaskCreated, TaskSubject: n.Subject, TaskDescription: n.Description, TaskMetadata: n.Metadata}
		in.About(who)
		v, err := asker.Ask(ctx, in)
		switch {
		case err != nil:
			return err
		case v.Stop:
			return blocked("a hook stops %s: %s", c.Name, v.Reason)
		case v.Block:
			return blocked("a hook refuses the task %q: %s", n.Subject, v.Feedback)
		}
	}
	return nil
}

// MayComplete asks the hooks whether a task may be completed; ref is the claim of the completion.
// If that is not the current claim no hook runs: the ledger refuses it. A hook that stops the
// member lets the completion pass.
func (t *Team) MayComplete(ctx context.Context, ref ledger.TaskRef, res ledger.Result) error {
	asker := t.hooks()
	if has, err := asker.Has(ctx, hooks.TaskCompleted); err != nil || !has {
		return err
	}
	task, err := t.Ledger.Task(ctx, ref.ID)
	if err != nil {
		return err
	}
	if task.Owner != ref.Owner || task.Attempt != ref.Attempt || task.Review != 0 || task.Verification != 0 || task.Status == team.TaskCompleted || task.Status == team.TaskFailed {
		return nil
	}
	in := hooks.Input{
		Event: hooks.TaskCompleted, TaskID: task.ID, TaskSubject: task.Subject, TaskDescription: task.Description,
		TaskMetadata: task.Metadata, TaskResult: &res,
	}
	m, err := t.Ledger.MemberBySession(ctx, ref.Owner)
	if err != nil {
		return err
	}
	in.About(m)
	v, err := asker.Ask(ctx, in)
	if err != nil || !v.Block {
		return err
	}
	return blocked("a hook refuses to let task %s be completed: %s", task.ID, v.Feedback)
}

// hookFailures is how many recent events the doctor searches.
const hookFailures = 5000

// hooksCheck reports whether a team's hooks can run, and whether they failed recently.
func (e *Env) hooksCheck(ctx context.Context, key string) (_ Check, some bool) {
	const name = "hooks"
	t, err := e.Open(ctx, key)
	if err != nil {
		return Check{}, false // reported elsewhere
	}
	defer func() { _ = t.Close() }() // it was only read
	out, err := t.Hooks(ctx)
	switch {
	case err != nil:
		return checked(name, "team %s: %v", t.Layout.Key, err).warn(cmp.Or(team.HintOf(err), "docs/hooks.md")), true
	case len(out.Hooks) == 0:
		return Check{}, false
	case !out.Allowed:
		return checked(name, "team %s: hooks that came with the repository wait for a consent", t.Layout.Key).
			warn("teamctl hooks ls --team " + t.Layout.Key + ", then teamctl hooks allow --team " + t.Layout.Key), true
	}
	last, err := t.Ledger.LastEvent(ctx)
	if err == nil {
		var failed []ledger.Event
		failed, err = t.Ledger.Events(ctx, max(0, last-hookFailures), 0, ledger.EventFilter{What: team.EventHookFailed})
		if n := len(failed); err == nil && n > 0 {
			var d hooks.Told
			_ = json.Unmarshal(failed[n-1].Data, &d) // After has the text as well
			line, _, _ := strings.Cut(failed[n-1].After, "\n")
			return checked(name, "team %s: hooks failed %d times lately, %s last: %s", t.Layout.Key, n, d.Hook, line).
				warn("teamctl events --what hook. --team " + t.Layout.Key), true
		}
	}
	if err != nil {
		return checked(name, "team %s: %v", t.Layout.Key, err).warn("teamctl doctor --repair --team " + t.Layout.Key), true
	}
	return checked(name, "team %s: %d hooks", t.Layout.Key, len(out.Hooks)), true
}
