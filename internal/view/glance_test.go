package view

import (
	"testing"
	"time"

	"github.com/teamctl/teamctl/team"
)

func TestGlance(t *testing.T) {
	t.Parallel()
	s := Snapshot{Team: "demo", Needs: make([]Need, 4), Down: time.UnixMilli(5), Whole: &Counts{Done: 5, Failed: 1, Active: 4, Ready: 1, Stuck: 1, Total: 12}}
	for want, g := range map[string]Glance{
		"demo ? !4 ▸4 ·1 ✗1 5/12": GlanceOf(s),
		"demo":                    GlanceOf(Snapshot{Team: "demo"}),
		"demo !2 ·1 0/1":          {Team: "demo", Needs: 2, Ready: 1, Total: 1},
		"demo ·1 0/1":             GlanceOf(Snapshot{Team: "demo", Tasks: []Task{{ID: "1", Status: team.TaskPending}}}),
		"demo 3/3":                {Team: "demo", Done: 3, Total: 3},
		"gone ?":                  {Team: "gone", Needs: 3, Unread: "damaged"},
		"a31mb 1/1":               {Team: "a\x1b]0;x\x0731mb", Done: 1, Total: 1},
	} {
		if got := g.String(); got != want {
			t.Errorf("%+v: %q, want %q", g, got, want)
		}
	}
	if got := Glances([]Glance{{Team: "a"}, {Team: "b", Needs: 1}}); got != "a  b !1" {
		t.Errorf("several: %q", got)
	}
}

// Nothing that a team is called runs a command or sets a style in tmux.
func TestForTmux(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"demo !1":                   "demo !1",
		"#(touch x)#[fg=red]#{pid}": "##(touch x)##[fg=red]##{pid}",
		"a\nb\x1b[31mc":             "a bc",
	} {
		if got := ForTmux(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
