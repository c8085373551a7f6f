package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/team"
)

const (
	devKey  = "agent:default:teammate:dev"
	leadKey = "agent:default:team:demo"
)

// sessionRig is a team with a member dev that has a session.
type sessionRig struct {
	testing.TB
	*Ledger
	ctx context.Context
}

func newSessionRig(t testing.TB) *sessionRig {
	t.Helper()
	l := newLedger(t)
	r := &sessionRig{t, l, ctxFor(t)}
	for name, key := range map[string]string{team.LeadName: leadKey, "dev": devKey} {
		if _, _, err := l.AddMember(r.ctx, Member{Name: name, SessionKey: key}, true); err != nil {
			t.Fatal(err)
		}
		r.open(NewSession{Key: key, Member: key})
	}
	return r
}

func (r *sessionRig) open(n NewSession) Session {
	r.Helper()
	s, err := r.OpenSession(r.ctx, n)
	if err != nil {
		r.Fatal(err)
	}
	return s
}

// says takes in a text as a message of the lead.
func (r *sessionRig) says(session, text string) TakenIn {
	r.Helper()
	in, err := r.TakeIn(r.ctx, TakeIn{Session: session, Inputs: []Input{{NewEntry: NewEntry{Kind: EntryUser, Content: text}}}})
	if err != nil {
		r.Fatal(err)
	}
	return in
}

func (r *sessionRig) claim(member, gen string) *ClaimedTurn {
	r.Helper()
	c, err := r.ClaimTurn(r.ctx, ClaimTurnIn{Member: member, Generation: gen})
	if err != nil {
		r.Fatal(err)
	}
	return c
}

func (r *sessionRig) mustClaim(member, gen string) *ClaimedTurn {
	r.Helper()
	c := r.claim(member, gen)
	if c == nil {
		r.Fatalf("no turn for %s", member)
	}
	return c
}

func (r *sessionRig) end(c *ClaimedTurn, state team.TurnState) EndedTurn {
	r.Helper()
	e, err := r.EndTurn(r.ctx, TurnEnd{Ref: c.Job.Ref(), State: state})
	if err != nil {
		r.Fatal(err)
	}
	return e
}

// texts are the contents of a transcript.
func (r *sessionRig) texts(session string) []string {
	r.Helper()
	list, err := r.Entries(r.ctx, session, 0, 0)
	if err != nil {
		r.Fatal(err)
	}
	out := make([]string, len(list))
	for i, e := range list {
		out[i] = e.Content
		if e.Seq != int64(i+1) {
			r.Errorf("entry %d of %s has number %d", i+1, session, e.Seq)
		}
	}
	return out
}

func (r *sessionRig) wantTexts(session string, want ...string) {
	r.Helper()
	if got := r.texts(session); strings.Join(got, "|") != strings.Join(want, "|") {
		r.Errorf("transcript %q, want %q", got, want)
	}
}

func (r *sessionRig) refused(err error, code team.Code, reason string) {
	r.Helper()
	if team.CodeOf(err) != code || reason != "" && team.ReasonOf(err) != reason {
		r.Errorf("%v (%s, %s), want %s %s", err, team.CodeOf(err), team.ReasonOf(err), code, reason)
	}
}

