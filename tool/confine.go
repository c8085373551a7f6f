package tool

import (
	"path/filepath"

	"github.com/teamctl/teamctl/team"
)

// checkConfine refuses a confinement that would be ineffective.
func (e *Env) checkConfine(in SpawnIn) error {
	if !in.Confine {
		if len(in.Writable) > 0 {
			return team.Errorf(team.CodeInvalid, "%s has writable paths and is not confined", in.Name).WithReason(team.ReasonConfine).WithHint("add confine: true")
		}
		return nil
	}
	if !team.KindOf(in.Agent).Sessions {
		return team.Errorf(team.CodeInvalid, "only members of agent %s can be confined, not %q", team.AgentLLM, in.Agent).
			WithReason(team.ReasonConfine).WithHint("leave out confine, or spawn it with --agent llm")
	}
	for _, path := range in.Writable {
		if !filepath.IsAbs(path) {
			return team.Errorf(team.CodeInvalid, "writable path %q is not absolute", path).WithReason(team.ReasonConfine)
		}
	}
	if e.CheckConfine == nil {
		return nil
	}
	if err := e.CheckConfine(); err != nil {
		return team.Errorf(team.CodeUnavailable, "confine %s: %w", in.Name, err).WithReason(team.ReasonConfine).
			WithHint("spawn it without confinement; docs/limits.md says what it may write then")
	}
	return nil
}
