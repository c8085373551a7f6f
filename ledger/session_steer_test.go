package ledger

import (
	"testing"

	"github.com/teamctl/teamctl/team"
)

// A new message comes first; the interrupted turn goes on after it, and the turn of the
// message takes nothing of the backlog.
func TestSteer(t *testing.T) {
	t.Parallel()
	r := newSessionRig(t)
	r.says(devKey, "build it")
	c := r.mustClaim(devKey, "g1")
	if _, err := r.Answered(r.ctx, TurnAnswer{Ref: c.Job.Ref(), Entry: NewEntry{Kind: EntryAssistant, Content: "on it"},
		Calls: []NewCall{{CallID: "c1", Name: "read", Input: "{}", ReadOnly: true}, {CallID: "c2", Name: "shell", Input: "{}"}}}); err != nil {
		t.Fatal(err)
	}
	steer := func(c *ClaimedTurn, text string) int64 {
		t.Helper()
		next, err := r.SteerTurn(r.ctx, TurnSteer{Ref: c.Job.Ref(), Resume: BacklogItem{Text: "resume: build it", Source: "resume:1"},
			Results: []CallResult{{CallID: "c1", Entry: NewEntry{Content: "the file"}}}, Inputs: []Input{{NewEntry: NewEntry{Kind: EntryUser, Content: text}}}})
		if err != nil {
			t.Fatal(err)
		}
		return next.Next
	}
	next := steer(c, "stop, first this")
	r.wantTexts(devKey, "build it", "on it", "the file", ResultSkipped, "stop, first this")
	if open, err := r.OpenCalls(r.ctx, devKey); err != nil || len(open) != 0 {
		t.Errorf("%+v, %v", open, err)
	}
	_, err := r.EndTurn(r.ctx, TurnEnd{Ref: c.Job.Ref(), State: team.TurnDone})
	r.refused(err, team.CodeConflict, team.ReasonStaleTurn)

	c = r.mustClaim(devKey, "g1")
	if c.Job.ID != next || !c.Job.First || len(c.Entries) != 0 {
		t.Errorf("%+v", c)
	}
	// Steered again, the first task has one token still.
	steer(c, "no, that")
	if b, err := r.Backlog(r.ctx, devKey); err != nil || len(b) != 1 {
		t.Errorf("%+v, %v", b, err)
	}
	c = r.mustClaim(devKey, "g1")
	r.end(c, team.TurnDone)
	c = r.mustClaim(devKey, "g1")
	if len(c.Entries) != 1 || c.Entries[0].Content != "[Backlog]\nresume: build it" || string(c.Entries[0].Meta) != `{"task":"resume: build it"}` {
		t.Errorf("%+v", c)
	}
}

// What came while a turn ran, too late for the message that steers it, stays ahead of what
// comes before the steering turn has begun.
func TestSteerKeepsOrder(t *testing.T) {
	t.Parallel()
	r := newSessionRig(t)
	r.says(devKey, "build it")
	c := r.mustClaim(devKey, "g1")
	if in := r.says(devKey, "seven"); !in.Backlogged {
		t.Errorf("%+v", in)
	}
	next, err := r.SteerTurn(r.ctx, TurnSteer{Ref: c.Job.Ref(), Resume: BacklogItem{Text: "resume: build it", Source: "resume:1"},
		Inputs: []Input{{NewEntry: NewEntry{Kind: EntryUser, Content: "six"}}}})
	if err != nil {
		t.Fatal(err)
	}
	if in := r.says(devKey, "eight"); !in.Backlogged || in.Job != next.Next {
		t.Errorf("%+v, the steering turn is %d", in, next.Next)
	}
	r.wantTexts(devKey, "build it", "six")
	c = r.mustClaim(devKey, "g1")
	r.end(c, team.TurnDone)
	r.mustClaim(devKey, "g1")
	r.wantTexts(devKey, "build it", "six", "[Backlog]\nseven\nresume: build it\neight")
}

