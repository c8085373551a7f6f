package services

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/internal/run"
	"github.com/teamctl/teamctl/internal/sink"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/loop"
	"github.com/teamctl/teamctl/team"
)

// SettingNotify is the setting with a team's sinks, a list of sink.Parse texts.
const SettingNotify = "notify"

// channelPerson is the channel for notices to the person at the machine.
const channelPerson = "person"

// maxOutside bounds the queue of notices; more are dropped.
const maxOutside = 100

// told is a notice with the facts that the gate needs.
type told struct {
	notice  sink.Notice
	wants   bool
	channel string
}

// Notifications reports to a team's sinks what waits for a person.
type Notifications struct {
	loop.Quiet
	team    loop.Team
	key     string // of the team
	queue   []told
	sending bool
}

// NewNotifications returns the service.
func NewNotifications(t loop.Team) *Notifications { return &Notifications{team: t} }

// Start reads the name of the team.
func (n *Notifications) Start(ctx context.Context, bus loop.Bus) error {
	n.Bus = bus
	row, err := n.team.Ledger.Team(ctx)
	n.key = row.Key
	return err
}

// Event queues the notice of an event for the sinks. Messages between agents belong to the
// internal channel: they reach this point, and the gate stops them.
func (n *Notifications) Event(e ledger.Event) {
	t, ok := noticeOf(n.key, e)
	if !ok || !sink.External(t.wants, t.channel) || len(n.queue) >= maxOutside {
		return // the sinks ask the gate again; this check saves the work
	}
	n.queue = append(n.queue, t)
	n.send()
}

// send sends the queue, one batch at a time.
func (n *Notifications) send() {
	if n.sending || len(n.queue) == 0 {
		return
	}
	batch := n.queue
	n.queue, n.sending = nil, true
	n.Bus.Go("notify", func(ctx context.Context) func() {
		var specs []string
		if _, err := n.team.Ledger.Setting(ctx, SettingNotify, &specs); err != nil && ctx.Err() == nil {
			n.team.Log.Warn("read the sinks", "err", err)
		}
		for _, spec := range specs {
			to, err := sink.Parse(spec)
			for _, t := range batch {
				if err == nil {
					_, err = to.Deliver(ctx, run.BookOf(n.team.Layout), t.wants, t.channel, t.notice)
				}
				if err == nil || ctx.Err() != nil {
					continue
				}
				n.team.Log.Warn("tell outside", "sink", spec, "what", t.notice.What, "err", err)
				data, _ := json.Marshal(map[string]string{"sink": spec, "what": t.notice.What, "error": err.Error()})
				if _, err := n.team.Ledger.Event(ctx, ledger.Event{What: team.EventNotifyFailed, ID: t.notice.ID, Data: data}); err != nil {
					n.team.Log.Warn("log a failed notice", "err", err)
				}
				break // the rest of the batch would fail in the same way
			}
		}
		return func() {
			n.sending = false
			n.send()
		}
	})
}

// noticeOf returns the notice of an event; false for the many events without one.
func noticeOf(key string, e ledger.Event) (told, bool) {
	n := sink.Notice{Team: key, What: e.What, ID: e.ID, At: e.At}
	switch {
	case e.What == team.EventApprovalAsked:
		var d struct {
			Kind ledger.ApprovalKind `json:"kind"`
			Task string              `json:"task"`
		}
		_ = json.Unmarshal(e.Data, &d) // a notice without details still counts
		n.Title, n.Text = fmt.Sprintf("teamctl %s: %s waits for you", key, e.Who), fmt.Sprintf("%s %s: teamctl approvals show %s --team %s", d.Kind, e.ID, e.ID, key)
		return told{n, true, channelPerson}, true
	case e.What == team.EventMemberState && e.After == string(team.Failed):
		n.What, n.Title, n.Text = "member.failed", fmt.Sprintf("teamctl %s: %s failed", key, e.ID), "teamctl ps --team "+key
		return told{n, true, channelPerson}, true
	case e.What == team.EventTaskFailed:
		n.Title, n.Text = fmt.Sprintf("teamctl %s: task %s failed", key, e.ID), fmt.Sprintf("teamctl task show %s --team %s", e.ID, key)
		return told{n, true, channelPerson}, true
	case e.What == team.EventUsageLimited:
		n.Title, n.Text = fmt.Sprintf("teamctl %s: %s has reached a usage limit", key, e.ID), "teamctl usage --team "+key
		return told{n, true, channelPerson}, true
	case e.What == team.EventUsageBudgetWarned, e.What == team.EventUsageBudgetUsedUp:
		how := "nearly"
		if e.What == team.EventUsageBudgetUsedUp {
			how = "all"
		}
		n.Title, n.Text = fmt.Sprintf("teamctl %s: %s of the budget of %s is used", key, how, cmp.Or(e.ID, "the team")), "teamctl usage --team "+key
		return told{n, true, channelPerson}, true
	case e.What == team.EventMessagePosted:
		n.Title = inbox.Summary("", e.Who+" wrote")
		return told{n, false, sink.Internal}, true
	}
	return told{}, false
}
