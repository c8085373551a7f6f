package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// readers are the read-only tools, for specs.
var readers = []string{"read", "ls", "glob", "grep", "skill", "todo", "memory_search", "Task*", "SendMessage", "Inbox*", "Team*", "Wait*", "Scratchpad*"}

// born are the specs of every new team.
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

// bear gives the team its initial specs if it has none: a team that is new, or older than specs.
// They are the built-in ones and the user's own, which cannot replace built-in ones.
func (t *Team) bear(ctx context.Context) error {
	have, err := t.Ledger.Specs(ctx)
	if err != nil || len(have) > 0 {
		return err
	}
	list := slices.Clone(born)
	if t.Env.OwnSpecs != nil {
		own, _ := t.Env.OwnSpecs() // doctor reports broken ones
		list = append(list, own...)
	}
	for i, s := range list {
		err := t.Ledger.PutSpec(ctx, ledger.PutSpecIn{Spec: s, New: true})
		if err != nil && (!team.IsCode(err, team.CodeConflict) || i < len(born) && s.ID != born[i].ID) {
			return err // another process may do the same concurrently
		}
	}
	return nil
}

// Specs returns the team's agent specs by id.
func (t *Team) Specs(ctx context.Context) ([]ledger.Spec, error) {
	if t.Elsewhere == nil {
		if err := t.bear(ctx); err != nil {
			return nil, err
		}
	}
	return t.Ledger.Specs(ctx)
}

// Spec returns one agent spec of the team, by id or name.
func (t *Team) Spec(ctx context.Context, agent string) (ledger.Spec, error) {
	return t.spec(ctx, agent, true)
}

// CreateSpec creates an agent spec. If it allows what its creator does not have, CreateSpec waits
// for an approval. Errors: CodeInvalid bad_spec, CodeConflict agent_name_taken.
func (t *Team) CreateSpec(ctx context.Context, c Caller, draft json.RawMessage) (ledger.Spec, error) {
	if err := t.may(ctx, c, OpSpecs); err != nil {
		return ledger.Spec{}, err
	}
	spec, err := decodeSpec(draft)
	if err != nil {
		return ledger.Spec{}, err
	}
	if spec.ID == "" {
		spec.ID = specID(spec.Name)
	}
	return t.putSpec(ctx, c, "agent_create", spec, true)
}

// UpdateSpec changes an agent spec by a patch: its fields replace those of the spec, null removes
// one, and fields not in the patch stay. If the change allows more than the caller has, UpdateSpec
// waits for an approval.
func (t *Team) UpdateSpec(ctx context.Context, c Caller, agent string, patch json.RawMessage) (ledger.Spec, error) {
	if err := t.may(ctx, c, OpSpecs); err != nil {
		return ledger.Spec{}, err
	}
	now, err := t.spec(ctx, agent, true)
	if err != nil {
		return now, err
	}
	raw, err := json.Marshal(now.AgentSpec)
	if err != nil {
		return now, fmt.Errorf("encode agent %s: %w", now.ID, err)
	}
	merged, err := mergePatch(raw, patch)
	if err != nil {
		return now, err
	}
	spec, err := decodeSpec(merged)
	if err != nil {
		return now, err
	}
	if spec.ID != now.ID {
		return now, badSpec("the id of agent %s stays: what it is called is its name", now.ID)
	}
	return t.putSpec(ctx, c, "agent_update", spec, false)
}

// PutSpec creates a spec or replaces the one with its id, from a person's file.
func (t *Team) PutSpec(ctx context.Context, c Caller, spec team.AgentSpec) (ledger.Spec, error) {
	if err := t.may(ctx, c, OpSpecs); err != nil {
		return ledger.Spec{}, err
	}
	if _, err := t.Specs(ctx); err != nil {
		return ledger.Spec{}, err
	}
	return t.putSpec(ctx, c, "agent_create", spec, false)
}

