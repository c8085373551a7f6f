package policy

import (
	"fmt"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// LayoutWarnings returns warnings for a position in tmux that was requested for a member outside
// tmux: backend auto leads to that if tmux cannot be used.
func LayoutWarnings(m ledger.Member) []string {
	at, look := "", ""
	switch m.Spec.Backend {
	case "pty":
		at, look = "a terminal of its own", "attach"
	case "in-process":
		at, look = "the supervisor's process", "logs"
	}
	if at == "" || m.Spec.Layout == team.PaneAuto {
		return nil
	}
	return []string{fmt.Sprintf("it runs in %s, not in tmux: there is no %s (teamctl %s %s shows it, teamctl doctor says why)", at, m.Spec.Layout, look, m.Name)}
}
