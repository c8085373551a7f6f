package op

import (
	"context"
	"encoding/json"

	"github.com/teamctl/teamctl/team"
)

// agentOps are the tools of document 002 about agent specifications and sessions
// (R215, R216). What they would work on is not a part of this version: each one
// says so, so that a client that knows the documents gets an answer.
func agentOps() []Op {
	return []Op{
		with(Op{Name: "agents_list", ReadOnly: true, Idempotent: true, Unavailable: true}, unavailable[NoIn]("agents_list")),
		with(Op{Name: "agent_create", Unavailable: true}, unavailable[AgentCreateIn]("agent_create")),
		with(Op{Name: "agent_update", Unavailable: true}, unavailable[AgentUpdateIn]("agent_update")),
		with(Op{Name: "models_list", ReadOnly: true, Idempotent: true, Unavailable: true}, unavailable[ModelsListIn]("models_list")),
		with(Op{Name: "session_set_model", Unavailable: true}, unavailable[SetModelIn]("session_set_model")),
		with(Op{Name: "session_set_agent", Unavailable: true}, unavailable[SetAgentIn]("session_set_agent")),
	}
}

// NoIn takes no parameters but the team.
type NoIn struct{ TeamRef }

// AgentCreateIn is a specification to be.
type AgentCreateIn struct {
	TeamRef
	Draft json.RawMessage `json:"draft" jsonschema:"The specification."`
}

// AgentUpdateIn changes a specification.
type AgentUpdateIn struct {
	TeamRef
	AgentID string          `json:"agent_id" jsonschema:"Id of the specification."`
	Patch   json.RawMessage `json:"patch" jsonschema:"What is to be changed."`
}

// ModelsListIn lists models.
type ModelsListIn struct {
	TeamRef
	Provider string `json:"provider,omitempty" jsonschema:"Only those of this provider."`
}

// SetModelIn sets the model of a session.
type SetModelIn struct {
	TeamRef
	ModelRef string `json:"model_ref" jsonschema:"provider/model."`
}

// SetAgentIn sets the agent of a session.
type SetAgentIn struct {
	TeamRef
	Agent string `json:"agent" jsonschema:"Id or name of the specification."`
}

// NoOut is the result of an operation that is not available.
type NoOut struct {
	Success bool `json:"success"`
}

func unavailable[In any](name string) func(context.Context, *Session, In) (NoOut, error) {
	return func(context.Context, *Session, In) (NoOut, error) {
		return NoOut{}, team.Errorf(team.CodeUnavailable, "%s is not available in this version: there are no agent specifications", name).
			WithReason(team.ReasonNotAvailable).WithHint("TeammateSpawn starts agents by kind; teamctl agents lists the kinds")
	}
}
