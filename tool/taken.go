package tool

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/team"
)

// taken warns that a name was taken, and names those that there are (R116): whoever has
// spawned one a second time by mistake sees it.
func (t *Team) taken(ctx context.Context, asked string) string {
	text := fmt.Sprintf("the name %q was taken", asked)
	members, err := t.Ledger.Members(ctx, false)
	if err != nil {
		return text // the spawn itself went well
	}
	var names []string
	for _, m := range members {
		if m.Name != team.LeadName {
			names = append(names, m.Name)
		}
	}
	return text + "; the members are " + strings.Join(names, ", ")
}

// warnTaken warns where none of those that were spawned by one name has got it. Of several
// the further ones have a number because that was asked for.
func (t *Team) warnTaken(ctx context.Context, asked string, out []Spawned) {
	up := func(s Spawned) bool { return s.Error == "" }
	i := slices.IndexFunc(out, up)
	if i >= 0 && !slices.ContainsFunc(out, func(s Spawned) bool { return up(s) && !s.Renamed }) {
		out[i].Warnings = append(out[i].Warnings, t.taken(ctx, asked))
	}
}
