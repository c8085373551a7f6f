package ledger

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/teamctl/teamctl/team"
)

// sessionModel drives one session at random.
type sessionModel struct {
	*rapid.T
	*Ledger
	ctx   context.Context
	gen   int // of the process that runs the session
	turn  *ClaimedTurn
	made  int      // texts and calls so far
	texts []string // what the session was told and took
}

func (c *sessionModel) next(what string) string {
	c.made++
	return fmt.Sprintf("<%s%d>", what, c.made)
}

func (c *sessionModel) generation() string { return fmt.Sprint("g", c.gen) }

func (c *sessionModel) try(err error, reasons ...string) bool {
	if err == nil {
		return true
	}
	for _, r := range reasons {
		if team.ReasonOf(err) == r {
			return false
		}
	}
	c.Fatal(err)
	return false
}

// say gives the session a message, twice, as after a lost answer.
func (c *sessionModel) say(turn *TurnRef) {
	text := c.next("message")
	in := TakeIn{Session: devKey, Turn: turn, Inputs: []Input{{NewEntry: NewEntry{Kind: EntryUser, Content: text, Source: text}}}}
	if _, err := c.TakeIn(c.ctx, in); c.try(err, team.ReasonBacklogFull) {
		c.texts = append(c.texts, text)
		_, err = c.TakeIn(c.ctx, in)
		c.try(err)
	}
}

func (c *sessionModel) claim() {
	var err error
	c.turn, err = c.ClaimTurn(c.ctx, ClaimTurnIn{Member: devKey, Generation: c.generation()})
	c.try(err)
}

func (c *sessionModel) open() []ToolCall {
	list, err := c.OpenCalls(c.ctx, devKey)
	c.try(err)
	return list
}

func (c *sessionModel) answer() {
	a := TurnAnswer{Ref: c.turn.Job.Ref(), Entry: NewEntry{Kind: EntryAssistant, Content: c.next("answer")}}
	for range rapid.IntRange(0, 3).Draw(c.T, "calls") {
		a.Calls = append(a.Calls, NewCall{CallID: c.next("call"), Name: "shell", Input: "{}", ReadOnly: rapid.Bool().Draw(c.T, "reads")})
	}
	waits := len(c.open()) > 0
	if _, err := c.Answered(c.ctx, a); c.try(err, team.ReasonOpenCalls) == waits {
		c.Fatalf("an answer was taken: %v, with open calls: %v", !waits, waits)
	}
}

func (c *sessionModel) endCall() {
	open := c.open()
	if len(open) == 0 {
		return
	}
	if !open[0].ReadOnly {
		_, err := c.BeginCall(c.ctx, c.turn.Job.Ref(), open[0].CallID)
		c.try(err)
		if rapid.Bool().Draw(c.T, "dies in it") {
			c.kill()
			return
		}
	}
	r := TurnResults{Ref: c.turn.Job.Ref(), Results: []CallResult{{CallID: open[0].CallID, Entry: NewEntry{Content: "done"}}}}
	for range 2 {
		_, err := c.EndCalls(c.ctx, r)
		c.try(err)
	}
}

func (c *sessionModel) steer() {
	text, token := c.next("steer"), c.next("resume")
	out, err := c.SteerTurn(c.ctx, TurnSteer{Ref: c.turn.Job.Ref(), Resume: BacklogItem{Text: token, Source: token},
		Inputs: []Input{{NewEntry: NewEntry{Kind: EntryUser, Content: text, Source: text}}}, Claim: c.claims()})
	if c.try(err, team.ReasonBacklogFull) {
		c.texts, c.turn = append(c.texts, text, token), out.Turn
	}
}

// claims is what the end of a turn is to claim: the next one, or nothing.
func (c *sessionModel) claims() *ClaimTurnIn {
	if rapid.Bool().Draw(c.T, "claims the next") {
		return &ClaimTurnIn{Member: devKey, Generation: c.generation()}
	}
	return nil
}

func (c *sessionModel) end(state team.TurnState) {
	out, err := c.EndTurn(c.ctx, TurnEnd{Ref: c.turn.Job.Ref(), State: state, Claim: c.claims()})
	c.try(err)
	c.turn = out.Turn
}

// kill starts the process of the session again.
func (c *sessionModel) kill() {
	was := c.turn
	c.gen, c.turn = c.gen+1, nil
	_, err := c.RecoverTurns(c.ctx, devKey, c.generation())
	c.try(err)
	if was == nil {
		return
	}
	if _, err := c.EndTurn(c.ctx, TurnEnd{Ref: was.Job.Ref(), State: team.TurnDone}); c.try(err, team.ReasonStaleTurn) {
		c.Fatal("a dead process ended its turn")
	}
}

// cancel ends a turn, as an interrupt does.
func (c *sessionModel) cancel() {
	jobs, err := c.TurnJobs(c.ctx, JobFilter{Session: devKey, Open: true})
	c.try(err)
	if len(jobs) > 0 {
		c.try(c.CancelTurn(c.ctx, jobs[len(jobs)-1].ID, "interrupted"))
	}
}

