package ledger

import (
	"context"

	"github.com/teamctl/teamctl/team"
)

const (
	sqlReindex    = `REINDEX`
	sqlDriftedIDs = `SELECT id FROM tasks t WHERE unmet <> json_array_length(coalesce(blockedBy, '[]')) OR unmet <> (
		SELECT count(*) FROM task_deps d JOIN tasks x ON x.id = d.dependsOn WHERE d.task = t.id AND x.status <> 'completed') ORDER BY seq`
	sqlCounterPut = `INSERT OR IGNORE INTO counters(name, value) SELECT 'task', coalesce(max(seq), 0) FROM tasks`
	// sqlRecount computes the correct task_counts.
	sqlRecount = `SELECT 1 AS one, count(*) FILTER (WHERE status = 'pending') AS pending,
		count(*) FILTER (WHERE status = 'pending' AND unmet = 0 AND notBefore = 0) AS ready,
		count(*) FILTER (WHERE status = 'claimed') AS claimed, count(*) FILTER (WHERE status = 'in_progress') AS in_progress,
		count(*) FILTER (WHERE status = 'completed') AS completed, count(*) FILTER (WHERE status = 'failed') AS failed FROM tasks`
	sqlCountsPut = `INSERT OR REPLACE INTO task_counts(one, pending, ready, claimed, in_progress, completed, failed) ` + sqlRecount
)

// Repair rebuilds the indexes and recomputes derived values (blockedBy and its
// count, the counts of the board). It returns what it changed. It cannot repair
// damaged pages; Check reports them.
func (l *Ledger) Repair(ctx context.Context) (fixed []string, err error) {
	return write[[]string](ctx, l, opRepair, none{})
}

func repairLedger(t *tx, _ none) ([]string, error) {
	fixed := []string{}
	if _, err := t.exec(sqlReindex); err != nil {
		return nil, err
	}
	ids, err := column[string](t, sqlDriftedIDs)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if _, err := t.exec(sqlDepsMirror, id); err != nil {
			return nil, err
		}
		fixed = append(fixed, "task "+id+": blockedBy computed again")
	}
	kept, err := column[string](t, sqlUnreleasedIDs)
	if err == nil {
		kept, err = t.freeAll(kept, "nobody would have released it")
	}
	if err != nil {
		return nil, err
	}
	for _, id := range kept {
		fixed = append(fixed, "task "+id+": released, nobody else would have done it")
	}
	if n, err := t.exec(sqlCounterPut); err != nil {
		return nil, err
	} else if n > 0 {
		fixed = append(fixed, "the number of the last task found again")
	}
	wrong, err := column[string](t, sqlMiscounted)
	if err != nil {
		return nil, err
	}
	if len(wrong) > 0 {
		if _, err := t.exec(sqlCountsPut); err != nil {
			return nil, err
		}
		fixed = append(fixed, "the numbers of the board counted again")
	}
	for _, what := range fixed {
		if err := t.event(Event{What: team.EventLedgerRepaired, After: what}); err != nil {
			return nil, err
		}
	}
	return fixed, nil
}