// A message is accepted with the entry that it becomes, and is in the transcript once.
func TestTakeIn(t *testing.T) {
	t.Parallel()
	r := newSessionRig(t)
	m, _, err := r.Post(r.ctx, NewMessage{From: team.LeadName, To: "dev", Text: "hello", Kind: team.KindInfo})
	if err != nil {
		t.Fatal(err)
	}
	in := TakeIn{Session: devKey, Inputs: []Input{{NewEntry: NewEntry{Kind: EntryUser, Content: "hello", Source: "message:" + m.ID}, Message: m.ID, Recipient: "dev"}}}
	for i := range 2 {
		out, err := r.TakeIn(r.ctx, in)
		if err != nil || len(out.Entries) != 1-i || out.Backlogged {
			t.Fatalf("%d: %+v, %v", i, out, err)
		}
	}
	r.wantTexts(devKey, "hello")
	d, err := r.Delivery(r.ctx, m.ID, "dev")
	if err != nil || d.State != team.Accepted || d.Evidence != "entry 1 of the transcript" {
		t.Errorf("%+v, %v", d, err)
	}
	if jobs, err := r.TurnJobs(r.ctx, JobFilter{Session: devKey}); err != nil || len(jobs) != 1 || jobs[0].Lane != team.LaneTeammate {
		t.Errorf("%+v, %v", jobs, err)
	}
	// What comes before the turn begins is part of it.
	if out := r.says(devKey, "and this"); out.Job != 1 {
		t.Errorf("%+v", out)
	}
	c := r.mustClaim(devKey, "g1")
	if c.Job.Attempt != 1 || c.Job.State != team.TurnRunning || r.claim(devKey, "g1") != nil {
		t.Errorf("%+v", c)
	}
	// The running turn takes in what it is given; what others bring waits.
	ref := c.Job.Ref()
	if out, err := r.TakeIn(r.ctx, TakeIn{Session: devKey, Turn: &ref, Inputs: []Input{{NewEntry: NewEntry{Kind: EntryUser, Content: "at a boundary"}}}}); err != nil || len(out.Entries) != 1 {
		t.Errorf("%+v, %v", out, err)
	}
	if out := r.says(devKey, "later"); !out.Backlogged {
		t.Errorf("%+v", out)
	}
	r.wantTexts(devKey, "hello", "and this", "at a boundary")
	if e := r.end(c, team.TurnDone); e.Next == 0 {
		t.Error("no turn follows for the backlog")
	}
	c = r.mustClaim(devKey, "g1")
	if c.Job.Cause != team.CauseBacklog || len(c.Entries) != 1 {
		t.Errorf("%+v", c)
	}
	r.wantTexts(devKey, "hello", "and this", "at a boundary", "[Backlog]\nlater")
	if e := r.end(c, team.TurnDone); e.Next != 0 || r.claim(devKey, "g1") != nil {
		t.Errorf("a turn follows without anything to do: %+v", e)
	}
}

// Mail that waited in a backlog is accepted with the entry that drains it.
func TestBacklogIsAcceptedWhenDrained(t *testing.T) {
	t.Parallel()
	r := newSessionRig(t)
	r.says(devKey, "work")
	c := r.mustClaim(devKey, "g1")
	m, _, err := r.Post(r.ctx, NewMessage{From: team.LeadName, To: "dev", Text: "news", Kind: team.KindInfo})
	if err != nil {
		t.Fatal(err)
	}
	in := TakeIn{Session: devKey, Inputs: []Input{{NewEntry: NewEntry{Kind: EntryUser, Content: "news", Source: "message:" + m.ID}, Message: m.ID, Recipient: "dev"}}}
	for range 2 {
		if out, err := r.TakeIn(r.ctx, in); err != nil || !out.Backlogged {
			t.Fatalf("%+v, %v", out, err)
		}
	}
	if d, _ := r.Delivery(r.ctx, m.ID, "dev"); d.State == team.Accepted {
		t.Error("accepted before it is in the transcript")
	}
	r.end(c, team.TurnDone)
	r.mustClaim(devKey, "g1")
	r.wantTexts(devKey, "work", "[Backlog]\nnews")
	if d, _ := r.Delivery(r.ctx, m.ID, "dev"); d.State != team.Accepted || d.Evidence != "entry 2 of the transcript" {
		t.Errorf("%+v", d)
	}
	if _, err := r.TakeIn(r.ctx, in); err != nil { // its answer was lost
		t.Fatal(err)
	}
	if left, err := r.Backlog(r.ctx, devKey); err != nil || len(left) != 0 {
		t.Errorf("a message that is in the transcript waits again: %+v, %v", left, err)
	}
}

// The backlog refuses what does not fit, and loses nothing that is in it.
func TestBacklogFull(t *testing.T) {
	t.Parallel()
	r := newSessionRig(t)
	r.says(devKey, "work")
	c := r.mustClaim(devKey, "g1")
	for i := range MaxBacklog {
		r.says(devKey, fmt.Sprint("m", i))
	}
	_, err := r.TakeIn(r.ctx, TakeIn{Session: devKey, Inputs: []Input{{NewEntry: NewEntry{Kind: EntryUser, Content: "one more"}}}})
	r.refused(err, team.CodeLimit, team.ReasonBacklogFull)
	_, err = r.SteerTurn(r.ctx, TurnSteer{Ref: c.Job.Ref(), Resume: BacklogItem{Text: "resume: work"}, Inputs: []Input{{NewEntry: NewEntry{Kind: EntryUser, Content: "now"}}}})
	r.refused(err, team.CodeLimit, team.ReasonBacklogFull)
	if j, err := r.TurnJob(r.ctx, c.Job.ID); err != nil || j.State != team.TurnRunning {
		t.Errorf("a refused steer changed the turn: %+v, %v", j, err)
	}
	r.end(c, team.TurnDone)
	r.mustClaim(devKey, "g1")
	if got := r.texts(devKey); len(got) != 2 || strings.Count(got[1], "\n") != MaxBacklog {
		t.Errorf("%q", got)
	}
}

