package tool

import (
	"testing"

	"github.com/teamctl/teamctl/supervisor/quota"
	"github.com/teamctl/teamctl/team"
)

// TestUsageNotTold checks that tokens are known only where some request has told them, and that those which have not
// are counted.
func TestUsageNotTold(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	c := map[string]Caller{"killed": r.as("killed", team.RoleExecutor), "part": r.as("part", team.RoleExecutor)}
	if err := r.Ledger.Set(t.Context(), quota.SettingUsage, map[string]quota.Spent{
		c["killed"].Session: {Name: "killed", Conversations: map[string]team.Usage{"x": {Unknown: 2}}},
		c["part"].Session:   {Name: "part", Conversations: map[string]team.Usage{"x": {InputTokens: 5, OutputTokens: 7, Unknown: 1}}},
	}); err != nil {
		t.Fatal(err)
	}
	u, err := r.Usage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]MemberUsage{"(team)": u.Team}
	for _, m := range u.Members {
		got[m.Name] = m
	}
	for name, want := range map[string]struct {
		counted   bool
		uncounted int64
	}{"killed": {false, 2}, "part": {true, 1}, "(team)": {true, 3}} {
		if m := got[name]; m.Counted != want.counted || m.Uncounted != want.uncounted {
			t.Errorf("%s: counted %v, %d are not; want %+v", name, m.Counted, m.Uncounted, want)
		}
	}
}

// TestBudgetsWithoutUsage checks that setting a budget and ending a limit do not read what the
// members have used: nobody can read it here.
func TestBudgetsWithoutUsage(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	if err := r.Ledger.Set(t.Context(), quota.SettingUsage, "unreadable"); err != nil {
		t.Fatal(err)
	}
	if err := r.SetBudget(t.Context(), Person(), "", team.Budget{Tokens: 5}); err != nil {
		t.Error(err)
	}
	if err := r.ResumeUsage(t.Context(), Person(), "claude"); team.ReasonOf(err) != team.ReasonNotLimited {
		t.Error(err)
	}
}