func (c *sessionModel) step() {
	if c.turn == nil {
		[]func(){func() { c.say(nil) }, c.claim, c.claim, c.cancel, c.kill}[rapid.IntRange(0, 4).Draw(c.T, "idle")]()
		return
	}
	ref := c.turn.Job.Ref()
	[]func(){func() { c.say(nil) }, func() { c.say(&ref) }, c.answer, c.endCall, c.steer, c.kill, c.cancel,
		func() { c.end(team.TurnDone) }, func() { c.end(team.TurnQueued) }, func() { c.end(team.TurnFailed) },
	}[rapid.IntRange(0, 9).Draw(c.T, "busy")]()
}

// check compares what is stored with what the session was told.
func (c *sessionModel) check() {
	list, err := c.Entries(c.ctx, devKey, 0, 0)
	c.try(err)
	waits, err := c.Backlog(c.ctx, devKey)
	c.try(err)
	jobs, err := c.TurnJobs(c.ctx, JobFilter{Session: devKey, Open: true})
	c.try(err)
	if len(waits) > 0 && len(jobs) == 0 {
		c.Fatalf("%d items wait, and no turn for them", len(waits))
	}
	var all strings.Builder
	results := map[string]int{}
	for _, e := range list {
		switch e.Kind {
		case EntryUser:
			all.WriteString(e.Content)
		case EntryToolResult:
			results[e.Source]++
		case EntryAssistant:
			for id, n := range results {
				if n != 1 {
					c.Fatalf("%d results of %s", n, id)
				}
			}
		case EntryEvent, EntryCompaction:
		}
	}
	for _, b := range waits {
		all.WriteString(b.Text)
	}
	for _, text := range c.texts {
		if n := strings.Count(all.String(), text); n != 1 {
			c.Fatalf("%s is there %d times", text, n)
		}
	}
	calls, err := read(c.ctx, c.DB(), "read calls", scanCall, `SELECT `+callCols+` FROM tool_calls ORDER BY id`)
	c.try(err)
	for _, call := range calls {
		if call.Entry == 0 {
			continue
		}
		if results[fmt.Sprint("call:", call.ID)] != 1 {
			c.Fatalf("call %s has its result %d times", call.CallID, results[fmt.Sprint("call:", call.ID)])
		}
		for _, e := range list[call.Asked : call.Entry-1] {
			if e.Kind == EntryAssistant {
				c.Fatalf("an answer stands between call %s and its result", call.CallID)
			}
		}
	}
}

// A session loses and doubles nothing, whatever its process does and wherever it dies.
func TestSessionsKeepEverything(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		ctx, db := drawnLedger(t, rt, dir)
		defer func() { _ = db.Close() }()
		c := &sessionModel{T: rt, Ledger: New(db, Direct(db)), ctx: ctx, gen: 1}
		_, err := c.OpenSession(ctx, NewSession{Key: devKey, Member: devKey})
		c.try(err)
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			c.step()
			c.check()
		}
		if c.turn != nil {
			c.end(team.TurnDone)
		}
		for c.claim(); c.turn != nil; c.claim() {
			c.end(team.TurnDone)
		}
		c.check()
		if waits, err := c.Backlog(ctx, devKey); err != nil || len(waits) > 0 {
			rt.Fatalf("%d items wait after the last turn, %v", len(waits), err)
		}
	})
}

// Writers that claim at once never run two turns of a session, nor more of a lane than
// its width.
func TestClaimsAtOnce(t *testing.T) {
	t.Parallel()
	r := newSessionRig(t)
	if err := r.Set(r.ctx, SettingLane+string(team.LaneTeammate), 2); err != nil {
		t.Fatal(err)
	}
	const members, turns = 4, 6
	other := openAt(t, r.DB().Path())
	writers := []*Ledger{r.Ledger, New(other, Direct(other))}
	var keys []string
	for i := range members {
		key := fmt.Sprintf("agent:default:teammate:m%d", i)
		r.open(NewSession{Key: key, Member: key})
		for n := range turns {
			if _, err := r.QueueTurn(r.ctx, NewTurn{Session: key, Cause: team.CauseMessage, Input: fmt.Sprint("turn ", n)}); err != nil {
				t.Fatal(err)
			}
		}
		keys = append(keys, key)
	}
	var done atomic.Int64
	var all sync.WaitGroup
	for i := range 2 * members {
		all.Go(func() {
			l, key := writers[i%2], keys[i/2]
			for left := true; left; {
				c, err := l.ClaimTurn(r.ctx, ClaimTurnIn{Member: key, Generation: "g1"})
				if err != nil {
					t.Error(err)
					return
				}
				if c == nil {
					open, err := l.TurnJobs(r.ctx, JobFilter{Member: key, Open: true})
					if err != nil {
						t.Error(err)
						return
					}
					left = len(open) > 0
					continue
				}
				jobs, err := l.TurnJobs(r.ctx, JobFilter{Open: true})
				if err != nil {
					t.Error(err)
					return
				}
				running := map[string]int{}
				for _, j := range jobs {
					if j.State == team.TurnRunning {
						running[j.Session]++
					}
				}
				if running[key] != 1 || len(running) > 2 {
					t.Errorf("turns run at once: %v", running)
				}
				done.Add(1)
				if _, err := l.EndTurn(r.ctx, TurnEnd{Ref: c.Job.Ref(), State: team.TurnDone}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if n := done.Load(); n != members*turns {
		t.Errorf("%d turns, want %d", n, members*turns)
	}
}
