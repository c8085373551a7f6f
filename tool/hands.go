package tool

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// hands has the members that can take tasks, and why the others cannot.
type hands struct {
	ledger.Takers
	idle []idleHand
}

type idleHand struct{ name, why, remedy string }

// hands sorts the roster by who can take a task now, or will without intervention.
func (t *Team) hands(ctx context.Context, roster []ledger.Member) (h hands, err error) {
	auto, err := t.Ledger.AutoClaim(ctx)
	if err != nil {
		return h, err
	}
	for _, m := range roster {
		if m.Name == team.LeadName {
			continue
		}
		if why, remedy := cannotTake(m); why != "" {
			h.idle = append(h.idle, idleHand{m.Name, why, remedy})
			continue
		}
		if !team.KindOf(m.Spec.Agent).Worker {
			h.Any = append(h.Any, m.SessionKey)
			continue
		}
		h.Run = append(h.Run, m.SessionKey)
		h.RunFree = h.RunFree || auto.On(m.Name)
	}
	return h, nil
}

// cannotTake returns why a member takes no tasks, and the command that changes that.
func cannotTake(m ledger.Member) (why, remedy string) {
	mode := Caller{Role: m.Role, Mode: m.Spec.Mode}
	switch {
	case granted(Caller{Role: m.Role}, OpTaskWork) == no:
		return "is " + string(m.Role), ""
	case granted(mode, OpTaskWork) == no:
		return fmt.Sprintf("is in mode %s", m.Spec.Mode), "teamctl mode " + m.Name + " default"
	case team.KindOf(m.Spec.Agent).External: // teamctl neither starts nor observes it
		return "", ""
	case m.Desired != team.WantRunning:
		return "is stopped", "teamctl start " + m.Name
	case m.Observed.Terminal():
		return "has " + map[team.Observed]string{team.Completed: "ended", team.Failed: "failed", team.Killed: "been killed"}[m.Observed],
			"teamctl start " + m.Name
	case m.Observed == team.Running && m.Reason == team.WhyPaused:
		return "is paused", "teamctl resume " + m.Name
	}
	return "", ""
}

// none returns the error for pending tasks that no member can take; left are those that do not
// depend on other tasks.
func (h hands) none(left []ledger.Task) error {
	const most = 5
	what := "pending tasks"
	if len(left) > 0 {
		ids := make([]string, 0, most+1)
		for i, task := range left {
			if i == most {
				ids = append(ids, "...")
				break
			}
			ids = append(ids, task.ID)
		}
		what = "task " + ids[0]
		if len(ids) > 1 {
			what = "tasks " + strings.Join(ids, ", ")
		}
	}
	var why []string
	hint := ""
	for i, m := range h.idle {
		if hint == "" {
			hint = m.remedy
		}
		if i == most {
			why = append(why, fmt.Sprintf("%d more", len(h.idle)-most))
			break
		}
		why = append(why, m.name+" "+m.why)
	}
	reason := "no_member_running"
	if len(h.Any)+len(h.Run) > 0 { // members are running, and these tasks are not for them
		reason = "no_taker"
		why, hint = h.misfit(left)
	}
	if len(why) == 0 {
		why = []string{"the team has no members"}
	}
	if hint == "" {
		hint = "teamctl spawn builder"
	}
	return team.Errorf(team.CodeUnavailable, "no member can take %s: %s", what, strings.Join(why, ", ")).WithReason(reason).WithHint(hint)
}

// misfit returns why members that take tasks do not take these.
func (h hands) misfit(left []ledger.Task) (why []string, hint string) {
	say := func(text, remedy string) {
		if !slices.Contains(why, text) {
			why = append(why, text)
		}
		if hint == "" {
			hint = remedy
		}
	}
	for _, task := range left {
		i := slices.IndexFunc(h.idle, func(m idleHand) bool { return m.name == task.OwnerName })
		switch {
		case task.Owner != "" && i >= 0:
			say(fmt.Sprintf("%s is assigned to %s, which %s", task.ID, task.OwnerName, h.idle[i].why), h.idle[i].remedy)
		case !task.HasCommand():
			say("workers take only tasks with a command, and "+task.ID+" has none", "teamctl task claim "+task.ID+", or spawn an agent: teamctl agents")
		default:
			say(task.ID+" is assigned to nobody, and claiming is off", "teamctl task assign "+task.ID+" NAME")
		}
		if len(why) == 3 {
			break
		}
	}
	return why, hint
}

// Stranded returns an error with a hint if no member of the roster can take any of the ready
// tasks. It is nil if one can, now or after its current task.
func (t *Team) Stranded(ctx context.Context, roster []ledger.Member, ready []ledger.Task) error {
	if len(ready) == 0 {
		return nil
	}
	h, err := t.hands(ctx, roster)
	if err != nil {
		return err
	}
	if len(h.Any)+len(h.Run) > 0 {
		some, err := t.Ledger.Takeable(ctx, h.Takers)
		if err != nil || some {
			return err
		}
	}
	return h.none(ready)
}
