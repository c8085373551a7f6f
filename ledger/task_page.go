package ledger

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/teamctl/teamctl/team"
)

// BoardPart is a part of the tasks that nobody works on, in its order on a board.
type BoardPart string

// Parts of a board, in order.
const (
	PartFailed    BoardPart = "failed"    // newest first
	PartPending   BoardPart = "pending"   // not stuck, oldest first
	PartStuck     BoardPart = "stuck"     // behind a failed one, oldest first
	PartCompleted BoardPart = "completed" // newest first
)

// BoardParts returns all parts, in order.
func BoardParts() []BoardPart {
	return []BoardPart{PartFailed, PartPending, PartStuck, PartCompleted}
}

// BoardPlace is a place in a part: behind a task with this end, 0 for none, and this number. The
// zero value is the beginning.
type BoardPlace struct{ CompletedAt, Seq int64 }

// TaskLine is what a page of tasks is chosen by.
type TaskLine struct {
	ID, Subject, Owner string // name of the owner
	Status             team.TaskStatus
	Unmet              int // dependencies that are not completed
	Stuck              bool
	Place              BoardPlace
}

// PageIn selects a page of tasks.
type PageIn struct {
	Part  BoardPart
	After BoardPlace
	Most  int // tasks of the page
	Scan  int // tasks that are looked at for it
	Keep  func(TaskLine) bool
}

// TaskPage is a page of the tasks in one part of a board.
type TaskPage struct {
	Tasks  []Task
	Looked int        // tasks that were looked at
	Next   BoardPlace // where the next page begins
	Last   bool       // no task of the part follows
}

const (
	sqlLine = `SELECT t.id, t.subject, coalesce(t.ownerName, ''), t.status, t.unmet, coalesce(t.completedAt, 0), t.seq FROM `
	sqlOf   = sqlLine + `tasks t INDEXED BY idx_tasks_status WHERE t.status = `
	// Each part is read along its index from a place on: ?1 is completedAt, ?2 seq of the task there.
	// Ended tasks have an end and pending ones have none, except in boards from elsewhere: these are
	// read by a query of their own, with the others last.
	sqlEndedPage     = ` AND t.completedAt IS NOT NULL AND (t.completedAt, t.seq) < (?1, ?2) ORDER BY t.completedAt DESC, t.seq DESC LIMIT ?3`
	sqlEndlessPage   = ` AND t.completedAt IS NULL AND t.seq < ?2 AND ?1 = 0 ORDER BY t.seq DESC LIMIT ?3`
	sqlPendingPage   = ` AND t.completedAt IS NULL AND t.seq > ?2 AND ?1 = 0 AND t.id NOT IN stuck ORDER BY t.seq LIMIT ?3`
	sqlPendingOfPage = ` AND t.completedAt IS NOT NULL AND (t.completedAt, t.seq) > (?1, ?2) AND t.id NOT IN stuck ORDER BY t.completedAt, t.seq LIMIT ?3`
	sqlWithStuck     = `WITH RECURSIVE ` + sqlStuck + ` `
	sqlStuckPage     = sqlWithStuck + sqlLine + `stuck s CROSS JOIN tasks t ON t.id = s.id WHERE t.status = 'pending' AND t.seq > ?2 AND ?1 >= 0 ORDER BY t.seq LIMIT ?3`
)

// pages returns the queries of a part, in order.
func (p BoardPart) pages() []string {
	switch p {
	case PartFailed:
		return []string{sqlOf + `'failed'` + sqlEndedPage, sqlOf + `'failed'` + sqlEndlessPage}
	case PartCompleted:
		return []string{sqlOf + `'completed'` + sqlEndedPage, sqlOf + `'completed'` + sqlEndlessPage}
	case PartPending:
		return []string{sqlWithStuck + sqlOf + `'pending'` + sqlPendingPage, sqlWithStuck + sqlOf + `'pending'` + sqlPendingOfPage}
	case PartStuck:
		return []string{sqlStuckPage}
	}
	return nil
}

// from returns the query of a part to begin with at a place, and the place for it.
func (p BoardPart) from(at BoardPlace) (query int, place BoardPlace) {
	ended := p == PartFailed || p == PartCompleted
	switch {
	case at == BoardPlace{} && ended:
		return 0, BoardPlace{1<<63 - 1, 1<<63 - 1}
	case ended && at.CompletedAt == 0, p == PartPending && at.CompletedAt != 0:
		return 1, at
	}
	return 0, at
}

// Page reads a page of the tasks in a part of the board, for which it looks at most at in.Scan ones.
func (l *Ledger) Page(ctx context.Context, in PageIn) (TaskPage, error) {
	p := TaskPage{Tasks: []Task{}, Next: in.After}
	queries := in.Part.pages()
	if queries == nil {
		return p, team.Errorf(team.CodeInvalid, "unknown part of a board %q", in.Part)
	}
	first, place := in.Part.from(in.After)
	var ids []string
	for i := first; i < len(queries); i++ {
		room := in.Scan - p.Looked
		if room <= 0 || len(ids) >= in.Most {
			return p.fill(ctx, l, ids)
		}
		lines, err := read(ctx, l.db, "read tasks", func(r *sql.Rows) (x TaskLine, err error) {
			err = r.Scan(&x.ID, &x.Subject, &x.Owner, &x.Status, &x.Unmet, &x.Place.CompletedAt, &x.Place.Seq)
			x.Stuck = in.Part == PartStuck
			return x, err
		}, queries[i], place.CompletedAt, place.Seq, room)
		if err != nil {
			return p, err
		}
		for _, x := range lines {
			p.Looked, p.Next = p.Looked+1, x.Place
			if in.Keep == nil || in.Keep(x) {
				ids = append(ids, x.ID)
			}
			if len(ids) >= in.Most {
				return p.fill(ctx, l, ids)
			}
		}
		if len(lines) == room {
			return p.fill(ctx, l, ids)
		}
		place = BoardPlace{}
		if in.Part != PartPending { // the next query goes down from the greatest number
			place.Seq = 1<<63 - 1
		}
	}
	p.Last = true
	return p.fill(ctx, l, ids)
}

// fill reads the tasks of a page, in its order.
func (p TaskPage) fill(ctx context.Context, l *Ledger, ids []string) (TaskPage, error) {
	if len(ids) == 0 {
		return p, nil
	}
	list, err := l.Tasks(ctx, TaskFilter{IDs: ids})
	if err != nil {
		return p, fmt.Errorf("read a page of tasks: %w", err)
	}
	byID := make(map[string]Task, len(list))
	for _, t := range list {
		byID[t.ID] = t
	}
	for _, id := range ids {
		if t, ok := byID[id]; ok {
			p.Tasks = append(p.Tasks, t)
		}
	}
	return p, nil
}
