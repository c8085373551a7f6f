package team

import "testing"

func TestLimitKey(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ agent, provider, want string }{
		{AgentClaude, "", "claude"}, {AgentClaude, "anthropic", "claude"}, {AgentLLM, "", "llm"},
		{AgentLLM, "openai", "llm:openai"}, {AgentLead, "openai", "llm:openai"},
	} {
		if got := LimitKey(c.agent, c.provider); got != c.want {
			t.Errorf("%s at %s: %s, want %s", c.agent, c.provider, got, c.want)
		}
	}
}