func (t *Team) putSpec(ctx context.Context, c Caller, op string, spec team.AgentSpec, fresh bool) (ledger.Spec, error) {
	if err := spec.Validate(); err != nil {
		return ledger.Spec{}, err
	}
	all, err := t.Specs(ctx)
	if err != nil {
		return ledger.Spec{}, err
	}
	if fresh && slices.ContainsFunc(all, func(s ledger.Spec) bool { return s.ID == spec.ID || strings.EqualFold(s.Name, spec.Name) }) {
		return ledger.Spec{}, team.Errorf(team.CodeConflict, "another agent has the id %q or the name %q", spec.ID, spec.Name).
			WithReason(team.ReasonSpecTaken).WithHint("teamctl agents")
	}
	if m := spec.Defaults.Model; m.Model != "" && t.Env.CheckModel != nil {
		if _, err := t.Env.CheckModel(ctx, m.Provider+"/"+m.Model); err != nil {
			return ledger.Spec{}, err
		}
	}
	if err := t.checkUsers(ctx, spec); err != nil {
		return ledger.Spec{}, err
	}
	more, err := t.beyond(ctx, c, spec, team.SessionTeammate)
	if err == nil {
		err = t.entitle(ctx, c, op, more, spec)
	}
	if err == nil {
		err = t.as(c).PutSpec(ctx, ledger.PutSpecIn{Spec: spec, New: fresh})
	}
	if err != nil {
		return ledger.Spec{}, err
	}
	return t.Ledger.Spec(ctx, spec.ID)
}

// DeleteSpec removes a spec that no open session uses.
func (t *Team) DeleteSpec(ctx context.Context, c Caller, agent string) (ledger.Spec, error) {
	if err := t.may(ctx, c, OpRule); err != nil {
		return ledger.Spec{}, err
	}
	spec, err := t.spec(ctx, agent, true)
	if err != nil {
		return spec, err
	}
	return spec, t.as(c).DeleteSpec(ctx, spec.ID)
}

func badSpec(format string, args ...any) error {
	return team.Errorf(team.CodeInvalid, format, args...).WithReason(team.ReasonBadSpec)
}

// decodeSpec parses a spec; an unknown field is an error.
func decodeSpec(raw json.RawMessage) (s team.AgentSpec, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return s, badSpec("the agent spec: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return s, nil
}

// mergePatch applies a JSON merge patch (RFC 7396).
func mergePatch(to, patch json.RawMessage) (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(patch, &fields) != nil || fields == nil {
		return patch, nil
	}
	out := map[string]json.RawMessage{}
	_ = json.Unmarshal(to, &out) // a value that is not an object is replaced
	if out == nil {
		out = map[string]json.RawMessage{}
	}
	for name, v := range fields {
		if string(v) == "null" {
			delete(out, name)
			continue
		}
		merged, err := mergePatch(out[name], v)
		if err != nil {
			return nil, err
		}
		out[name] = merged
	}
	return json.Marshal(out)
}

// specID derives an id from a name.
func specID(name string) string {
	id := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, name)
	id = strings.Trim(id, "-")
	return id[:min(len(id), 64)]
}

// checkSpawn refuses a model that cannot be used or that its budget cannot count, and a spec that the team does not have, before
// anything is started.
func (t *Team) checkSpawn(ctx context.Context, in SpawnIn) error {
	if !team.KindOf(in.Agent).Sessions {
		return nil
	}
	var spec team.AgentSpec
	if in.AgentType != "" {
		s, err := t.spec(ctx, in.AgentType, true)
		if err != nil {
			return err
		}
		spec = s.AgentSpec
	}
	model := in.Model
	if model == "" {
		var err error
		if model, err = t.modelRef(ctx, "", "", spec); err != nil {
			return err
		}
	}
	if model != "" && t.Env.CheckModel != nil {
		if _, err := t.Env.CheckModel(ctx, model); err != nil {
			return err
		}
	}
	return t.checkPrices(ctx, in.Name, model)
}

// noteModel adds remarks on the model to the answer of a spawn.
func (t *Team) noteModel(ctx context.Context, out []Spawned) {
	if t.Env.CheckModel == nil {
		return
	}
	if ref, err := t.Model(ctx); err != nil || ref != "" {
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
