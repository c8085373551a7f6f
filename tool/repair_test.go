package tool

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// A repair reports every step, including those that found nothing, and the mail that it delivers
// for a killed poster.
func TestRepairReportsEachStep(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	r.as("a", team.RoleExecutor)
	if _, _, err := r.Ledger.Post(t.Context(), ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "a", Text: "x"}); err != nil {
		t.Fatal(err)
	}
	repaired := func() (steps []string, outbox RepairStep) {
		t.Helper()
		list, err := r.Env.Repair(t.Context(), Person(), "demo")
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			steps = append(steps, s.Step)
			if s.Step == "outbox" {
				outbox = s
			}
			if s.Status == RepairFail || s.Detail == "" {
				t.Errorf("%+v", s)
			}
		}
		return steps, outbox
	}
	tick := time.NewTicker(50 * time.Millisecond) // what was posted a moment ago is its poster's to mail
	defer tick.Stop()
	for deadline := time.Now().Add(5 * time.Minute); ; <-tick.C {
		_, outbox := repaired()
		if outbox.Status == RepairFixed && outbox.Detail == "1 messages mailed" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%+v", outbox)
		}
	}
	steps, outbox := repaired()
	if outbox.Status != RepairOK {
		t.Errorf("%+v", outbox)
	}
	want := []string{"ledger", "config", "mailbox team-lead", "mailbox a", "outbox", "killed commands", "temporary files", "registry", "unfinished teams", "temporary files"}
	if diff := cmp.Diff(want, steps); diff != "" {
		t.Error(diff)
	}
}