// The commit that ends a turn claims the next one: that of the message which steers, or the turn of a
// parent whose child has ended. Without a turn that is due it claims none.
func TestEndClaims(t *testing.T) {
	t.Parallel()
	r := newSessionRig(t)
	claim := &ClaimTurnIn{Member: devKey, Generation: "g1"}
	r.says(devKey, "build it")
	c := r.mustClaim(devKey, "g1")
	steered, err := r.SteerTurn(r.ctx, TurnSteer{Ref: c.Job.Ref(), Resume: BacklogItem{Text: "resume: build it", Source: "resume:1"},
		Inputs: []Input{{NewEntry: NewEntry{Kind: EntryUser, Content: "first this"}}}, Claim: claim})
	if err != nil || steered.Turn == nil || steered.Turn.Job.ID != steered.Next || steered.Turn.Job.State != team.TurnRunning {
		t.Fatalf("%+v, %v", steered, err)
	}
	end := func(c *ClaimedTurn) *ClaimedTurn {
		t.Helper()
		out, err := r.EndTurn(r.ctx, TurnEnd{Ref: c.Job.Ref(), State: team.TurnDone, Claim: claim})
		if err != nil {
			t.Fatal(err)
		}
		return out.Turn
	}
	rest := end(steered.Turn)
	if rest == nil || len(rest.Entries) != 1 || rest.Entries[0].Content != "[Backlog]\nresume: build it" {
		t.Fatalf("%+v", rest)
	}
	if none := end(rest); none != nil {
		t.Errorf("%+v", none)
	}
	kid := r.open(NewSession{Key: "agent:scout:subagent:1", Owner: devKey})
	r.says(kid.Key, "look")
	parent := end(r.mustClaim(devKey, "g1"))
	if parent == nil || parent.Job.Session != devKey || len(parent.Announces) != 1 {
		t.Errorf("%+v", parent)
	}
}

// Input claims its turn at once; input for the backlog claims nothing.
func TestTakeInClaims(t *testing.T) {
	t.Parallel()
	r := newSessionRig(t)
	says := func(text string) TakenIn {
		t.Helper()
		out, err := r.TakeIn(r.ctx, TakeIn{Session: devKey, Inputs: []Input{{NewEntry: NewEntry{Kind: EntryUser, Content: text}}},
			Claim: &ClaimTurnIn{Member: devKey, Generation: "g1"}})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if in := says("build it"); in.Turn == nil || in.Turn.Job.ID != in.Job || in.Turn.Job.State != team.TurnRunning {
		t.Errorf("%+v", in)
	}
	if in := says("and test it"); in.Turn != nil || !in.Backlogged {
		t.Errorf("%+v", in)
	}
}

// Results that have not been committed go before the input that comes behind them.
func TestTakeInBehindResults(t *testing.T) {
	t.Parallel()
	r := newSessionRig(t)
	r.says(devKey, "build it")
	c := r.mustClaim(devKey, "g1")
	ref := c.Job.Ref()
	if _, err := r.Answered(r.ctx, TurnAnswer{Ref: ref, Entry: NewEntry{Kind: EntryAssistant, Content: "on it"}, Calls: []NewCall{{CallID: "c1", Name: "shell", Input: "{}"}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.TakeIn(r.ctx, TakeIn{Session: devKey, Turn: &ref, Results: []CallResult{{CallID: "c1", Entry: NewEntry{Content: "built"}}},
		Inputs: []Input{{NewEntry: NewEntry{Kind: EntryUser, Content: "for your information"}}}}); err != nil {
		t.Fatal(err)
	}
	r.wantTexts(devKey, "build it", "on it", "built", "for your information")
	if open, err := r.OpenCalls(r.ctx, devKey); err != nil || len(open) != 0 {
		t.Errorf("%+v, %v", open, err)
	}
}

// Where only the rest of a turn waits, the steering turn sees what comes before it begins.
func TestSteerTakesMore(t *testing.T) {
	t.Parallel()
	r := newSessionRig(t)
	r.says(devKey, "build it")
	c := r.mustClaim(devKey, "g1")
	if _, err := r.SteerTurn(r.ctx, TurnSteer{Ref: c.Job.Ref(), Resume: BacklogItem{Text: "resume: build it", Source: "resume:1"},
		Inputs: []Input{{NewEntry: NewEntry{Kind: EntryUser, Content: "six"}}}}); err != nil {
		t.Fatal(err)
	}
	if in := r.says(devKey, "seven"); in.Backlogged {
		t.Errorf("%+v", in)
	}
	r.wantTexts(devKey, "build it", "six", "seven")
}