// After a kill the calls that may have happened are told as such, the others are asked
// for again, and what was recorded is not done twice.
func TestRecoverTurn(t *testing.T) {
	t.Parallel()
	r := newSessionRig(t)
	r.says(devKey, "go")
	c := r.mustClaim(devKey, "g1")
	answer := TurnAnswer{Ref: c.Job.Ref(), Entry: NewEntry{Kind: EntryAssistant, Content: "calls", Raw: `{"a" : "<b>" }`},
		Calls: []NewCall{{CallID: "r", Name: "read", Input: "{}", ReadOnly: true}, {CallID: "done", Name: "shell", Input: "not json"}, {CallID: "begun", Name: "shell", Input: "{}"}, {CallID: "asked", Name: "shell", Input: "{}"}}}
	if _, err := r.Answered(r.ctx, answer); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"r", "done", "begun"} {
		if begun, err := r.BeginCall(r.ctx, c.Job.Ref(), id); err != nil || !begun {
			t.Fatalf("%v, %v", begun, err)
		}
		if begun, err := r.BeginCall(r.ctx, c.Job.Ref(), id); err != nil || begun {
			t.Fatalf("begun twice: %v, %v", begun, err)
		}
	}
	if _, err := r.EndCalls(r.ctx, TurnResults{Ref: c.Job.Ref(), Results: []CallResult{{CallID: "done", Entry: NewEntry{Content: "did it"}}}}); err != nil {
		t.Fatal(err)
	}
	if jobs, err := r.RecoverTurns(r.ctx, devKey, "g1"); err != nil || len(jobs) != 0 {
		t.Errorf("its own turns: %+v, %v", jobs, err)
	}
	jobs, err := r.RecoverTurns(r.ctx, devKey, "g2")
	if err != nil || len(jobs) != 1 || jobs[0].State != team.TurnQueued || jobs[0].Crashes != 1 {
		t.Fatalf("%+v, %v", jobs, err)
	}
	r.wantTexts(devKey, "go", "calls", "did it", ResultLost)
	if e, err := r.Entries(r.ctx, devKey, 1, 1); err != nil || e[0].Raw != `{"a" : "<b>" }` {
		t.Errorf("the provider's bytes are %q, %v", e[0].Raw, err)
	}
	open, err := r.OpenCalls(r.ctx, devKey)
	if err != nil || len(open) != 2 || open[0].CallID != "r" || open[1].CallID != "asked" || open[1].Input != "{}" {
		t.Errorf("%+v, %v", open, err)
	}
	_, err = r.EndCalls(r.ctx, TurnResults{Ref: c.Job.Ref(), Results: []CallResult{{CallID: "r", Entry: NewEntry{Content: "late"}}}})
	r.refused(err, team.CodeConflict, team.ReasonStaleTurn)
	c = r.mustClaim(devKey, "g2")
	if c.Job.Attempt != 2 {
		t.Errorf("%+v", c.Job)
	}
	_, err = r.Answered(r.ctx, TurnAnswer{Ref: c.Job.Ref(), Entry: NewEntry{Kind: EntryAssistant, Content: "too soon"}})
	r.refused(err, team.CodeConflict, team.ReasonOpenCalls)
	for _, id := range []string{"r", "asked"} {
		if _, err := r.EndCalls(r.ctx, TurnResults{Ref: c.Job.Ref(), Results: []CallResult{{CallID: id, Entry: NewEntry{Content: "result of " + id}}}}); err != nil {
			t.Fatal(err)
		}
	}
	r.wantTexts(devKey, "go", "calls", "did it", ResultLost, "result of r", "result of asked")
}

