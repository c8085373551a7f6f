package ledger

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/team"
)

func TestRuns(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a")
	ctx := ctxFor(t)
	if r := must[Run](t)(l.CurrentRun(ctx)); r.ID != 1 || r.Depth != 0 {
		t.Fatalf("%+v", r)
	}
	post := func(parent string) (Message, error) {
		m, _, err := l.Post(ctx, NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "a", Text: "hello", Parent: parent})
		return m, err
	}
	first := must[Message](t)(post(""))
	must[Scratchpad](t)(l.MergeScratchpad(ctx, raw(`{"a":1}`), 0))

	two := must[Run](t)(l.BeginRun(ctx, RunStart{Name: " second "}))
	if two.ID != 2 || two.Name != "second" || two.Parent != 0 {
		t.Errorf("%+v", two)
	}
	if pad := must[Scratchpad](t)(l.Scratchpad(ctx)); string(pad.Doc) != "{}" || pad.Version != 0 || pad.Run != 2 {
		t.Errorf("a new run has its own scratchpad: %s", pad.Doc)
	}
	_, err := post(first.ID)
	refused(t, err, team.CodeInvalid, "parent_of_other_run")
	inTwo := must[Message](t)(post(""))

	sub := must[Run](t)(l.BeginRun(ctx, RunStart{Sub: true}))
	if sub.Parent != 2 || sub.Depth != 1 {
		t.Errorf("%+v", sub)
	}
	if m := must[Message](t)(post("")); m.Run != sub.ID {
		t.Errorf("a message belongs to the current run: %d", m.Run)
	}
	done := must[RunsClosed](t)(l.CloseRun(ctx, 0))
	if d := cmp.Diff(RunsClosed{Closed: []int64{3}, Current: two}, done); d != "" {
		t.Error(d)
	}
	if m := must[Message](t)(post(inTwo.ID)); m.Run != 2 {
		t.Errorf("back in the run that held it: %d", m.Run)
	}
	if pad := must[RunInfo](t)(l.RunInfo(ctx, 1)); string(pad.Scratchpad.Doc) != `{"a":1}` || pad.EndedAt == 0 || pad.Messages != 1 {
		t.Errorf("%+v", pad)
	}
	_, err = l.CloseRun(ctx, 3)
	refused(t, err, team.CodeConflict, team.ReasonRunClosed)
	_, err = l.CloseRun(ctx, 99)
	refused(t, err, team.CodeNotFound, team.ReasonRunNotFound)
	_, err = l.RunInfo(ctx, 99)
	refused(t, err, team.CodeNotFound, team.ReasonRunNotFound)

	// Closing the outermost run starts the next: there is always one.
	done = must[RunsClosed](t)(l.CloseRun(ctx, 2))
	if !cmp.Equal(done.Closed, []int64{2}) || done.Current.ID != 4 || done.Current.Depth != 0 {
		t.Errorf("%+v", done)
	}
	var current []int64
	for _, r := range must[[]RunInfo](t)(l.Runs(ctx, 0)) {
		if r.Current {
			current = append(current, r.ID)
		}
	}
	if !cmp.Equal(current, []int64{4}) {
		t.Errorf("current runs %v", current)
	}
	sound(t, l)
}

func TestSubRunsHaveADepth(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a")
	ctx := ctxFor(t)
	for depth := 1; depth <= MaxRunDepth; depth++ {
		if r := must[Run](t)(l.BeginRun(ctx, RunStart{Sub: true})); r.Depth != depth {
			t.Fatalf("%+v", r)
		}
	}
	_, err := l.BeginRun(ctx, RunStart{Sub: true})
	refused(t, err, team.CodeLimit, team.ReasonRunDepth)
	// A run is closed with all its sub-runs.
	if done := must[RunsClosed](t)(l.CloseRun(ctx, 3)); len(done.Closed) != 7 || done.Current.ID != 2 {
		t.Errorf("%+v", done)
	}
	must[Run](t)(l.BeginRun(ctx, RunStart{Sub: true}))
	must[Run](t)(l.StartRun(ctx))
	if n := sqlRow[int](t, l.DB(), "SELECT count(*) FROM runs WHERE endedAt IS NULL"); n != 1 {
		t.Errorf("%d open runs", n)
	}
}

// The message limit is per run: a new run, or a sub-run, starts from zero.
func TestCapIsOfTheRun(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a")
	ctx := ctxFor(t)
	post := func() error {
		_, _, err := l.Post(ctx, NewMessage{Kind: team.KindInfo, From: team.LeadName, To: "a", Text: "x"})
		return err
	}
	ok(t, sqlExec(t, l.DB(), "PRAGMA synchronous = OFF"))
	for range team.MaxMessagesPerRun {
		ok(t, post())
	}
	err := post()
	refused(t, err, team.CodeLimit, team.ReasonMessagesCap)
	if want := fmt.Sprintf("team_messages_cap_exceeded: team_run 1 already has %d messages (cap %[1]d)", team.MaxMessagesPerRun); err.Error() != want {
		t.Errorf("%v", err)
	}
	must[Run](t)(l.BeginRun(ctx, RunStart{Sub: true}))
	ok(t, post())
	must[RunsClosed](t)(l.CloseRun(ctx, 0))
	refused(t, post(), team.CodeLimit, team.ReasonMessagesCap)
	must[Run](t)(l.StartRun(ctx))
	ok(t, post())
}
