package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// suggestTask adds the likely task to the error of an unknown one: people type the words of its
// subject instead of its number.
func (a *app) suggestTask(ctx context.Context, t *tool.Team, err error) error {
	var e *team.Error
	if team.ReasonOf(err) != team.ReasonTaskNotFound || !errors.As(err, &e) || e.Error() != err.Error() {
		return err
	}
	tasks, lerr := t.Ledger.Tasks(ctx, ledger.TaskFilter{Newest: true, Limit: 1000})
	if lerr != nil || len(tasks) == 0 {
		return err
	}
	subjects := make([]string, len(tasks))
	for i, task := range tasks {
		subjects[i] = task.Subject
	}
	for _, word := range a.given {
		if strings.Trim(taskID(word), "0123456789") == "" {
			continue // a number is not a misspelling of another
		}
		near := team.Closest(word, subjects)
		if i := slices.IndexFunc(subjects, func(s string) bool { return strings.Contains(strings.ToLower(s), strings.ToLower(word)) }); i >= 0 {
			near = subjects[i]
		}
		for i, s := range subjects {
			if s == near && near != "" {
				return e.WithHint("did you mean " + tasks[i].ID + " (" + view.Clean(s) + ")?")
			}
		}
	}
	return err
}
