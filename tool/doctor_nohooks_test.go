package tool

import (
	"strings"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// The doctor warns about a member whose program runs no hooks.
func TestDoctorWarnsOfNoHooks(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ann, _ := r.memberOf("claude", "ann", team.RoleExecutor)
	reason := team.WhyNoHooks
	if _, err := r.Ledger.UpdateMember(t.Context(), ledger.MemberPatch{SessionKey: ann.Session, Reason: &reason}); err != nil {
		t.Fatal(err)
	}
	e := r.Env
	for _, c := range e.bundleChecks(t.Context(), "demo") {
		if c.Status == CheckWarn && strings.Contains(c.Detail, "ann: "+reason) && strings.Contains(c.Hint, "teamctl restart ann --team demo") {
			return
		}
	}
	t.Errorf("no warning in %+v", e.bundleChecks(t.Context(), "demo"))
}
