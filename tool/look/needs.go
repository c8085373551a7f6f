package look

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/hands"
	"github.com/teamctl/teamctl/supervisor/state"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

const (
	failedShown = 20  // number of failed tasks, newest first
	budgetShare = 0.8 // share of a budget from which on it is shown
)

// Needs returns what waits for a person in a team.
func Needs(ctx context.Context, t *tool.Team) ([]view.Need, error) {
	s, err := brief(ctx, t, time.Time{})
	return s.Needs, err
}

// Glance returns a one-line summary of a team whose supervisor has not answered since silent,
// unless that is zero.
func Glance(ctx context.Context, t *tool.Team, silent time.Time) (view.Glance, error) {
	s, err := brief(ctx, t, silent)
	return view.GlanceOf(s), err
}

// brief returns a Snapshot without events and with few tasks, but with counts of the whole board.
func brief(ctx context.Context, t *tool.Team, silent time.Time) (view.Snapshot, error) {
	members, err := t.Ledger.Members(ctx, false)
	if err != nil {
		return view.Snapshot{}, err
	}
	b, err := t.Ledger.Board(ctx, failedShown)
	if err != nil {
		return view.Snapshot{}, err
	}
	s := filled(t.Layout.Key, b.Tasks, b.Stuck, members)
	s.Whole = numbers(b)
	now := time.Now()
	for i, m := range members {
		s.Members[i].StalledSince = state.Stalled(t.Layout, m, now)
	}
	if s.Down, s.Silent, err = t.Unmaintained(ctx, members, silent); err != nil {
		return view.Snapshot{}, err
	}
	u, err := t.Usage(ctx)
	if err != nil {
		return s, err
	}
	s.Spent = spent(u.Team)
	s.Needs, err = needs(ctx, t, members, s, u, now)
	return s, err
}

