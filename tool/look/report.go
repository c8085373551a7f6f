package look

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

const (
	deedsKept = 2000 // number of events, newest last
	logLines  = 40   // number of last lines of a failed task's log
	endsKept  = 5    // number of newest reasons why a member's processes exited
)

// Diffs selects how much of the members' changes a report contains.
type Diffs string

// Values of Diffs.
const (
	NoDiffs   Diffs = "none"
	StatDiffs Diffs = "stat"
	FullDiffs Diffs = "full"
)

// ReportWindow returns the window of a report: an open window ends at the last event of the
// ledger, so that the same ledger gives the same report.
func ReportWindow(ctx context.Context, t *tool.Team, w Window) (Window, error) {
	if w.Closed {
		return w, nil
	}
	last, err := t.Ledger.LastEvent(ctx)
	if err != nil {
		return w, err
	}
	list, err := t.Ledger.Events(ctx, last-1, 0, ledger.EventFilter{})
	if err == nil && len(list) > 0 {
		w.To = stamp(list[len(list)-1].At)
	}
	if w.To.Before(w.From) {
		w.To = w.From
	}
	return w, err
}

// Report returns what a team did in a window. It reads the ledger, and git for diffs.
func Report(ctx context.Context, t *tool.Team, w Window, diffs Diffs) (r view.Report, err error) {
	row, err := t.Ledger.Team(ctx)
	if err != nil {
		return r, err
	}
	if w, err = ReportWindow(ctx, t, w); err != nil {
		return r, err
	}
	r = view.Report{
		Team: row.Name, Repo: row.Repo, Run: w.Run, RunName: w.Name, Open: !w.Closed, Usage: []view.UsagePoint{}, Needs: []view.Need{}, Tasks: []view.ReportTask{},
		Approvals: []view.ReportApproval{}, Merges: []view.Merge{}, Diffs: []view.ReportDiff{}, Deeds: []view.Event{}, Members: []view.ReportMember{}, Cut: []string{},
	}
	if r.Timeline, err = timeline(ctx, t, w, time.Time{}); err != nil {
		return r, err
	}
	events, err := t.Ledger.Events(ctx, 0, 0, ledger.EventFilter{})
	if err != nil {
		return r, err
	}
	members, err := t.Ledger.Members(ctx, true)
	if err != nil {
		return r, err
	}
	if err = reportTasks(ctx, t, w, events, &r); err != nil {
		return r, err
	}
	if err = reportAnswers(ctx, t, w, &r); err != nil {
		return r, err
	}
	reportMembers(members, events, w, &r)
	reportEvents(events, w, &r)
	view.SortNeeds(r.Needs)
	if diffs == NoDiffs || row.Repo == "" {
		return r, nil
	}
	list, err := t.WorktreeDiffs(ctx, nil, diffs == StatDiffs)
	for _, d := range list {
		if d.Diff != "" || len(d.Untracked) > 0 {
			r.Diffs = append(r.Diffs, view.ReportDiff{Member: d.Member, Base: d.Base, Text: d.Diff, New: d.Untracked})
		}
	}
	return r, err
}

func (w Window) has(at time.Time) bool { return !at.Before(w.From) && !at.After(w.To) }

