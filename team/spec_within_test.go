package team

import (
	"testing"

	"pgregory.net/rapid"
)

func TestBeyond(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		f, other Filter
		want     bool
	}{
		{Filter{}, Filter{}, false},
		{Filter{Allow: []string{}}, Filter{Allow: []string{}}, false},
		{Filter{}, Filter{Deny: []string{"shell"}}, true},
		{Filter{Deny: []string{"shell*"}}, Filter{Deny: []string{"shell"}}, false},
		{Filter{Deny: []string{"shell"}}, Filter{Deny: []string{"shell*"}}, true},
		{Filter{Allow: []string{"read", "Task*"}}, Filter{Deny: []string{"write", "mcp__*"}}, false},
		{Filter{Allow: []string{"*d"}}, Filter{Allow: []string{"r*d", "*d"}}, false},
		{Filter{Allow: []string{"mcp__*"}}, Filter{Allow: []string{"mcp__*"}, Deny: []string{"mcp__*__delete*"}}, true},
		{Filter{}.In(SessionSubagent), Filter{}.In(SessionTeammate), false},
		{Filter{Allow: []string{"shell"}}.In(SessionSubagent), Filter{}.In(SessionSubagent), true},
	} {
		name, got := c.f.Beyond(c.other)
		if got != c.want || got && (!c.f.Allows(name) || c.other.Allows(name)) {
			t.Errorf("%+v beyond %+v: %q, %v", c.f, c.other, name, got)
		}
	}
}

// TestBeyondMisses: no name that one filter allows and the other does not is missed, and
// what is named is one.
func TestBeyondMisses(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.Custom(func(t *rapid.T) []string {
			if rapid.Bool().Draw(t, "none") {
				return nil
			}
			return rapid.SliceOfN(rapid.StringMatching(`[ab*]{1,4}`), 0, 3).Draw(t, "list")
		})
		f := Filter{Allow: list.Draw(t, "allow"), Deny: list.Draw(t, "deny")}
		g := Filter{Allow: list.Draw(t, "other allow"), Deny: list.Draw(t, "other deny")}
		name, beyond := f.Beyond(g)
		if beyond && (!f.Allows(name) || g.Allows(name)) {
			t.Fatalf("%q is not beyond", name)
		}
		if n := rapid.StringMatching(`[abc]{1,6}`).Draw(t, "name"); !beyond && f.Allows(n) && !g.Allows(n) {
			t.Fatalf("%q is beyond", n)
		}
	})
}
