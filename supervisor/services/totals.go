package services

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/loop"
	"github.com/teamctl/teamctl/supervisor/quota"
	"github.com/teamctl/teamctl/team"
)

// totalsRest is the delay after the end of a turn or a task before its totals are read: some
// programs report their usage after they report that they are idle.
const totalsRest = 3 * time.Second

// Totals records the running totals of a member's usage at the end of each turn and task, so that
// cost can be shown over time and by task. Members whose program reports no usage get no event.
type Totals struct {
	loop.Quiet
	team    loop.Team
	queue   []ended
	writing bool
	last    map[string]team.Usage // recorded, by session
}

// ended is a turn or, with a task, an attempt that has ended.
type ended struct{ member, task string }

// NewTotals returns the service.
func NewTotals(t loop.Team) *Totals { return &Totals{team: t, last: map[string]team.Usage{}} }

// Event handles the ends of turns and attempts.
func (t *Totals) Event(e ledger.Event) {
	switch e.What {
	case team.EventMemberActivity:
		if strings.HasPrefix(e.Before, string(team.Working)) {
			t.later(ended{member: e.ID})
		}
	case team.EventTaskCompleted, team.EventTaskFailed, team.EventTaskRetrying, team.EventTaskReleased:
		if e.Who != "" {
			t.later(ended{e.Who, e.ID})
		}
	}
}

func (t *Totals) later(e ended) {
	t.queue = append(t.queue, e)
	if !t.writing && !t.Bus.Armed("totals") {
		t.Bus.After("totals", totalsRest, t.write)
	}
}

// write records the queue. Only the last end of a member's turn counts, and tasks precede it.
func (t *Totals) write() {
	batch := t.queue
	t.queue, t.writing = nil, true
	t.Bus.Go("totals", func(ctx context.Context) func() {
		now := map[string]team.Usage{}
		ctx, cancel := loop.Writing(ctx)
		defer cancel()
		q, err := quota.Read(ctx, t.team.Ledger)
		if err != nil {
			t.team.Log.Warn("read what was used", "err", err)
		}
		for _, task := range []bool{true, false} {
			for _, e := range batch {
				if err == nil && task == (e.task != "") {
					t.record(ctx, q, e, now)
				}
			}
		}
		return func() {
			for session, u := range now {
				t.last[session] = u
			}
			if t.writing = false; len(t.queue) > 0 {
				t.Bus.After("totals", totalsRest, t.write)
			}
		}
	})
}

// record writes the event of one end, unless nothing was counted in the turn. It runs beside the
// loop, which does not use last meanwhile.
func (t *Totals) record(ctx context.Context, q quota.Quota, e ended, now map[string]team.Usage) {
	m, err := t.team.Ledger.Member(ctx, e.member)
	if err != nil {
		return // it has left, or is the user
	}
	used, counted, err := q.UsedBy(ctx, t.team.Ledger, m)
	if err != nil {
		t.team.Log.Warn("read what was used", "member", m.Name, "err", err)
	}
	if !counted {
		return
	}
	before, ok := now[m.SessionKey]
	if !ok {
		before, ok = t.last[m.SessionKey]
	}
	if e.task == "" && ok && before == used {
		return
	}
	data, err := json.Marshal(struct {
		Agent   string `json:"agent"`
		Session string `json:"session"` // the member may be renamed
		Task    string `json:"task,omitempty"`
		team.Usage
	}{m.Spec.Agent, m.SessionKey, e.task, used})
	if err == nil {
		_, err = t.team.Ledger.Event(ctx, ledger.Event{Who: m.Name, What: team.EventUsageCounted, ID: m.Name, Data: data})
	}
	if err != nil {
		t.team.Log.Warn("record what was used", "member", m.Name, "err", err)
		return
	}
	now[m.SessionKey] = used
}