// reportTasks adds the tasks that existed in the window.
func reportTasks(ctx context.Context, t *tool.Team, w Window, events []ledger.Event, r *view.Report) error {
	list, err := t.Ledger.Tasks(ctx, ledger.TaskFilter{})
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(x ledger.Task) bool { return !w.HasTask(x) })
	var points []view.UsagePoint
	for _, e := range events {
		if e.What == team.EventUsageCounted {
			points = append(points, usagePoint(e))
		}
	}
	_, spent := view.UsageIn(points, w.From, w.To)
	tasks, deps := Tasks(list), map[string][]string{}
	for i, x := range list {
		v := view.ReportTask{Task: tasks[i], DependsOn: x.DependsOn, Spent: spent[x.ID]}
		if x.Result != nil {
			v.Summary = x.Result.Summary
			if x.Status == team.TaskFailed {
				v.Log = lastLines(x.Result.Error)
				r.Needs = append(r.Needs, view.Need{Kind: view.NeedTask, Member: x.OwnerName, Task: x.ID, Text: tasks[i].Subject + ": " + tasks[i].Note, Since: tasks[i].Ended, Command: "teamctl show task " + x.ID})
			}
		}
		deps[x.ID] = x.DependsOn
		r.Tasks = append(r.Tasks, v)
	}
	r.Counts = view.Snapshot{Tasks: tasks}.Count()
	r.Durations = view.DurationsOf(tasks, w.From, w.To)
	if g, err := view.NewGraph(tasks, deps, w.To); err != nil {
		r.NoGraph = err.Error()
	} else {
		r.Graph = &g
	}
	for _, p := range points {
		if w.has(p.At) {
			r.Usage = append(r.Usage, p)
		}
	}
	return nil
}

func usagePoint(e ledger.Event) view.UsagePoint {
	var d struct {
		Agent   string `json:"agent"`
		Session string `json:"session"`
		Task    string `json:"task"`
		team.Usage
	}
	_ = json.Unmarshal(e.Data, &d) // written by the supervisor
	return view.UsagePoint{At: stamp(e.At), Member: e.ID, Session: d.Session, Task: d.Task, Spent: view.Spent{
		Name: e.ID, Agent: d.Agent, Known: true, Tokens: d.Tokens(), Cost: d.CostUSD, CostKnown: d.CostKnown || d.CostUSD > 0,
	}}
}

func lastLines(s string) string {
	lines := strings.Split(strings.TrimRight(plain.Text(s), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-logLines):], "\n")
}

// reportAnswers adds the approval requests and the merges.
func reportAnswers(ctx context.Context, t *tool.Team, w Window, r *view.Report) error {
	asked, err := t.Ledger.Approvals(ctx, ledger.ApprovalFilter{})
	if err != nil {
		return err
	}
	slices.SortFunc(asked, func(a, b ledger.Approval) int { return cmp.Compare(a.ID, b.ID) })
	for _, x := range asked {
		if !w.has(stamp(x.CreatedAt)) {
			continue
		}
		end := w.To
		if x.AnsweredAt != 0 {
			end = stamp(x.AnsweredAt)
		}
		r.Approvals = append(r.Approvals, view.ReportApproval{
			ID: x.ID, Kind: string(x.Kind), State: string(x.State), Member: x.Name, Subject: x.Subject, By: view.By(x.AnsweredBy, x.AnsweredVia), Feedback: x.Feedback,
			Asked: stamp(x.CreatedAt), Took: end.Sub(stamp(x.CreatedAt)),
		})
		if x.State == ledger.ApprovalPending {
			r.Needs = append(r.Needs, view.Need{Kind: view.NeedKind(x.Kind), Member: x.Name, Approval: x.ID, Text: x.Subject, Since: stamp(x.CreatedAt), Command: "teamctl show approval " + ledgerID(x.ID)})
		}
	}
	lane, err := t.MergeQueue(ctx, true, 0)
	for _, m := range lane {
		if !w.has(stamp(m.AskedAt)) {
			continue
		}
		v := view.Merge{ID: m.ID, Member: m.Member, Branch: m.Branch, Target: m.Target, State: string(m.State), Files: m.Files, Why: m.Why, Task: m.Task, Asked: stamp(m.AskedAt)}
		if m.EndedAt != 0 {
			v.Ended = stamp(m.EndedAt)
		}
		r.Merges = append(r.Merges, v)
	}
	return err
}

