package tool

import (
	"context"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// readers are the tools of specs that change nothing.
var readers = []string{"read", "ls", "glob", "grep", "skill", "todo", "memory_search", "Task*", "SendMessage", "Inbox*", "Team*", "Wait*", "Scratchpad*"}

// born are the specs that every team has from its birth.
var born = []team.AgentSpec{
	{ID: "default", Name: "default", Description: "an agent with all tools that its role and mode have"},
	{
		ID: "reviewer", Name: "reviewer", Description: "reads and reports; edits nothing and runs nothing",
		Defaults: team.SpecDefaults{SystemPrompt: "You review the work of others. Read it, say what is wrong and where, and approve what is right."},
		Policy:   team.SpecPolicy{Tools: team.Filter{Deny: []string{"write", "edit", "shell*", "fetch", "mcp__*"}}},
	},
	{
		ID: "scout", Name: "scout", Description: "finds things out: reads files and pages, changes nothing",
		Defaults: team.SpecDefaults{SystemPrompt: "You find things out for others. Answer with what you found and where."},
		Policy:   team.SpecPolicy{Tools: team.Filter{Allow: append([]string{"fetch"}, readers...)}},
	},
}

// bear gives the team the specs of its birth, if it has none: one that was made before
// there were any, or was just made.
func bear(ctx context.Context, l *ledger.Ledger) error {
	have, err := l.Specs(ctx)
	if err != nil || len(have) > 0 {
		return err
	}
	for _, s := range born {
		if err := l.PutSpec(ctx, ledger.PutSpecIn{Spec: s}); err != nil {
			return err
		}
	}
	return nil
}

// Specs are the team's agent specs by id.
func (t *Team) Specs(ctx context.Context) ([]ledger.Spec, error) {
	if t.Elsewhere == nil {
		if err := bear(ctx, t.Ledger); err != nil {
			return nil, err
		}
	}
	return t.Ledger.Specs(ctx)
}

// checkSpawn refuses a model that cannot be asked, and a spec that the team does not
// have, before anything is started.
func (t *Team) checkSpawn(ctx context.Context, in SpawnIn) error {
	if !team.KindOf(in.Agent).Sessions {
		return nil
	}
	if err := bear(ctx, t.Ledger); err != nil {
		return err
	}
	model := in.Model
	if in.AgentType != "" {
		spec, err := t.spec(ctx, in.AgentType, true)
		if err != nil {
			return err
		}
		if m := spec.Defaults.Model; model == "" && m.Model != "" {
			model = m.Provider + "/" + m.Model
		}
	}
	if model == "" || t.Env.CheckModel == nil {
		return nil
	}
	_, err := t.Env.CheckModel(ctx, model)
	return err
}

// noteModel says in the answer of a spawn what its person should know of the model.
func (t *Team) noteModel(ctx context.Context, out []Spawned) {
	if t.Env.CheckModel == nil {
		return
	}
	for i, s := range out {
		m, err := t.Ledger.Member(ctx, s.Name)
		if err != nil || s.Error != "" || !team.KindOf(m.Spec.Agent).Sessions || m.Spec.Model != "" {
			continue
		}
		if note, err := t.Env.CheckModel(ctx, ""); err == nil && note != "" {
			out[i].Warnings = append(out[i].Warnings, note)
		}
	}
}
