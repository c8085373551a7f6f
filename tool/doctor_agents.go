package tool

import (
	"context"
	"slices"
)

// agentChecks reports what the built-in agents cannot use: the default model, agent specs of the
// home directory, and skills, which are left out without a word elsewhere.
func (e *Env) agentChecks(ctx context.Context) []Check {
	var out []Check
	if e.CheckModel != nil {
		switch note, err := e.CheckModel(ctx, ""); {
		case err != nil:
			out = append(out, checked("model", "%v", err).warn("mend config.yaml in "+e.Home.Dir))
		case note != "":
			out = append(out, checked("model", "of agents of kind llm: %s", note))
		}
	}
	if e.OwnSpecs != nil {
		_, troubles := e.OwnSpecs()
		for _, err := range troubles {
			out = append(out, checked("agents", "%v", err).warn("an agent spec that cannot be read is left out: mend its agent.toml"))
		}
	}
	if e.BrokenSkills != nil {
		for _, err := range e.BrokenSkills(e.repositories(ctx)) {
			out = append(out, checked("skills", "%v", err).warn("a skill that cannot be read is left out: mend its SKILL.md"))
		}
	}
	return out
}

// repositories returns the repositories that teams work on, each once. A team that cannot be read is
// reported by its own check.
func (e *Env) repositories(ctx context.Context) []string {
	keys, err := e.Keys()
	if err != nil {
		return nil
	}
	var all []string
	for _, key := range keys {
		_, repos, err := e.places(ctx, key)
		if err != nil {
			continue
		}
		for _, r := range repos {
			if r != "" && !slices.Contains(all, r) {
				all = append(all, r)
			}
		}
	}
	slices.Sort(all)
	return all
}