// Three ends in a row without a new entry are the turn's end.
func TestCrashingTurn(t *testing.T) {
	t.Parallel()
	r := newSessionRig(t)
	r.says(devKey, "go")
	crash := func(gen int) TurnJob {
		t.Helper()
		jobs, err := r.RecoverTurns(r.ctx, devKey, fmt.Sprint("g", gen))
		if err != nil || len(jobs) != 1 {
			t.Fatalf("%+v, %v", jobs, err)
		}
		return jobs[0]
	}
	for gen := 1; gen < 3; gen++ {
		r.mustClaim(devKey, fmt.Sprint("g", gen))
		if j := crash(gen + 1); j.Crashes != gen || j.State != team.TurnQueued {
			t.Errorf("%+v", j)
		}
	}
	c := r.mustClaim(devKey, "g3")
	if _, err := r.Answered(r.ctx, TurnAnswer{Ref: c.Job.Ref(), Entry: NewEntry{Kind: EntryAssistant, Content: "got on"}}); err != nil {
		t.Fatal(err)
	}
	if j := crash(4); j.Crashes != 1 || j.State != team.TurnQueued { // it advanced
		t.Errorf("%+v", j)
	}
	for gen := 4; gen < 6; gen++ {
		r.mustClaim(devKey, fmt.Sprint("g", gen))
		if j := crash(gen + 1); (j.State == team.TurnFailed) != (gen == 5) {
			t.Errorf("%+v", j)
		}
	}
	if r.claim(devKey, "g6") != nil {
		t.Error("a turn that failed runs again")
	}
}

// The owner's death queues its turns with its tasks; so does a lease that expired.
func TestTurnsOfDeadOwners(t *testing.T) {
	t.Parallel()
	r := newSessionRig(t)
	r.says(devKey, "go")
	r.mustClaim(devKey, "g1")
	if _, err := r.ReleaseOwner(r.ctx, devKey, "it died"); err != nil {
		t.Fatal(err)
	}
	c := r.mustClaim(devKey, "g2")
	if c.Job.Attempt != 2 {
		t.Errorf("%+v", c.Job)
	}
	if n, err := r.RenewTurns(r.ctx, devKey, "g2", time.Hour); err != nil || n != 1 {
		t.Errorf("renewed %d, %v", n, err)
	}
	if n, err := r.RenewTurns(r.ctx, devKey, "g1", time.Hour); err != nil || n != 0 {
		t.Errorf("a dead generation renewed %d, %v", n, err)
	}
}

// A living process keeps its turns, whatever the clock did to their leases: nobody else works on
// them, and it renews them soon. The turns of every other process come back.
func TestTurnsOfLivingOwners(t *testing.T) {
	t.Parallel()
	const child = "agent:scout:subagent:0"
	for name, c := range map[string]struct {
		observed []team.Observed
		gen      string // of the member's row
		session  string
		stays    bool
	}{
		"running":              {[]team.Observed{team.Starting, team.Running}, "g1", devKey, true},
		"starting":             {[]team.Observed{team.Starting}, "g1", devKey, true},
		"a child's":            {[]team.Observed{team.Starting, team.Running}, "g1", child, true},
		"started again":        {[]team.Observed{team.Starting, team.Running}, "g2", devKey, false},
		"a child's, again":     {[]team.Observed{team.Starting, team.Running}, "g2", child, false},
		"not supervised":       {nil, "", devKey, false},
		"exited":               {[]team.Observed{team.Starting, team.Running, team.Exited}, "g1", devKey, false},
		"waits for its start":  {[]team.Observed{team.Starting, team.Running, team.Exited, team.Backoff}, "g1", devKey, false},
		"the lead's, no child": {[]team.Observed{team.Starting, team.Running}, "g1", leadKey, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newSessionRig(t)
			clock := &clock{time.UnixMilli(1_000_000_000)}
			r.now = clock.now
			owner := devKey
			if c.session == leadKey {
				owner = leadKey
			}
			for i, o := range c.observed {
				p := MemberPatch{SessionKey: owner, Observed: &o}
				if i == 0 {
					p.Generation = &c.gen
				}
				must[Member](t)(r.UpdateMember(r.ctx, p))
			}
			if c.session == child {
				r.open(NewSession{Key: child, Owner: devKey})
			}
			r.says(c.session, "go")
			turn := r.mustClaim(owner, "g1").Job
			clock.advance(Lease - time.Millisecond)
			must[[]string](t)(r.ExpireLeases(r.ctx))
			if j := must[TurnJob](t)(r.TurnJob(r.ctx, turn.ID)); j.State != team.TurnRunning {
				t.Fatalf("recovered before its lease has expired: %+v", j)
			}
			clock.advance(8 * time.Hour) // the machine was suspended
			must[[]string](t)(r.ExpireLeases(r.ctx))
			must[*Task](t)(r.Claim(r.ctx, ClaimIn{Owner: "foreign"})) // expires leases, too
			if j := must[TurnJob](t)(r.TurnJob(r.ctx, turn.ID)); (j.State == team.TurnRunning) != c.stays || j.Crashes != 0 == c.stays {
				t.Errorf("%s, %d crashes", j.State, j.Crashes)
			}
			if !c.stays {
				return
			}
			if n := must[int64](t)(r.RenewTurns(r.ctx, devKey, "g1", Lease)); n != 1 {
				t.Errorf("renewed %d", n)
			}
			must[[]string](t)(r.ReleaseOwner(r.ctx, devKey, "it died"))
			if j := must[TurnJob](t)(r.TurnJob(r.ctx, turn.ID)); j.State != team.TurnQueued {
				t.Errorf("of a dead process: %+v", j)
			}
		})
	}
}

