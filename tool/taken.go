package tool

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/team"
)

// taken returns the warning that a name was in use, with the existing members: it helps after
// spawning a member twice by mistake.
func (t *Team) taken(ctx context.Context, asked string) string {
	text := fmt.Sprintf("the name %q was taken", asked)
	members, err := t.Ledger.Members(ctx, false)
	if err != nil {
		return text // the spawn itself succeeded
	}
	var names []string
	for _, m := range members {
		if m.Name != team.LeadName {
			names = append(names, m.Name)
		}
	}
	return text + "; the members are " + strings.Join(names, ", ")
}

// warnTaken warns if none of the members spawned with one name got it. Of several, all but the
// first have a number, as requested.
func (t *Team) warnTaken(ctx context.Context, asked string, out []Spawned) {
	up := func(s Spawned) bool { return s.Error == "" }
	i := slices.IndexFunc(out, up)
	if i >= 0 && !slices.ContainsFunc(out, func(s Spawned) bool { return up(s) && !s.Renamed }) {
		out[i].Warnings = append(out[i].Warnings, t.taken(ctx, asked))
	}
}