// reportMembers adds the members that were in the team during the window.
func reportMembers(members []ledger.Member, events []ledger.Event, w Window, r *view.Report) {
	var points []view.UsagePoint // including those before the window, for comparison with the first one in it
	for _, e := range events {
		if e.What == team.EventUsageCounted && !stamp(e.At).After(w.To) {
			points = append(points, usagePoint(e))
		}
	}
	spent, _ := view.UsageIn(points, w.From, w.To)
	for _, m := range members {
		if m.Name == team.LeadName || stamp(m.JoinedAt).After(w.To) || m.RemovedAt != 0 && stamp(m.RemovedAt).Before(w.From) {
			continue
		}
		v := view.ReportMember{Name: m.Name, Agent: m.Spec.Agent, Spent: spent[m.SessionKey].And(spent[m.Name])}
		if v.Spent.Known {
			v.Spent.Name = m.Name
		}
		for _, e := range events {
			if e.What != team.EventMemberState || e.ID != m.Name || !w.has(stamp(e.At)) {
				continue
			}
			f := fact(e)
			switch team.Observed(e.After) {
			case team.Starting:
				if e.Before != string(team.Pending) {
					v.Restarts++
				}
			case team.Exited, team.Killed, team.Failed, team.Backoff:
				v.Ends = append(v.Ends, cmp.Or(f.Why, e.After))
			case team.Pending, team.Running, team.Completed:
			}
		}
		v.Ends = v.Ends[max(0, len(v.Ends)-endsKept):]
		if m.Observed == team.Failed && m.RemovedAt == 0 {
			r.Needs = append(r.Needs, view.Need{Kind: view.NeedMember, Member: m.Name, Text: cmp.Or(Why(m), "it did not stay up"), Since: stamp(Since(m)), Command: "teamctl show member " + m.Name})
		}
		r.Members = append(r.Members, v)
	}
}

// reportEvents adds the events and their counts.
func reportEvents(events []ledger.Event, w Window, r *view.Report) {
	var facts []view.Fact
	var senders, ways []string
	var inside []ledger.Event
	for _, e := range events {
		facts = append(facts, fact(e))
		if !w.has(stamp(e.At)) {
			continue
		}
		inside = append(inside, e)
		switch {
		case e.What == team.EventMessagePosted:
			senders = append(senders, e.Who)
		case strings.HasPrefix(e.What, team.MessageEvents):
			ways = append(ways, strings.TrimPrefix(e.What, team.MessageEvents))
		}
	}
	r.Queue = view.DepthsOf(facts, w.From, w.To)
	r.Messages, r.Delivered = view.Tallies(senders), view.Tallies(ways)
	s := view.Snapshot{}
	for _, x := range r.Tasks {
		s.Tasks = append(s.Tasks, x.Task)
	}
	for _, a := range r.Approvals {
		s.Needs = append(s.Needs, view.Need{Approval: a.ID, Text: a.Subject})
	}
	r.Deeds = told(subjectsOf(s), inside, false)
	if n := len(r.Deeds) - deedsKept; n > 0 {
		r.Deeds = r.Deeds[n:]
		r.Cut = append(r.Cut, "what happened: the oldest "+ledgerID(int64(n))+" lines")
	}
}

// ReportMask returns the mask of a report: the environments of the user and of the members, and
// the directories of the team.
func ReportMask(ctx context.Context, t *tool.Team, env []string, home string) (view.Mask, error) {
	row, err := t.Ledger.Team(ctx)
	if err != nil {
		return view.Mask{}, err
	}
	members, err := t.Ledger.Members(ctx, true)
	if err != nil {
		return view.Mask{}, err
	}
	for _, m := range members {
		for name, value := range m.Spec.Env {
			env = append(env, name+"="+value)
		}
	}
	return view.NewMask(env, map[string]string{home: "~", t.Layout.Dir: "<team>", row.Repo: "<repository>"}), nil
}

// Recorded splits a recorded environment, whose variables end with a zero byte.
func Recorded(data []byte) (env []string) {
	for v := range bytes.SplitSeq(data, []byte{0}) {
		if len(v) > 0 {
			env = append(env, string(v))
		}
	}
	return env
}
