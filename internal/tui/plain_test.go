package tui

import (
	"testing"

	"github.com/teamctl/teamctl/internal/view"
)

// TestPlainWords checks that every action is a word of the plain screen, and that no word has two meanings.
func TestPlainWords(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, w := range plainWords {
		names[w.name] = true
	}
	talk := &talk{p: &Plain{}, snap: crowd(8)}
	for _, a := range view.Actions() {
		if names[a.ID] {
			t.Errorf("%s is an action and a word", a.ID)
		}
		if a.On[0] == view.OnMessage { // it is looked up
			continue
		}
		text := map[view.Thing]string{view.OnApproval: "3", view.OnMember: "worker-1", view.OnTask: "5", view.OnMerge: "2", view.OnChange: "worker-1 3.2"}[a.On[0]]
		if a.On[0] == view.OnChange && a.ID == "send-review" || a.ID == "review-task" {
			text = "worker-1"
		}
		if a.Asks != "" {
			text += " and more"
		}
		d, err := talk.deed(a, text)
		if err != nil {
			t.Errorf("%s %s: %v", a.ID, text, err)
		}
		if a.Asks != "" && d.Text == "" {
			t.Errorf("%s %s: %+v has no text", a.ID, text, d)
		}
		if a.On[0] != view.OnTeam {
			if _, err := talk.deed(a, ""); err == nil {
				t.Errorf("%s alone is taken", a.ID)
			}
		}
	}
	for short, id := range aliases {
		if _, ok := view.ActionByID(id); !ok || names[short] {
			t.Errorf("%s is %s", short, id)
		}
	}
	d, err := talk.deed(must(view.ActionByID("comment")), "worker-1 cart.go:40-44 why two?")
	if err != nil || d.Path != "cart.go" || d.Lines != "40-44" || d.Text != "why two?" {
		t.Errorf("%+v, %v", d, err)
	}
	d, err = talk.deed(must(view.ActionByID("comment-plan")), "1 12-14 in one commit")
	if err != nil || d.Approval != 1 || d.Member != "worker-1" || d.Lines != "12-14" || d.Text != "in one commit" {
		t.Errorf("%+v, %v", d, err)
	}
	d, err = talk.deed(must(view.ActionByID("edit-plan-comment")), "1 2 in one commit")
	if err != nil || d.Approval != 1 || d.Comment != "2" || d.Lines != "" || d.Text != "in one commit" {
		t.Errorf("%+v, %v", d, err)
	}
}

func must(a view.Action, ok bool) view.Action {
	if !ok {
		panic("no such action")
	}
	return a
}
