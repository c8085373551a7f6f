package services

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/internal/sink"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/hands"
	"github.com/teamctl/teamctl/team"
)

// outside are the events, or their prefixes, that have notices.
var outside = []string{
	team.EventApprovalAsked, team.EventMemberActivity, team.EventMemberState, team.EventMemberStalled, team.EventTaskFailed, team.EventTaskStranded, team.MergeEvents,
	team.EventMessageUnknown, team.EventUsageLimited, team.EventUsageBudgetWarned, team.EventUsageBudgetUsedUp,
}

// noticeOf returns the notice of an event; false for the many events without one.
func noticeOf(key string, e ledger.Event) (told, bool) {
	n := sink.Notice{Team: key, What: e.What, ID: e.ID, At: e.At}
	say := func(kind sink.Kind, selected, text, title string, args ...any) (told, bool) {
		n.Kind, n.Select, n.Text, n.Title = kind, selected, text+" --team "+key, fmt.Sprintf("teamctl %s: %s", key, fmt.Sprintf(title, args...))
		return told{n, true, channelPerson, e.Seq}, true
	}
	switch {
	case e.What == team.EventApprovalAsked:
		var d struct {
			Kind ledger.ApprovalKind `json:"kind"`
		}
		_ = json.Unmarshal(e.Data, &d) // a notice without details still counts
		return say(sink.Approval, "approval:"+e.ID, fmt.Sprintf("%s %s: teamctl approvals show %s", d.Kind, e.ID, e.ID), "%s waits for you", e.Who)
	case e.What == team.EventMemberActivity && strings.HasPrefix(e.After, string(team.Waiting)):
		n.What = "member.waiting"
		what := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(e.After, string(team.Waiting)), "("), ")")
		return say(sink.Dialog, e.ID, strings.TrimSpace(what+" at its screen")+": teamctl attach "+e.ID, "%s waits for you", e.ID)
	case e.What == team.EventMemberState && e.After == string(team.Failed):
		n.What = "member.failed"
		return say(sink.Member, e.ID, "teamctl ps", "%s failed", e.ID)
	case e.What == team.EventMemberStalled:
		return say(sink.Member, e.ID, "teamctl attach "+e.ID, "%s works and has shown nothing for ten minutes", e.ID)
	case e.What == team.EventTaskFailed:
		return say(sink.Task, "task:"+e.ID, "teamctl task show "+e.ID, "task %s failed", e.ID)
	case e.What == team.EventTaskStranded:
		var short hands.Shortage
		_ = json.Unmarshal(e.Data, &short) // a notice without details still counts
		if len(short.Tasks) == 0 {
			short.Tasks = []string{e.ID}
		}
		return say(sink.Task, "task:"+e.ID, cmp.Or(short.Why, "see its members")+": "+cmp.Or(short.Hint, "teamctl ps"), "no member can take %s", short.What())
	case e.What == team.EventMergeConflict:
		return say(sink.Merge, "", "teamctl merge queue --all", "merge %s has conflicts", e.ID)
	case e.What == team.EventMergeRed:
		return say(sink.Merge, "", "teamctl merge queue --all", "a gate of merge %s failed", e.ID)
	case e.What == team.EventMergeFailed:
		return say(sink.Merge, "", "teamctl merge queue --all", "merge %s failed", e.ID)
	case e.What == team.EventMessageUnknown:
		return say(sink.Mail, e.Who, "teamctl message show "+e.ID, "nothing tells what became of a message to %s", e.Who)
	case e.What == team.EventUsageLimited:
		return say(sink.Limit, "", "teamctl usage", "%s has reached a usage limit", e.ID)
	case e.What == team.EventUsageBudgetWarned:
		return say(sink.Budget, "", "teamctl usage", "nearly all of the budget of %s is used", cmp.Or(e.ID, "the team"))
	case e.What == team.EventUsageBudgetUsedUp:
		return say(sink.Budget, "", "teamctl usage", "all of the budget of %s is used", cmp.Or(e.ID, "the team"))
	case e.What == team.EventMessagePosted:
		n.Title = inbox.Summary("", e.Who+" wrote")
		return told{n, false, sink.Internal, e.Seq}, true
	}
	return told{}, false
}

// watchEnd checks whether all work is done, once a task or a turn has ended and nothing has
// happened since for the time calm. A turn that ends while others work is not reported.
func (n *Notifications) watchEnd(e ledger.Event) {
	switch {
	case e.What == team.EventTaskCompleted:
		n.did = true
	case e.What == team.EventMemberActivity && strings.HasPrefix(e.Before, string(team.Working)) && e.After == string(team.Idle):
		n.did = true
	case strings.HasPrefix(e.What, team.TaskEvents), strings.HasPrefix(e.What, team.MemberEvents):
	default:
		return
	}
	if n.did {
		n.Bus.After("done", calm, func() {
			n.Bus.Go("notify", func(ctx context.Context) func() {
				t, ok := n.done(ctx, e)
				if !ok {
					return nil
				}
				return func() {
					if n.did && !n.Bus.Armed("done") {
						n.did = false
						n.add(t)
					}
				}
			})
		})
	}
}

// done returns the notice that all work is done, if it is: no member works or waits, and every
// task has ended or waits for a failed one.
func (n *Notifications) done(ctx context.Context, last ledger.Event) (told, bool) {
	members, err := n.team.Ledger.Members(ctx, false)
	if err != nil {
		return told{}, false
	}
	unknown := false
	for _, m := range members {
		switch m.Observed {
		case team.Starting, team.Backoff:
			return told{}, false
		case team.Running:
			unknown = unknown || m.Activity == team.ActivityUnknown
			if m.Activity != team.Idle && m.Activity != team.ActivityUnknown && m.Name != team.LeadName {
				return told{}, false
			}
		case team.Pending, team.Completed, team.Exited, team.Killed, team.Failed:
		}
	}
	b, err := n.team.Ledger.Board(ctx, 1)
	c := b.Counts
	if err != nil || c.Claimed+c.InProgress > 0 || c.Pending > c.Stuck || unknown && c.Total() == 0 {
		return told{}, false
	}
	title := "all is done"
	if c.Failed > 0 {
		title = fmt.Sprintf("nothing is left to do, %d failed", c.Failed)
	}
	text := "teamctl status --team " + n.key
	if c.Total() > 0 {
		text = fmt.Sprintf("%d of %d tasks are completed: %s", c.Completed, c.Total(), text)
	}
	return told{sink.Notice{
		Team: n.key, What: "team.done", Kind: sink.Done, Title: "teamctl " + n.key + ": " + title, Text: text, At: time.Now().UnixMilli(),
	}, true, channelPerson, last.Seq}, true
}
