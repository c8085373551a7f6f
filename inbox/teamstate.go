package inbox

import (
	"fmt"
	"strings"

	"github.com/teamctl/teamctl/team"
)

// TeamFacts is the content of the team state block of a lead, from the ledger.
type TeamFacts struct {
	Name         string
	ID           string // empty for a session without a team
	Role         team.Role
	Members      []TeamMember // the active ones
	PendingTasks int
}

// TeamMember is one line of the team state.
type TeamMember struct{ Name, AgentID string }

// TeamState returns the block that precedes a lead's turn, with surrounding
// blank lines. Any other session gets "".
func TeamState(f TeamFacts) string {
	if f.ID == "" || f.Role != team.RoleLeader {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n\n=== TEAM STATE ===\n")
	fmt.Fprintf(&b, "Team: %s (%s)\n", clean(f.Name, true), clean(f.ID, true))
	b.WriteString("Role: Team Lead\n")
	fmt.Fprintf(&b, "Active Members (%d):\n", len(f.Members))
	for _, m := range f.Members {
		fmt.Fprintf(&b, "  - %s (%s)\n", clean(m.Name, true), clean(m.AgentID, true))
	}
	fmt.Fprintf(&b, "Pending Tasks: %d\n", f.PendingTasks)
	b.WriteString("====================\n\n")
	return b.String()
}
