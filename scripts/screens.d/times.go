package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/internal/view/viewtest"
	"github.com/teamctl/teamctl/team"
)

// now is when the screens are looked at. A real day takes too long to be played, so what happens
// in it gets the times of this script.
var now = time.Date(2026, 3, 2, 12, 23, 0, 0, time.UTC)

// taskTimes has since when tasks are in work, and how long those took that have ended.
var taskTimes = map[string]struct{ began, took time.Duration }{
	"1": {20 * time.Minute, 4 * time.Minute},
	"2": {15 * time.Minute, 5 * time.Minute},
	"3": {9*time.Minute + 5*time.Second, 5 * time.Second},
	"4": {6 * time.Minute, 0},
	"5": {3 * time.Minute, 0},
	"6": {12 * time.Second, 0},
}

// memberTimes has since when members do what they do. The one that has gone on after its answer
// has done so just now.
var memberTimes = map[string]time.Duration{
	"lint": time.Hour, "cart": 3 * time.Minute, "builder": 5 * time.Minute, "probe": 4 * time.Minute, "api": 2 * time.Minute, "docs": 12 * time.Second,
}

// requestTimes has since when requests wait.
var requestTimes = map[int64]time.Duration{1: 5 * time.Minute, 2: 2 * time.Minute}

// tokens is what the team has used. The scripted model counts how often it was asked until the
// screens were looked at, which differs.
const tokens = 1_240_000

// scripted gives everything the times and the tokens of the script and the shop its usual path, and
// leaves out by which sign a member's activity is known: several show it, and the first one counts.
func (s *stage) scripted(day viewtest.Day) (viewtest.Day, error) {
	day.Now = now
	for _, t := range []*view.Snapshot{&day.Before, &day.After} {
		if err := timed(t); err != nil {
			return day, err
		}
		if !t.Spent.Known || t.Spent.Tokens == 0 {
			return day, errors.New("no member has told what it has used")
		}
		t.Spent.Tokens = tokens
	}
	for i, r := range day.Requests {
		day.Requests[i].Asked = now.Add(-requestTimes[r.ID])
	}
	b, err := json.Marshal(day)
	if err != nil {
		return day, err
	}
	var out viewtest.Day
	return out, json.Unmarshal([]byte(strings.ReplaceAll(string(b), s.Repo, "/src/shop")), &out)
}

func timed(t *view.Snapshot) error {
	for i := range t.Tasks {
		x := &t.Tasks[i]
		if x.Began.IsZero() {
			continue
		}
		at, ok := taskTimes[x.ID]
		if !ok || x.Ended.IsZero() != (at.took == 0) {
			return fmt.Errorf("the script has no times for task %s, which is %s", x.ID, x.Status)
		}
		if x.Began = now.Add(-at.began); at.took > 0 {
			x.Ended = x.Began.Add(at.took)
		}
	}
	for i := range t.Members {
		m := &t.Members[i]
		m.Since = now.Add(-2 * time.Hour)
		if m.Lead {
			continue
		}
		at, ok := memberTimes[m.Name]
		if !ok {
			return fmt.Errorf("the script has no time for member %s", m.Name)
		}
		if m.Name == "builder" && m.Activity == team.Working {
			at = 0
		}
		m.ActiveSince = now.Add(-at)
		if m.State == team.Running {
			m.Note = ""
		} else {
			m.Since = m.ActiveSince
		}
	}
	for i := range t.Needs {
		n := &t.Needs[i]
		switch {
		case n.Approval != 0:
			n.Since = now.Add(-requestTimes[n.Approval])
		case n.Task != "":
			n.Since = now.Add(taskTimes[n.Task].took - taskTimes[n.Task].began)
		default:
			n.Since = now.Add(-memberTimes[n.Member])
		}
	}
	at := now.Add(-2 * time.Hour)
	for i := range t.Events {
		at = eventTime(t.Events[i], at)
		t.Events[i].At = at
	}
	return nil
}

// eventTime is when an event happened that followed one at a time.
func eventTime(e view.Event, last time.Time) time.Time {
	switch e.What {
	case team.EventTaskClaimed:
		return now.Add(-taskTimes[e.ID].began)
	case team.EventTaskCompleted, team.EventTaskFailed:
		return now.Add(taskTimes[e.ID].took - taskTimes[e.ID].began)
	case team.EventApprovalAsked:
		for id, at := range requestTimes {
			if e.ID == fmt.Sprint(id) {
				return now.Add(-at)
			}
		}
	case team.EventMemberState:
		if e.ID == "probe" {
			return now.Add(-memberTimes[e.ID])
		}
	case team.EventReviewSent:
		return now.Add(-memberTimes["probe"] + 30*time.Second)
	case team.EventMemberAdded:
		if e.ID == "docs" || e.ID == "api" {
			return now.Add(-memberTimes[e.ID])
		}
	case team.EventApprovalApproved:
		return now
	}
	return last
}
