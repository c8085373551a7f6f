package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/tool/op"
)

// TestActions checks that every action of a screen either runs an operation that other programs
// can call or changes nothing, and that its command line is valid.
func TestActions(t *testing.T) {
	t.Parallel()
	ids, keys := map[string]bool{}, map[string]view.Action{}
	targets := map[view.Thing][]view.Target{
		view.OnChange: {{Change: &view.Change{Path: "a.go"}}, {Change: &view.Change{Path: "a.go", Reviewed: true}}},
		view.OnApproval: {
			{Need: &view.Need{Kind: view.NeedPermission}}, {Need: &view.Need{Kind: view.NeedPermission, Question: true}},
			{Need: &view.Need{Kind: view.NeedPlan}, Change: &view.Change{Path: "plan 3", Lines: "3", Comment: &view.Comment{State: "draft"}}},
		},
	}
	for _, x := range view.Actions() {
		if ids[x.ID] {
			t.Errorf("two actions are called %q", x.ID)
		}
		ids[x.ID] = true
		for _, on := range x.On {
			if at := x.Key + " on " + string(on); x.Key != "" {
				other, taken := keys[at]
				if apart := other.When != nil && x.When != nil && len(targets[on]) > 0 &&
					!slices.ContainsFunc(targets[on], func(c view.Target) bool { return other.When(c) && x.When(c) }); taken && !apart {
					t.Errorf("%s: %s and %s", at, other.ID, x.ID)
				}
				keys[at] = x
			}
		}
		if x.Operation == "" && (x.Page || x.Confirm || !x.Terminal) {
			t.Errorf("%s changes nothing, but its flags declare that it does", x.ID)
		}
		if x.Operation != "" {
			o, err := op.Find(x.Operation)
			if err != nil || o.ReadOnly {
				t.Errorf("%s: %s is not an operation that changes anything: %v", x.ID, x.Operation, err)
			}
		}
		if len(x.On) == 0 || x.Title == "" || strings.Contains(x.Command, "{text}") && x.Asks == "" {
			t.Errorf("%s is incomplete: %+v", x.ID, x)
		}
		line := x.Line(view.Deed{Member: "builder", Task: "5", Approval: 3, Message: "0194", Merge: 7, Path: "a.go", Lines: "3", Comment: "1.1", Group: "worker-*", Text: "1"})
		words := strings.Fields(line)
		if words[0] != "teamctl" || strings.ContainsAny(line, "{}") {
			t.Errorf("%s: %s", x.ID, line)
			continue
		}
		a := &app{out: newOutput(os.Stdout, os.Stderr, false)}
		cmd, rest, err := a.root(words[1:]).Find(words[1:])
		if err == nil && cmd.Hidden {
			t.Errorf("%s: %s is hidden", x.ID, line)
		}
		if err == nil {
			err = cmd.ParseFlags(rest)
		}
		if err == nil {
			err = cmd.ValidateArgs(cmd.Flags().Args())
		}
		if err != nil || cmd.RunE == nil {
			t.Errorf("%s: %s: %v", x.ID, line, err)
		}
	}
	if !slices.ContainsFunc(view.Actions(), func(x view.Action) bool { return x.Page }) {
		t.Error("the page offers nothing")
	}
}
