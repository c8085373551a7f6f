package ledger

import (
	"database/sql"
	"strings"
	"testing"
)

// The cost of a write does not depend on the size of the ledger: no statement
// of the hot path scans a table.
func TestHotStatementsUseIndexes(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a")
	for name, q := range map[string]string{
		"the log of applied ids": sqlAppliedPrune, "its look-up": sqlAppliedGet,
		"the next claim": sqlClaimNext, "a claim by id": sqlClaimID, "an assigned one": sqlClaimAssigned,
		"a worker's": sqlClaimRunnable, "what a worker looks for": sqlRunnable,
		"tasks that are due": sqlTasksDue, "the next that is": sqlNextDue,
		"the current run": sqlRunGet, "the cap": sqlMessageCount, "a delivery": sqlDeliverySet,
		"a member's outbox": sqlPostedTo, "who a message concerns": sqlMembersNamed, "what a start drops": sqlShutdownOpen, "what a claim asks first": sqlClaimFacts, "the switch": sqlSettingGet,
		"whether to offer": sqlOfferable, "the idle notice before": sqlIdleBefore, "what is offered": sqlReadyFree, "its own": sqlReadyOwn, "what can be taken": sqlTakeable, "an agent's open turns": sqlOpenJobsOfMember, "a session's": sqlOpenJobsOfSession, "all open turns": sqlOpenJobs, "earlier offers": sqlOffers,
	} {
		// The number of arguments does not affect the plan.
		plan, err := read(ctxFor(t), l.DB(), "explain", func(r *sql.Rows) (string, error) {
			var id, parent, unused int
			var detail string
			err := r.Scan(&id, &parent, &unused, &detail)
			return detail, err
		}, "EXPLAIN QUERY PLAN "+strings.NewReplacer("?1", "1", "?2", "2", "?3", "3", "?4", "4", "?5", "5", "?", "1").Replace(q))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, step := range plan {
			// A scan of an index from its start ends at LIMIT, or reads a
			// partial index that contains only matching rows.
			if strings.HasPrefix(step, "SCAN") && !strings.Contains(step, "INDEX") && !strings.Contains(step, "(subquery") && !strings.Contains(step, "CONSTANT") {
				if name == "the log of applied ids" && step == "SCAN applied_ops" {
					continue // in key order, with LIMIT
				}
				t.Errorf("%s: %s\n%s", name, step, strings.Join(plan, "\n"))
			}
		}
		if name == "the log of applied ids" && !strings.Contains(strings.Join(plan, "\n"), "SEARCH applied_ops USING PRIMARY KEY (id=?)") {
			t.Errorf("%s: %s", name, strings.Join(plan, "\n"))
		}
	}
}
