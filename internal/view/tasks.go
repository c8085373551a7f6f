package view

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/teamctl/teamctl/team"
)

// Parts of the tasks that nobody works on, in the order of a board.
const (
	PartFailed    = "failed"    // newest first
	PartPending   = "pending"   // not stuck, oldest first
	PartStuck     = "stuck"     // oldest first
	PartCompleted = "completed" // newest first
)

// TaskParts returns all parts, in order.
func TaskParts() []string { return []string{PartFailed, PartPending, PartStuck, PartCompleted} }

// TaskQuery selects tasks that nobody works on.
type TaskQuery struct {
	Filter string // as for Matches; "" for all
	Part   string // one of TaskParts, "" for all
	After  string // Next of the page before, or PlaceOf a task; "" for the beginning
	Most   int    // tasks
}

// TaskPage has tasks of a query. It may have fewer than there are, even none: Next says whether all
// tasks were looked through.
type TaskPage struct {
	Tasks  []Task
	Looked int    // tasks that were looked at
	Next   string // the next page, "" after the last task
	Event  int64  // number of the newest event before the read, for TaskNews
}

// TaskNews is what has become of tasks that were read.
type TaskNews struct {
	Tasks []Task
	Gone  []string // ids of deleted ones
	Event int64
	Anew  bool // too much has happened to tell: the tasks are to be read again
}

// PlaceOf returns the place behind a task in the order of a board, "" for one that somebody works
// on.
func PlaceOf(t Task) string {
	part := t.Part()
	if part == "" {
		return ""
	}
	ended := int64(0)
	if !t.Ended.IsZero() {
		ended = t.Ended.UnixMilli()
	}
	return fmt.Sprintf("%s.%d.%s", part, ended, t.ID)
}

// End returns the place behind the last task of a snapshot, for the tasks that it leaves out; "" if it
// leaves out none.
func (s Snapshot) End() string {
	if s.Count().Total <= len(s.Tasks) {
		return ""
	}
	var last Task
	at := -1
	for _, t := range s.Tasks {
		i := slices.Index(TaskParts(), t.Part())
		later := i == at && t.follows(last)
		if i > at || i >= 0 && later {
			last, at = t, i
		}
	}
	if at < 0 {
		return PlaceIn(PartFailed, 0, 0)
	}
	return PlaceOf(last)
}

// follows reports whether a task comes after another one of its part.
func (t Task) follows(other Task) bool {
	a, _ := strconv.ParseInt(t.ID, 10, 64)
	b, _ := strconv.ParseInt(other.ID, 10, 64)
	if !t.Finished() {
		return a > b
	}
	if c := t.Ended.Compare(other.Ended); c != 0 {
		return c < 0
	}
	return a < b
}

// PlaceIn is PlaceOf by numbers.
func PlaceIn(part string, ended, id int64) string { return fmt.Sprintf("%s.%d.%d", part, ended, id) }

// Place parses a place; part is "" for none.
func Place(s string) (part string, ended, id int64) {
	f := strings.Split(s, ".")
	if len(f) != 3 {
		return "", 0, 0
	}
	ended, err := strconv.ParseInt(f[1], 10, 64)
	if err != nil {
		return "", 0, 0
	}
	if id, err = strconv.ParseInt(f[2], 10, 64); err != nil {
		return "", 0, 0
	}
	return f[0], ended, id
}

// Part returns the part of the board that a task is in, "" for one that somebody works on.
func (t Task) Part() string {
	switch {
	case t.Status == team.TaskFailed:
		return PartFailed
	case t.Status == team.TaskCompleted:
		return PartCompleted
	case t.Stuck:
		return PartStuck
	case t.Status == team.TaskPending:
		return PartPending
	}
	return ""
}

// Words returns what a filter finds a task by. agent is the kind of its owner's agent, "" for unknown.
func (t Task) Words(agent string) string {
	state := string(t.Status)
	switch {
	case t.Stuck:
		state = "stuck"
	case t.Status == team.TaskPending && len(t.Waits) == 0:
		state = "ready"
	}
	text := strings.Join([]string{t.ID, t.Subject, t.Owner, "state:" + state, state}, " ")
	if t.Owner == "" {
		return text
	}
	if agent == "" {
		agent = t.Owner
	}
	return text + " agent:" + agent
}

// Matches reports whether a text contains all words of a filter.
func Matches(text, filter string) bool {
	text = strings.ToLower(text)
	for w := range strings.FieldsSeq(strings.ToLower(filter)) {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}
