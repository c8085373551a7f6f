package supervisor

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/internal/run"
	"github.com/teamctl/teamctl/internal/sink"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/quota"
	"github.com/teamctl/teamctl/team"
)

// SettingNotify is the setting with the sinks of a team, a list of sink.Parse texts.
const SettingNotify = "notify"

// channelPerson is the channel of what is for the person in front of the machine.
const channelPerson = "person"

// maxOutside bounds what waits to be told outside; a flood is not worth telling.
const maxOutside = 100

// told is a notice with what the gate has to know of it.
type told struct {
	notice  sink.Notice
	wants   bool
	channel string
}

// outside queues what the outside may be told of an event. What agents say to
// each other is of the internal channel: it comes here and the gate stops it.
func (s *Supervisor) outside(e ledger.Event) {
	t, ok := noticeOf(s.team.Key, e)
	if !ok || !sink.External(t.wants, t.channel) || len(s.telling) >= maxOutside {
		return // the sinks ask the gate again; here it saves the way
	}
	s.telling = append(s.telling, t)
	s.tellOutside()
}

// tellOutside tells what is queued, one batch at a time.
func (s *Supervisor) tellOutside() {
	if s.busyTelling || len(s.telling) == 0 {
		return
	}
	batch := s.telling
	s.telling, s.busyTelling = nil, true
	s.step(func(ctx context.Context) message {
		var specs []string
		if _, err := s.cfg.Ledger.Setting(ctx, SettingNotify, &specs); err != nil && ctx.Err() == nil {
			s.log.Warn("read the sinks", "err", err)
		}
		for _, spec := range specs {
			to, err := sink.Parse(spec)
			for _, t := range batch {
				if err == nil {
					_, err = to.Deliver(ctx, run.BookOf(s.cfg.Layout), t.wants, t.channel, t.notice)
				}
				if err == nil || ctx.Err() != nil {
					continue
				}
				s.log.Warn("tell outside", "sink", spec, "what", t.notice.What, "err", err)
				data, _ := json.Marshal(map[string]string{"sink": spec, "what": t.notice.What, "error": err.Error()})
				if _, err := s.cfg.Ledger.Event(ctx, ledger.Event{What: "notify.failed", ID: t.notice.ID, Data: data}); err != nil {
					s.log.Warn("log a failed notice", "err", err)
				}
				break // the rest of the batch would fail the same way
			}
		}
		return toldOutside{}
	})
}

// toldOutside is the end of a batch.
type toldOutside struct{}

func (toldOutside) apply(s *Supervisor) {
	s.busyTelling = false
	s.tellOutside()
}

// noticeOf is what an event is to the outside; false for the many that are nothing.
func noticeOf(key string, e ledger.Event) (told, bool) {
	n := sink.Notice{Team: key, What: e.What, ID: e.ID, At: e.At}
	switch {
	case e.What == "approval.asked":
		var d struct {
			Kind ledger.ApprovalKind `json:"kind"`
			Task string              `json:"task"`
		}
		_ = json.Unmarshal(e.Data, &d) // a notice without details is one all the same
		n.Title, n.Text = fmt.Sprintf("teamctl %s: %s waits for you", key, e.Who), fmt.Sprintf("%s %s: teamctl approvals show %s --team %s", d.Kind, e.ID, e.ID, key)
		return told{n, true, channelPerson}, true
	case e.What == "member.state" && e.After == string(team.Failed):
		n.What, n.Title, n.Text = "member.failed", fmt.Sprintf("teamctl %s: %s failed", key, e.ID), "teamctl ps --team "+key
		return told{n, true, channelPerson}, true
	case e.What == "task.failed":
		n.Title, n.Text = fmt.Sprintf("teamctl %s: task %s failed", key, e.ID), fmt.Sprintf("teamctl task show %s --team %s", e.ID, key)
		return told{n, true, channelPerson}, true
	case e.What == quota.EventLimited:
		n.Title, n.Text = fmt.Sprintf("teamctl %s: %s has reached a usage limit", key, e.ID), "teamctl usage --team "+key
		return told{n, true, channelPerson}, true
	case e.What == quota.EventBudgetWarned, e.What == quota.EventBudgetUsedUp:
		how := "nearly"
		if e.What == quota.EventBudgetUsedUp {
			how = "all"
		}
		n.Title, n.Text = fmt.Sprintf("teamctl %s: %s of the budget of %s is used", key, how, cmp.Or(e.ID, "the team")), "teamctl usage --team "+key
		return told{n, true, channelPerson}, true
	case strings.HasPrefix(e.What, "message.posted"):
		n.Title = inbox.Summary("", e.Who+" wrote")
		return told{n, false, sink.Internal}, true
	}
	return told{}, false
}
