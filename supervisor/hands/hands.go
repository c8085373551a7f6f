// Package hands decides which members can take tasks, and which ready tasks are left that none of
// them can take: for the screens, for what waits for tasks, and for the supervisor's event.
package hands

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

const (
	named     = 5  // tasks and members that a text names
	readyRead = 50 // ready tasks that are read
)

// Hands has the members that can take tasks, and why the others cannot.
type Hands struct {
	ledger.Takers
	idle []idleHand
}

type idleHand struct{ name, why, remedy string }

// Of sorts the roster by who can take a task now, or will without intervention.
func Of(ctx context.Context, led *ledger.Ledger, roster []ledger.Member) (h Hands, err error) {
	auto, err := led.AutoClaim(ctx)
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
	switch {
	case !m.Role.TakesTasks():
		return "is " + string(m.Role), ""
	case !m.Spec.Mode.TakesTasks():
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

// Shortage is pending tasks that no member can take.
type Shortage struct {
	Tasks []string `json:"tasks"` // ids of those that do not depend on other tasks
	Why   string   `json:"why"`   // "ann is stopped, bob is paused"
	Hint  string   `json:"hint"`  // a command, or what to do

	reason string
}

// What names the tasks: "task 5", "tasks 5, 6".
func (s Shortage) What() string {
	switch n := len(s.Tasks); {
	case n == 0:
		return "pending tasks"
	case n == 1:
		return "task " + s.Tasks[0]
	case n > named:
		return "tasks " + strings.Join(s.Tasks[:named], ", ") + ", ..."
	}
	return "tasks " + strings.Join(s.Tasks, ", ")
}

// Err returns the shortage as an error with a hint.
func (s Shortage) Err() *team.Error {
	return team.Errorf(team.CodeUnavailable, "no member can take %s: %s", s.What(), s.Why).WithReason(s.reason).WithHint(s.Hint)
}

// Short returns why no member takes the pending tasks; left are those that do not depend on other
// tasks.
func (h Hands) Short(left []ledger.Task) Shortage {
	s := Shortage{reason: team.ReasonNoMemberRunning}
	for _, task := range left {
		s.Tasks = append(s.Tasks, task.ID)
	}
	var why []string
	for i, m := range h.idle {
		if s.Hint == "" {
			s.Hint = m.remedy
		}
		if i == named {
			why = append(why, fmt.Sprintf("%d more", len(h.idle)-named))
			break
		}
		why = append(why, m.name+" "+m.why)
	}
	if len(h.Any)+len(h.Run) > 0 { // members are running, and these tasks are not for them
		s.reason = team.ReasonNoTaker
		why, s.Hint = h.misfit(left)
	}
	if len(why) == 0 {
		why = []string{"the team has no members"}
	}
	if s.Hint == "" {
		s.Hint = "teamctl spawn builder"
	}
	s.Why = strings.Join(why, ", ")
	return s
}

// misfit returns why members that take tasks do not take these.
func (h Hands) misfit(left []ledger.Task) (why []string, hint string) {
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

// Stranded returns the ready tasks if there are some and no member of the roster can take any of
// them; nil if one can, now or after its current task, and if the team has no members.
func Stranded(ctx context.Context, led *ledger.Ledger, roster []ledger.Member) (*Shortage, error) {
	h, err := Of(ctx, led, roster)
	if err != nil || len(h.idle)+len(h.Any)+len(h.Run) == 0 {
		return nil, err
	}
	if len(h.Any)+len(h.Run) > 0 {
		some, err := led.Takeable(ctx, h.Takers)
		if err != nil || some {
			return nil, err
		}
	}
	ready, err := led.ReadyTasks(ctx, readyRead)
	if err != nil || len(ready) == 0 {
		return nil, err
	}
	s := h.Short(ready)
	return &s, nil
}
