package main

import (
	"testing"

	"github.com/teamctl/teamctl/ledger"
)

func TestWanted(t *testing.T) {
	t.Parallel()
	e := ledger.Event{Who: "w", What: "task.failed"}
	for _, c := range []struct {
		f    ledger.EventFilter
		want bool
	}{
		{ledger.EventFilter{}, true},
		{ledger.EventFilter{What: "task."}, true},
		{ledger.EventFilter{What: "task.failed", Who: "w"}, true},
		{ledger.EventFilter{What: "task"}, false},
		{ledger.EventFilter{What: "task.failed."}, false},
		{ledger.EventFilter{Who: "x"}, false},
	} {
		if got := wanted(e, c.f); got != c.want {
			t.Errorf("%+v: %v", c.f, got)
		}
	}
}
