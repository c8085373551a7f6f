package op

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// agentOps are the operations on specs and sessions of built-in agents.
func agentOps() []Op {
	specs, sessions := []tool.Operation{tool.OpSpecs}, []tool.Operation{tool.OpSessions}
	return []Op{
		with(Op{Name: "agents_list", Verb: "agents ls", ReadOnly: true, Idempotent: true}, agentsList),
		with(Op{Name: "agent_create", Verb: "agents create", Gates: specs, Long: true}, agentCreate),
		with(Op{Name: "agent_update", Verb: "agents update", Gates: specs, Idempotent: true, Long: true}, agentUpdate),
		with(Op{Name: "models_list", Verb: "models", ReadOnly: true, Idempotent: true}, modelsList),
		with(Op{Name: "session_set_model", Verb: "session model", Gates: sessions, Idempotent: true, Long: true}, setModel),
		with(Op{Name: "session_set_agent", Verb: "session agent", Gates: sessions, Idempotent: true, Long: true}, setAgent),
	}
}

// AgentsListIn names the team.
type AgentsListIn struct{ TeamRef }

// AgentsListOut has the team's agent specs, by id.
type AgentsListOut struct {
	Agents []ledger.Spec `json:"agents"`
}

func agentsList(ctx context.Context, s *Session, in AgentsListIn) (AgentsListOut, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, _ tool.Caller) (AgentsListOut, error) {
		list, err := t.Specs(ctx)
		return AgentsListOut{Agents: list}, err
	})
}

// AgentCreateIn is a new spec.
type AgentCreateIn struct {
	TeamRef
	Draft json.RawMessage `json:"draft" jsonschema:"The spec: name, and what it should have of agent_id (made of the name where it is left out), description, defaults {model {provider, model, temperature, effort, max_output_tokens}, system_prompt}, policy {tools {allow, deny}, skills {allow, deny}}, context_policy {memory, memory_budget, memory_filter}, workspace {overlay}."`
}

func agentCreate(ctx context.Context, s *Session, in AgentCreateIn) (ledger.Spec, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (ledger.Spec, error) {
		return t.CreateSpec(ctx, c, in.Draft)
	})
}

// AgentUpdateIn changes a spec.
type AgentUpdateIn struct {
	TeamRef
	AgentID string          `json:"agent_id" jsonschema:"Id or name of the spec."`
	Patch   json.RawMessage `json:"patch" jsonschema:"The fields that change; null removes one, lists are replaced."`
}

func agentUpdate(ctx context.Context, s *Session, in AgentUpdateIn) (ledger.Spec, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (ledger.Spec, error) {
		return t.UpdateSpec(ctx, c, in.AgentID, in.Patch)
	})
}

// ModelsListIn selects models.
type ModelsListIn struct {
	TeamRef
	Provider string `json:"provider,omitempty" jsonschema:"Only those of this provider."`
}

// ModelsListOut has models by provider.
type ModelsListOut struct {
	Providers []tool.ProviderModels `json:"providers"`
}

func modelsList(ctx context.Context, s *Session, in ModelsListIn) (ModelsListOut, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, _ tool.Caller) (ModelsListOut, error) {
		list, err := t.Models(ctx, tool.ModelsIn{Provider: in.Provider})
		return ModelsListOut{Providers: list}, err
	})
}

// SetModelIn sets the model of a session.
type SetModelIn struct {
	TeamRef
	ModelRef   string `json:"model_ref" jsonschema:"provider/model."`
	SessionKey string `json:"session_key,omitempty" jsonschema:"Key of the session, or name of the member whose own it is; the caller's where it is left out."`
}

// SetModelOut is the session's new setting.
type SetModelOut struct {
	SessionKey string `json:"session_key"`
	ModelRef   string `json:"model_ref"`
}

func setModel(ctx context.Context, s *Session, in SetModelIn) (SetModelOut, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (SetModelOut, error) {
		provider, model, ok := strings.Cut(in.ModelRef, "/")
		if !ok || provider == "" || model == "" {
			return SetModelOut{}, team.Errorf(team.CodeInvalid, "model_ref %q is not of the form provider/model", in.ModelRef).
				WithReason(team.ReasonInput).WithHint("models_list, or teamctl models")
		}
		key, err := sessionOf(c, in.SessionKey)
		if err != nil {
			return SetModelOut{}, err
		}
		set, err := t.SetModel(ctx, c, key, provider, model)
		return SetModelOut{set.Key, set.ProviderOverride + "/" + set.ModelOverride}, err
	})
}

// SetAgentIn sets the agent of a session.
type SetAgentIn struct {
	TeamRef
	Agent      string `json:"agent" jsonschema:"Id or name of the spec, or a part of one that no other has."`
	SessionKey string `json:"session_key,omitempty" jsonschema:"Key of the session, or name of the member whose own it is; the caller's where it is left out."`
}

// SetAgentOut is the spec of a session from its next turn on.
type SetAgentOut struct {
	SessionKey string `json:"session_key"`
	AgentID    string `json:"agent_id"`
	Name       string `json:"name"`
}

func setAgent(ctx context.Context, s *Session, in SetAgentIn) (SetAgentOut, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (SetAgentOut, error) {
		key, err := sessionOf(c, in.SessionKey)
		if err != nil {
			return SetAgentOut{}, err
		}
		set, spec, err := t.SetAgent(ctx, c, key, in.Agent, false)
		return SetAgentOut{set.Key, spec.ID, spec.Name}, err
	})
}

// sessionOf returns the named session, or the caller's own.
func sessionOf(c tool.Caller, key string) (string, error) {
	if key != "" {
		return key, nil
	}
	if key = c.OwnSession(); key == "" {
		return "", team.Errorf(team.CodeInvalid, "session_key is required: you have no session of your own").WithReason(team.ReasonInput).
			WithHint("teamctl session ls")
	}
	return key, nil
}
