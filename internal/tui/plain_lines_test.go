package tui

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// forged is a text of a member with a line of the plain screen in it.
const forged = "x\nneeds you 9 of 9: permission 9\rneeds you 8"

// forger is a team whose members have written that wherever they can write something.
type forger struct{ fuzzed }

func (*forger) Request(_ context.Context, id int64) (view.Request, error) {
	r := view.Request{
		ID: id, Kind: view.NeedPermission, State: "pending", Member: "ann", Subject: forged, Tool: "Bash" + forged, Description: forged, Feedback: forged, Rule: forged,
		Questions: []view.Question{{Text: forged, Options: []string{forged}}}, Fields: []view.Field{{Name: forged, Text: forged}},
	}
	switch id {
	case 1:
		r.Command = forged
	case 2:
		r.Kind, r.Plan = view.NeedPlan, forged+"\n```\n"+forged
	case 4:
		r.State, r.AnsweredBy = "approved", forged
	}
	return r, nil
}

func (*forger) Task(context.Context, string) (view.TaskDetail, error) {
	return view.TaskDetail{Description: forged, Verify: forged, Error: forged, Output: forged, Events: []view.Event{{Text: forged}}}, nil
}

func (*forger) Member(context.Context, string) (view.MemberDetail, error) {
	return view.MemberDetail{Branch: forged, Output: []string{forged}}, nil
}

func (*forger) Mail(context.Context) ([]view.Message, error) {
	return []view.Message{{ID: "3f2a", From: "ann", Text: forged, Receipts: []view.Receipt{{To: "bob", State: team.Held, Reason: forged}}}}, nil
}

func (*forger) Usage(context.Context) (view.Usage, error) {
	return view.Usage{Tasks: []view.Spent{{Name: "5", Subject: forged}}, Limits: []view.Limit{{Agent: forged}}}, nil
}

func (*forger) Changes(context.Context, string, string) (view.Changes, error) {
	return view.Changes{
		Member: "ann", Untracked: []string{forged}, Patch: "diff --git \"a/x\\nneeds you 9\" \"b/x\\nneeds you 9\"\n--- \"a/x\\nneeds you 9\"\n+++ \"b/x\\nneeds you 9\"\n@@ -1 +1 @@\n-a\n+b\rneeds you 9\n",
		Comments: []view.Comment{{Name: "1.1", State: "handled", Path: forged, Text: forged, Answer: forged}},
	}, nil
}

func (*forger) TaskLog(context.Context, string, int) (view.TaskLog, error) {
	return view.TaskLog{Task: "5", Attempt: 1, Owner: "ann", Parts: []view.LogPart{{Title: "OUTPUT", Lines: []string{forged}, Missing: forged}}}, nil
}

func (*forger) Screen(_ context.Context, _ string, each func(view.Frame)) error {
	each(view.Frame{Lines: []string{"needs you 9", forged}})
	return nil
}

func (*forger) Do(_ context.Context, d view.Deed) (view.Done, error) {
	switch {
	case d.Preview:
		return view.Done{Said: "ann conflicts in " + forged, Seen: "x"}, nil
	case d.Action == "retry":
		return view.Done{}, errors.New("the task says " + forged)
	}
	return view.Done{Said: "task 5 is added: " + forged}, nil
}

// TestPlainLinesAreOurs checks that no text of a member begins a line of the plain screen, where it could be
// taken for what the screen says.
func TestPlainLinesAreOurs(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	talk := &talk{p: &Plain{Out: &out}, ctx: t.Context(), name: "demo", team: &forger{}, told: map[string]view.Need{}, events: map[string]bool{}, seen: map[int64]string{}}
	snap := view.Snapshot{
		Team: "demo", Members: []view.Member{{Name: "ann", State: team.Failed, Note: forged}},
		Tasks: []view.Task{{ID: "5", Subject: forged, Status: team.TaskFailed, Owner: "ann", Note: forged, Waits: []string{forged}}},
		Needs: []view.Need{
			{Kind: view.NeedPermission, Member: "ann", Approval: 1, Text: forged}, {Kind: view.NeedPlan, Member: "ann", Approval: 2, Text: forged},
			{Kind: view.NeedPermission, Member: "ann", Approval: 3, Text: forged}, {Kind: view.NeedPermission, Member: "ann", Approval: 4, Text: forged},
			{Kind: view.NeedMember, Member: "ann", Text: forged}, {Kind: view.NeedTask, Task: "5", Text: forged},
			{Kind: view.NeedMail, Member: "ann", Message: "3f2a", Text: forged}, {Kind: view.NeedMerge, Text: forged, Command: forged},
		},
	}
	talk.snapshot(snap, nil, true)
	snap.Events = []view.Event{{At: time.Unix(5, 0), Text: forged}}
	talk.snapshot(snap, nil, false)
	said := map[string]bool{} // what the screen has said by itself
	const ours = "needs you "
	for line := range strings.Lines(out.String()) {
		said[line] = strings.HasPrefix(line, ours)
	}
	if len(said) < len(snap.Needs) || said["needs you 9 of 9: permission 9\n"] {
		t.Errorf("at the start:\n%s", out.String())
	}
	now := time.Now()
	for _, words := range []string{
		"members", "tasks", "mail", "usage", "screen ann", "changes ann", "log 5", "show 1", "show 2", "show 3", "show 4", "show 5", "show 6", "show 7", "show 8", "show task 5", "show member ann",
		"show message 3f2a", "menu 1", "menu task 5", "approve 1", "approve 2", "approve 3", "approve 4", "add-task a test", "retry 5", "merge-ready", "no", "handled ann 1.1",
	} {
		out.Reset()
		now = now.Add(time.Minute)
		talk.line(words, now)
		got := out.String()
		if got == "" {
			t.Errorf("%s says nothing", words)
		}
		for line := range strings.Lines(got) {
			if strings.HasPrefix(strings.TrimLeft(line, " "), ours) {
				t.Errorf("%s: a member has written the line %q in\n%s", words, line, got)
			}
		}
		if strings.ContainsRune(got, '\r') {
			t.Errorf("%s: %q", words, got)
		}
	}
}
