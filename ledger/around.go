package ledger

import (
	"context"
	"database/sql"
	"slices"
)

// Around is a task with tasks that are few dependencies away from it.
type Around struct {
	Tasks []Task          // oldest first
	Stuck map[string]bool // see Board
	// Before and After are how many tasks each of Tasks depends on, and how many depend on it, that
	// are not among Tasks.
	Before, After map[string]int
}

const (
	// Both take a JSON array of ids; an id and its neighbours follow in the
	// order of the array. No more rows are read than are returned.
	sqlBefore = `SELECT d.dependsOn FROM json_each(?1) e CROSS JOIN task_deps d ON d.task = e.value ORDER BY e.key, d.pos LIMIT ?2`
	sqlAfter  = `SELECT d.task FROM json_each(?1) e CROSS JOIN task_deps d INDEXED BY idx_task_deps_dependsOn ON d.dependsOn = e.value LIMIT ?2`
	// sqlFolded counts the edges of each task in a JSON array that lead to no
	// other one of them.
	sqlFolded = `WITH shown(id) AS MATERIALIZED (SELECT value FROM json_each(?1))
		SELECT id,
			(SELECT count(*) FROM task_deps d WHERE d.task = s.id) - (SELECT count(*) FROM shown o CROSS JOIN task_deps d ON d.task = s.id AND d.dependsOn = o.id),
			(SELECT count(*) FROM task_deps d WHERE d.dependsOn = s.id) - (SELECT count(*) FROM shown o CROSS JOIN task_deps d ON d.task = o.id AND d.dependsOn = s.id)
		FROM shown s`
)

// Around reads a task, what it depends on and what depends on it, through at
// most depth dependencies in one direction: the nearest ones first, and at most
// atMost tasks. The task itself must exist.
func (l *Ledger) Around(ctx context.Context, id string, depth, atMost int) (a Around, err error) {
	if _, err := l.Task(ctx, id); err != nil {
		return a, err
	}
	ids := []string{id}
	back, ahead := []string{id}, []string{id}
	for range depth {
		// Of the room that is left, what the tasks depend on gets half at most.
		if back, err = l.next(ctx, sqlBefore, back, &ids, len(ids)+(atMost-len(ids)+1)/2); err != nil {
			return a, err
		}
		if ahead, err = l.next(ctx, sqlAfter, ahead, &ids, atMost); err != nil {
			return a, err
		}
	}
	b, err := l.BoardOf(ctx, ids)
	if err != nil {
		return a, err
	}
	a = Around{Stuck: b.Stuck, Before: map[string]int{}, After: map[string]int{}}
	for _, t := range b.Tasks {
		if slices.Contains(ids, t.ID) {
			a.Tasks = append(a.Tasks, t)
		}
	}
	_, err = read(ctx, l.db, "count dependencies", func(r *sql.Rows) (id string, err error) {
		var before, after int
		err = r.Scan(&id, &before, &after)
		a.Before[id], a.After[id] = before, after
		return id, err
	}, sqlFolded, mustJSON(ids))
	return a, err
}

// next adds the neighbours of some tasks to ids until these are atMost, and
// returns the new ones.
func (l *Ledger) next(ctx context.Context, query string, of []string, ids *[]string, atMost int) (found []string, err error) {
	// Those that are known already may come first.
	list, err := read(ctx, l.db, "read dependencies", func(r *sql.Rows) (id string, err error) {
		err = r.Scan(&id)
		return id, err
	}, query, mustJSON(append([]string{}, of...)), atMost+len(*ids))
	for _, id := range list {
		if len(*ids) < atMost && !slices.Contains(*ids, id) {
			*ids, found = append(*ids, id), append(found, id)
		}
	}
	return found, err
}