// Lanes bound the turns of the whole team; one that waits leaves its place to others.
func TestLanes(t *testing.T) {
	t.Parallel()
	r := newSessionRig(t)
	if err := r.Set(r.ctx, SettingLane+string(team.LaneSubagent), 1); err != nil {
		t.Fatal(err)
	}
	var kids []string
	for i := range 2 {
		key := fmt.Sprintf("agent:scout:subagent:%d", i)
		r.open(NewSession{Key: key, Owner: devKey})
		r.says(key, "look")
		kids = append(kids, key)
	}
	a := r.mustClaim(devKey, "g1")
	if a.Job.Session != kids[0] || r.claim(devKey, "g1") != nil {
		t.Fatalf("%+v", a)
	}
	if err := r.YieldTurn(r.ctx, a.Job.Ref(), "waits for an answer"); err != nil {
		t.Fatal(err)
	}
	b := r.mustClaim(devKey, "g1")
	if ok, err := r.ResumeTurn(r.ctx, a.Job.Ref()); err != nil || ok {
		t.Errorf("resumed in a full lane: %v, %v", ok, err)
	}
	r.end(b, team.TurnDone)
	if ok, err := r.ResumeTurn(r.ctx, a.Job.Ref()); err != nil || !ok {
		t.Errorf("not resumed in a free lane: %v, %v", ok, err)
	}
}

// Children are bounded in depth and number, and are closed with their parent.
func TestChildSessions(t *testing.T) {
	t.Parallel()
	r := newSessionRig(t)
	for i := range DefaultChildren {
		s := r.open(NewSession{Key: fmt.Sprintf("agent:scout:subagent:%d", i), Owner: devKey, Label: "look"})
		if s.Depth != 1 || s.Member != devKey || s.Channel != team.ChannelInternal || s.Deliver {
			t.Errorf("%+v", s)
		}
	}
	_, err := r.OpenSession(r.ctx, NewSession{Key: "agent:scout:subagent:x", Owner: devKey})
	r.refused(err, team.CodeLimit, team.ReasonTooManyChildren)
	_, err = r.OpenSession(r.ctx, NewSession{Key: "agent:scout:subagent:y", Owner: "agent:scout:subagent:0"})
	r.refused(err, team.CodeLimit, team.ReasonTooDeep)
	if err.Error() != "session_spawn is not allowed at this depth (current depth: 1, max: 1)" {
		t.Error(err)
	}
	r.says("agent:scout:subagent:0", "look")
	c := r.mustClaim(devKey, "g1")
	r.says("agent:scout:subagent:1", "look")
	if err := r.CloseSession(r.ctx, devKey, "done"); err != nil {
		t.Fatal(err)
	}
	if list, err := r.Announces(r.ctx, devKey); err != nil || len(list) != 0 {
		t.Errorf("a closed parent is told: %+v, %v", list, err)
	}
	if open, err := r.Sessions(r.ctx, SessionFilter{Member: devKey}); err != nil || len(open) != 0 {
		t.Errorf("%+v, %v", open, err)
	}
	if j, err := r.TurnJob(r.ctx, c.Job.ID); err != nil || j.State != team.TurnRunning || j.Cancel != "done" {
		t.Errorf("%+v, %v", j, err)
	}
	if jobs, err := r.TurnJobs(r.ctx, JobFilter{Session: "agent:scout:subagent:1"}); err != nil || jobs[0].State != team.TurnCancelled {
		t.Errorf("%+v, %v", jobs, err)
	}
	_, err = r.TakeIn(r.ctx, TakeIn{Session: devKey, Inputs: []Input{{NewEntry: NewEntry{Kind: EntryUser, Content: "x"}}}})
	r.refused(err, team.CodeConflict, team.ReasonSessionClosed)
}

