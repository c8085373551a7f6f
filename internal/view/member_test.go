package view

import (
	"testing"

	"github.com/teamctl/teamctl/team"
)

func TestDoing(t *testing.T) {
	t.Parallel()
	for want, m := range map[string]Member{
		"idle":                   {Activity: team.Idle},
		"idle, plan mode":        {Activity: team.Idle, Plan: true},
		"paused":                 {Activity: team.Working, Paused: true},
		"waiting (permission 3)": {Activity: team.Waiting, WaitsFor: "permission 3"},
	} {
		if got := m.Doing(); got != want {
			t.Errorf("%+v: %q, want %q", m, got, want)
		}
	}
}