// needs is Needs for data that has already been read.
func needs(ctx context.Context, t *tool.Team, members []ledger.Member, s view.Snapshot, u tool.Usage, now time.Time) ([]view.Need, error) {
	list := []view.Need{}
	if !s.Down.IsZero() {
		why := "no supervisor is up"
		if s.Silent {
			why = "the supervisor does not answer"
		}
		list = append(list, view.Need{Kind: view.NeedSupervisor, Since: s.Down, Command: "teamctl ps",
			Text: why + ": what is said of the members is of " + s.Down.Local().Format("15:04:05")})
	}
	for _, step := range []func() ([]view.Need, error){
		func() ([]view.Need, error) { return requests(ctx, t) },
		func() ([]view.Need, error) { return dialogs(ctx, t) },
		func() ([]view.Need, error) { return troubled(members, s), nil },
		func() ([]view.Need, error) { return failedTasks(s), nil },
		func() ([]view.Need, error) { return merges(ctx, t) },
		func() ([]view.Need, error) { return usage(u, now), nil },
		func() ([]view.Need, error) { return stranded(ctx, t, members) },
	} {
		more, err := step()
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	more, err := lostMail(ctx, t, list)
	if err != nil {
		return nil, err
	}
	list = append(list, more...)
	if err := putOff(ctx, t, list, now); err != nil {
		return nil, err
	}
	view.SortNeeds(list)
	return list, nil
}

// lostMail returns the messages of which nothing shows that they have reached their member, those that were
// dropped, and those that are held, unless a need in the list says what holds them: a limit or a budget.
func lostMail(ctx context.Context, t *tool.Team, list []view.Need) (out []view.Need, err error) {
	explained := slices.ContainsFunc(list, func(n view.Need) bool { return n.Kind == view.NeedLimit || n.Kind == view.NeedBudget })
	doubtful, err := t.Ledger.Doubtful(ctx)
	if err != nil {
		return nil, err
	}
	dropped, err := t.Ledger.Dropped(ctx)
	for _, x := range append(doubtful, dropped...) {
		d := x.Delivery
		if d.State == team.Held && explained {
			continue
		}
		first, _, _ := strings.Cut(strings.TrimSpace(tool.Speak(x.Message).Text), "\n")
		text := fmt.Sprintf("%s: %s", d.State, first)
		if d.Reason != "" {
			text = fmt.Sprintf("%s (%s): %s", d.State, d.Reason, first)
		}
		out = append(out, view.Need{Kind: view.NeedMail, Member: d.Recipient, Message: d.MessageID, Text: text, Since: stamp(d.At),
			Command: "teamctl message show " + shortID(d.MessageID)})
	}
	return out, err
}

// WaitsOn returns what each waiting member waits for, "permission 3" or "trust", by name.
func WaitsOn(ctx context.Context, t *tool.Team, members []ledger.Member) (map[string]string, error) {
	if !slices.ContainsFunc(members, func(m ledger.Member) bool { return m.Observed == team.Running && m.Activity == team.Waiting }) {
		return nil, nil
	}
	var s view.Snapshot
	for _, m := range members {
		s.Members = append(s.Members, view.Member{Name: m.Name, State: m.Observed, Activity: m.Activity})
	}
	for _, step := range []func(context.Context, *tool.Team) ([]view.Need, error){requests, dialogs} {
		list, err := step(ctx, t)
		if err != nil {
			return nil, err
		}
		s.Needs = append(s.Needs, list...)
	}
	waitsFor(&s, members)
	out := map[string]string{}
	for _, m := range s.Members {
		if m.WaitsFor != "" {
			out[m.Name] = m.WaitsFor
		}
	}
	return out, nil
}

func requests(ctx context.Context, t *tool.Team) (list []view.Need, err error) {
	open, err := t.Approvals(ctx, false)
	for _, x := range open {
		list = append(list, view.Need{Kind: view.NeedKind(x.Kind), Member: x.Name, Approval: x.ID, Text: inShort(x), Since: stamp(x.CreatedAt),
			Command: "teamctl show approval " + ledgerID(x.ID), Question: asksQuestion(x), Cause: requestOf(x).Seen()})
	}
	return list, err
}

// inShort summarises a request in one line: the command of a shell, the first line of a plan.
func inShort(a ledger.Approval) string {
	r := requestOf(a)
	switch {
	case r.Command != "" && r.Tool != "":
		return r.Tool + ": " + strings.TrimSpace(r.Command)
	case r.Plan != "":
		for line := range strings.Lines(r.Plan) {
			if line = strings.TrimLeft(strings.TrimSpace(line), "#*-` "); line != "" && !strings.EqualFold(line, "plan") {
				return line
			}
		}
	}
	return a.Subject
}

func dialogs(ctx context.Context, t *tool.Team) (list []view.Need, err error) {
	screens, err := t.AtScreens(ctx)
	for _, x := range screens {
		text := x.Reason
		if text == "" {
			text = "waits at its own screen"
		}
		list = append(list, view.Need{Kind: view.NeedDialog, Member: x.Name, Text: text, Since: stamp(x.Since), Command: x.Attach})
	}
	return list, err
}

// troubled returns the members that have failed or stalled.
func troubled(members []ledger.Member, s view.Snapshot) (list []view.Need) {
	for i, m := range members {
		switch since := s.Members[i].StalledSince; {
		case m.Observed == team.Failed:
			text := Why(m)
			if text == "" {
				text = "it did not stay up"
			}
			list = append(list, view.Need{Kind: view.NeedMember, Member: m.Name, Text: text, Since: stamp(Since(m)), Command: "teamctl show member " + m.Name})
		case !since.IsZero():
			list = append(list, view.Need{Kind: view.NeedStalled, Member: m.Name, Text: "works and has shown nothing since " + since.Local().Format("15:04"),
				Since: since, Command: "teamctl show member " + m.Name})
		}
	}
	return list
}

// failedTasks returns the failed tasks that have failed last, as every reader has them, however much it reads of
// the board. Those beyond failedShown are one need.
func failedTasks(s view.Snapshot) (list []view.Need) {
	failed := slices.DeleteFunc(slices.Clone(s.Tasks), func(x view.Task) bool { return x.Status != team.TaskFailed })
	slices.SortStableFunc(failed, func(a, b view.Task) int { return b.Ended.Compare(a.Ended) })
	for _, x := range failed[:min(len(failed), failedShown)] {
		text := x.Subject
		if x.Note != "" {
			text += ": " + x.Note
		}
		list = append(list, view.Need{Kind: view.NeedTask, Member: x.Owner, Task: x.ID, Text: text, Since: x.Ended, Command: "teamctl show task " + x.ID})
	}
	if more := s.Count().Failed - len(list); more > 0 {
		text := fmt.Sprintf("%d more tasks have failed", more)
		if more == 1 {
			text = "1 more task has failed"
		}
		list = append(list, view.Need{Kind: view.NeedTask, Text: text, Command: "teamctl task ls --status failed"})
	}
	return list
}

// merges returns the branches whose newest merge has conflicts or a failed gate without a task for
// it.
func merges(ctx context.Context, t *tool.Team) (list []view.Need, err error) {
	left, err := t.Ledger.MergesLeft(ctx)
	for _, m := range slices.Backward(left) { // the newest first
		var text string
		switch m.State {
		case ledger.MergeConflict:
			text = fmt.Sprintf("%s conflicts with %s in %s", m.Branch, m.Target, strings.Join(m.Files, ", "))
		case ledger.MergeRed:
			text = fmt.Sprintf("a gate failed before %s went into %s: %s", m.Branch, m.Target, m.Why)
		default:
			text = fmt.Sprintf("%s was not merged into %s: %s", m.Branch, m.Target, m.Why)
		}
		list = append(list, view.Need{Kind: view.NeedMerge, Member: m.Member, Text: text, Since: stamp(m.EndedAt), Command: "teamctl merge queue --all"})
	}
	return list, err
}

// usage returns the providers at a limit, and budgets that are nearly used up.
func usage(u tool.Usage, now time.Time) (list []view.Need) {
	for _, l := range u.Limited {
		if l.Ended != 0 {
			continue
		}
		text := l.Agent + " has reached its usage limit"
		if l.Until > now.UnixMilli() {
			text += ", until " + stamp(l.Until).Local().Format("15:04")
		}
		list = append(list, view.Need{Kind: view.NeedLimit, Text: text, Since: stamp(l.Since), Command: "teamctl usage"})
	}
	for _, m := range append(u.Members, u.Team) {
		if m.Share < budgetShare {
			continue
		}
		who := "the team"
		if m.Name != "" {
			who = m.Name
		}
		list = append(list, view.Need{Kind: view.NeedBudget, Member: m.Name, Text: fmt.Sprintf("%s has used %.0f %% of its budget", who, 100*m.Share), Command: "teamctl usage",
			Cause: map[bool]string{false: "nearly", true: "all"}[m.Share >= 1]})
	}
	return list
}

// stranded returns ready work that no member can take.
func stranded(ctx context.Context, t *tool.Team, members []ledger.Member) ([]view.Need, error) {
	short, err := hands.Stranded(ctx, t.Ledger, members)
	if short == nil {
		return nil, err
	}
	command := short.Hint
	if !strings.HasPrefix(command, "teamctl ") {
		command = "teamctl ps"
	}
	return []view.Need{{Kind: view.NeedHands, Text: short.Err().Error(), Command: command}}, nil
}

func ledgerID(id int64) string { return strconv.FormatInt(id, 10) }