func TestTranscriptIsAppendOnly(t *testing.T) {
	t.Parallel()
	r := newSessionRig(t)
	r.says(devKey, "a")
	err := r.db.write(r.ctx, "test", func() error {
		for _, q := range []string{"UPDATE session_entries SET content = 'b'", "DELETE FROM session_entries"} {
			if _, err := r.db.conn.ExecContext(r.ctx, q); err == nil || !strings.Contains(err.Error(), "append-only") {
				t.Errorf("%s: %v", q, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	r.wantTexts(devKey, "a")
}

func TestWakes(t *testing.T) {
	t.Parallel()
	r := newSessionRig(t)
	if _, err := r.QueueTurn(r.ctx, NewTurn{Session: devKey, Input: "look again", Lane: team.LaneCron, NotBefore: time.Now().Add(time.Hour).UnixMilli()}); err != nil {
		t.Fatal(err)
	}
	if c := r.claim(devKey, "g1"); c != nil {
		t.Errorf("woken early: %+v", c)
	}
	if _, err := r.QueueTurn(r.ctx, NewTurn{Session: devKey, Input: "now", Lane: team.LaneCron}); err != nil {
		t.Fatal(err)
	}
	if c := r.mustClaim(devKey, "g1"); len(c.Entries) != 1 || c.Entries[0].Content != "now" || c.Job.Lane != team.LaneCron {
		t.Errorf("%+v", c)
	}
}

func TestSpecs(t *testing.T) {
	t.Parallel()
	r := newSessionRig(t)
	put := func(id, name string, fresh bool) error {
		return r.PutSpec(r.ctx, PutSpecIn{Spec: team.AgentSpec{ID: id, Name: name}, New: fresh})
	}
	if err := put("default", "Default", true); err != nil {
		t.Fatal(err)
	}
	r.refused(put("default", "Other", true), team.CodeConflict, team.ReasonSpecTaken)
	r.refused(put("other", "DEFAULT", false), team.CodeConflict, team.ReasonSpecTaken)
	r.refused(put("Other", "x", false), team.CodeInvalid, "bad_spec")
	if err := put("default", "Changed", false); err != nil {
		t.Fatal(err)
	}
	if s, err := r.Spec(r.ctx, "changed"); err != nil || s.ID != "default" || s.CreatedAt == 0 {
		t.Errorf("%+v, %v", s, err)
	}
	r.refused(r.DeleteSpec(r.ctx, "default"), team.CodeConflict, team.ReasonSpecInUse)
	if err := put("spare", "Spare", true); err != nil {
		t.Fatal(err)
	}
	if err := r.DeleteSpec(r.ctx, "spare"); err != nil {
		t.Fatal(err)
	}
	r.refused(r.DeleteSpec(r.ctx, "spare"), team.CodeNotFound, team.ReasonSpecNotFound)
}

// A wake that is not due yet does not keep back what waits.
func TestBacklogWaitsForNoWake(t *testing.T) {
	t.Parallel()
	r := newSessionRig(t)
	r.says(devKey, "one")
	c := r.mustClaim(devKey, "g1")
	later := time.Now().Add(time.Hour).UnixMilli()
	if _, err := r.QueueTurn(r.ctx, NewTurn{Session: devKey, Input: "wake", NotBefore: later}); err != nil {
		t.Fatal(err)
	}
	if in := r.says(devKey, "two"); !in.Backlogged {
		t.Fatalf("%+v", in)
	}
	if e := r.end(c, team.TurnDone); e.Next == 0 {
		t.Error("no turn for the backlog")
	}
	r.mustClaim(devKey, "g1")
	r.wantTexts(devKey, "one", "[Backlog]\ntwo")
}

// Usage is the sum over turns, of all sessions of a member; its cost is known if that of
// every turn is.
func TestTurnUsage(t *testing.T) {
	t.Parallel()
	r := newSessionRig(t)
	r.open(NewSession{Key: "agent:scout:subagent:1", Owner: devKey})
	turn := func(session, usage string) {
		t.Helper()
		r.says(session, "go")
		c := r.mustClaim(devKey, "g1")
		if _, err := r.EndTurn(r.ctx, TurnEnd{Ref: c.Job.Ref(), State: team.TurnDone, Usage: json.RawMessage(usage)}); err != nil {
			t.Fatal(err)
		}
	}
	want := func(w team.Usage) {
		t.Helper()
		got, err := r.TurnUsage(r.ctx)
		if err != nil || len(got) != 1 || got[devKey] != w {
			t.Errorf("%+v, %v, want %+v", got, err, w)
		}
	}
	turn(devKey, `{"inputTokens":10,"outputTokens":2,"cachedTokens":4,"costUsd":0.5,"costKnown":true}`)
	turn("agent:scout:subagent:1", `{"inputTokens":1,"reasoningTokens":7,"cacheWriteTokens":3,"costKnown":true}`)
	want(team.Usage{InputTokens: 11, OutputTokens: 2, CachedTokens: 4, CacheWriteTokens: 3, ReasoningTokens: 7, CostUSD: 0.5, CostKnown: true, Turns: 2})
	turn(devKey, `{"inputTokens":5}`)
	want(team.Usage{InputTokens: 16, OutputTokens: 2, CachedTokens: 4, CacheWriteTokens: 3, ReasoningTokens: 7, CostUSD: 0.5, Turns: 3})
}

// TestUsageOfKilledTurns: what a killed process has asked its model is not known, and the cost of
// its turn is not known either; a process that is killed amid a call had its answer.
func TestUsageOfKilledTurns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		calls []NewCall
		want  team.Usage
	}{
		"in a request": {nil, team.Usage{InputTokens: 10, CostUSD: 0.5, Turns: 1, Unknown: 1}},
		"in a call":    {[]NewCall{{CallID: "c", Name: "shell", Input: "{}"}}, team.Usage{InputTokens: 10, CostUSD: 0.5, CostKnown: true, Turns: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newSessionRig(t)
			r.says(devKey, "go")
			j := r.mustClaim(devKey, "g1").Job
			usage := json.RawMessage(`{"inputTokens":10,"costUsd":0.5,"costKnown":true}`)
			if _, err := r.Answered(r.ctx, TurnAnswer{Ref: j.Ref(), Entry: NewEntry{Kind: EntryAssistant}, Calls: c.calls, Usage: usage}); err != nil {
				t.Fatal(err)
			}
			if _, err := r.RecoverTurns(r.ctx, devKey, "g2"); err != nil {
				t.Fatal(err)
			}
			j = r.mustClaim(devKey, "g2").Job
			if _, err := r.EndTurn(r.ctx, TurnEnd{Ref: j.Ref(), State: team.TurnDone}); err != nil {
				t.Fatal(err)
			}
			if got, err := r.TurnUsage(r.ctx); err != nil || got[devKey] != c.want {
				t.Errorf("%+v, %v, want %+v", got[devKey], err, c.want)
			}
		})
	}
}

// TestThreePrimitives: of sessions, specs and turns everything that is stored hangs on one
// of the three; there is no queue or model of its own for children.
func TestThreePrimitives(t *testing.T) {
	t.Parallel()
	r := newSessionRig(t)
	type table struct{ name, sql string }
	list, err := read(r.ctx, r.db, "list tables", func(rows *sql.Rows) (v table, err error) {
		return v, rows.Scan(&v.name, &v.sql)
	}, `SELECT name, sql FROM sqlite_schema WHERE type = 'table'`)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, v := range list {
		if slices.ContainsFunc([]string{"session", "spec", "turn", "job", "subagent", "call"}, func(word string) bool { return strings.Contains(v.name, word) }) ||
			strings.Contains(v.sql, "REFERENCES sessions") || strings.Contains(v.sql, "REFERENCES turn_jobs") {
			found = append(found, v.name)
		}
	}
	slices.Sort(found)
	want := []string{"agent_specs", "session_announces", "session_backlog", "session_entries", "sessions", "tool_calls", "turn_jobs"}
	if !slices.Equal(found, want) {
		t.Errorf("tables %v, want %v", found, want)
	}
}
