package view

import (
	"testing"
	"time"

	"github.com/teamctl/teamctl/team"
)

func TestDoing(t *testing.T) {
	t.Parallel()
	for want, m := range map[string]Member{
		"idle":                   {Activity: team.Idle},
		"idle, plan mode":        {Activity: team.Idle, Plan: true},
		"paused":                 {Activity: team.Working, Paused: true},
		"waiting (permission 3)": {Activity: team.Waiting, WaitsFor: "permission 3"},
		"limited":                {Activity: team.Limited},
		"limited until 14:00":    {Activity: team.Limited, LimitedTo: time.Date(2026, 3, 1, 14, 0, 0, 0, time.Local)},
	} {
		if got := m.Doing(); got != want {
			t.Errorf("%+v: %q, want %q", m, got, want)
		}
	}
}
