package team

import "time"

// LimitReached is the error of a turn that a usage limit of the agent's provider has
// ended. It is over at Until; zero: nobody has said.
type LimitReached struct {
	Until    time.Time
	Words    string // as the agent said it
	Provider string // of the model, where the kind of agent has several; "" otherwise
}

func (e *LimitReached) Error() string { return "usage limit: " + e.Words }

// LimitKey is what a usage limit holds for: all members of a kind of agent, or, for a kind
// whose members ask several providers, all sessions that ask this one.
func LimitKey(agent, provider string) string {
	if provider == "" || !KindOf(agent).Sessions {
		return agent
	}
	return AgentLLM + ":" + provider // the lead asks as members of that kind do
}
