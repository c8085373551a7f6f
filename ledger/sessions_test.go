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
		return next
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
	if len(c.Entries) != 1 || c.Entries[0].Content != "[Backlog]\nresume: build it" {
		t.Errorf("%+v", c)
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

// announced is the newest announce to a session.
func (r *sessionRig) announced(parent string) (a team.Announce) {
	r.Helper()
	list, err := r.Announces(r.ctx, parent)
	if err == nil && len(list) > 0 {
		err = json.Unmarshal(list[len(list)-1].Meta, &a)
	}
	if err != nil || len(list) == 0 {
		r.Fatalf("%d announces to %s, %v", len(list), parent, err)
	}
	return a
}

// The end of a child's turn is told once, shown to one turn, and waits where the parent is
// busy or its backlog full.
func TestAnnounce(t *testing.T) {
	t.Parallel()
	r := newSessionRig(t)
	kid := "agent:scout:subagent:1"
	if err := r.PutSpec(r.ctx, PutSpecIn{Spec: team.AgentSpec{ID: "scout", Name: "The Scout"}}); err != nil {
		t.Fatal(err)
	}
	r.open(NewSession{Key: kid, Owner: devKey})
	const finish = "[@agent:The Scout#scout] finish"
	run := func(state team.TurnState) EndedTurn {
		t.Helper()
		r.says(kid, "look")
		c := r.mustClaim(devKey, "g1")
		if c.Job.Session != kid {
			t.Fatalf("%+v", c)
		}
		e := r.end(c, state)
		if e.Dropped != "" {
			t.Fatalf("%+v", e)
		}
		return e
	}
	run(team.TurnDone)
	r.wantTexts(devKey, finish)
	c := r.mustClaim(devKey, "g1")
	if c.Job.Lane != team.LaneAnnounce || c.Job.Hop != 1 || len(c.Announces) != 1 || c.Announces[0].Job != c.Job.ID {
		t.Fatalf("%+v", c)
	}
	if entries, err := r.Entries(r.ctx, devKey, 0, 0); err != nil || entries[0].Channel != team.ChannelInternal || string(entries[0].Meta) != string(c.Announces[0].Meta) {
		t.Errorf("%+v, %v", entries, err)
	}
	run(team.TurnFailed) // while the parent is busy
	run(team.TurnDone)
	if e := r.end(c, team.TurnDone); e.Next == 0 {
		t.Error("no turn for the announces")
	}
	c = r.mustClaim(devKey, "g1")
	if len(c.Announces) != 2 || len(c.Entries) != 1 || strings.Count(c.Entries[0].Content, finish) != 2 || c.Job.Hop != 1 {
		t.Errorf("%+v", c)
	}
	for i := range MaxBacklog {
		r.says(devKey, fmt.Sprint(i))
	}
	run(team.TurnDone)
	r.end(c, team.TurnDone)
	c = r.mustClaim(devKey, "g1")
	if len(c.Announces) != 1 || !strings.HasSuffix(c.Entries[0].Content, "15\n"+finish) {
		t.Errorf("%+v", c)
	}
	r.end(c, team.TurnDone)
	if c := r.claim(devKey, "g1"); c != nil {
		t.Errorf("one more turn: %+v", c)
	}
}

// Every end of a child's turn is told as the runtime saw it, with what is known of it.
func TestAnnouncedEnds(t *testing.T) {
	t.Parallel()
	r := newSessionRig(t)
	kid := r.open(NewSession{Key: "agent:scout:subagent:1", Owner: devKey, Label: "look", Routing: json.RawMessage(`{"tags":["a","b"]}`)})
	gen := 1
	begin := func(text string) *ClaimedTurn {
		t.Helper()
		r.says(kid.Key, text)
		for {
			c := r.mustClaim(devKey, fmt.Sprint("g", gen))
			if c.Job.Session == kid.Key {
				return c
			}
			r.end(c, team.TurnDone)
		}
	}
	call := func(c *ClaimedTurn, content, meta string) {
		t.Helper()
		id := fmt.Sprint("c", c.Job.ID, content)
		_, err := r.Answered(r.ctx, TurnAnswer{Ref: c.Job.Ref(), Entry: NewEntry{Kind: EntryAssistant}, Calls: []NewCall{{CallID: id, Name: "edit", Input: "{}", ReadOnly: true}}})
		if err == nil {
			_, err = r.EndCalls(r.ctx, TurnResults{Ref: c.Job.Ref(), Results: []CallResult{{CallID: id, Entry: NewEntry{Content: content, Meta: json.RawMessage(meta)}}}})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	end := func(e TurnEnd) {
		t.Helper()
		if _, err := r.EndTurn(r.ctx, e); err != nil {
			t.Fatal(err)
		}
	}

	c := begin("find it")
	call(c, "wrote it", `{"paths":["a.go","b.go"]}`)
	call(c, "failed", `{"failed":true,"paths":["a.go"]}`)
	end(TurnEnd{Ref: c.Job.Ref(), State: team.TurnDone, Usage: json.RawMessage(`{"inputTokens":10,"outputTokens":2}`), Result: json.RawMessage(`{"commits":["abc"]}`),
		Entries: []NewEntry{{Kind: EntryAssistant, Content: strings.Repeat("word ", 300)}}})
	a := r.announced(devKey)
	if a.Task.Label != "look" || a.Task.Prompt != "find it" || !slices.Equal(a.Task.Tags, []string{"a", "b"}) || a.SourceRunID != fmt.Sprint(c.Job.ID) ||
		a.IdempotencyKey != AnnounceKey(devKey, kid.Key, c.Job.ID) || a.SourceAgentID != "scout" || a.SourceSessionKey != kid.Key || !a.Internal || a.Hop != 1 {
		t.Errorf("%+v", a)
	}
	want := []team.Artifact{{Kind: team.ArtifactFile, Path: "a.go"}, {Kind: team.ArtifactFile, Path: "b.go"}, {Kind: team.ArtifactCommit, SHA: "abc"}}
	if a.Result.Status != team.AnnouncedOK || len([]rune(a.Result.Summary)) > team.MaxSummary || !strings.HasSuffix(a.Result.Summary, "word…") || !slices.Equal(a.Result.Artifacts, want) {
		t.Errorf("%+v", a.Result)
	}
	if a.Stats.Tokens == nil || *a.Stats.Tokens != 12 || a.Stats.CostUSD != nil || a.Stats.DurationMS == nil {
		t.Errorf("%+v", a.Stats)
	}

	c = begin("and again") // without a word at the end
	call(c, "found 3 of them", "")
	call(c, "(no output)", "")
	end(TurnEnd{Ref: c.Job.Ref(), State: team.TurnDone, Entries: []NewEntry{{Kind: EntryAssistant}}})
	if a := r.announced(devKey); a.Result.Summary != "found 3 of them" || a.Stats.Tokens != nil || a.Stats.CostUSD != nil || len(a.Result.Artifacts) != 0 {
		t.Errorf("%+v", a)
	}

	c = begin("fail")
	end(TurnEnd{Ref: c.Job.Ref(), State: team.TurnFailed, Reason: "loop: again", Entries: []NewEntry{{Kind: EntryAssistant, Content: "as I said"}}})
	if a := r.announced(devKey); a.Result.Status != team.AnnouncedError || a.Result.Summary != "failed: loop: again\nas I said" {
		t.Errorf("%+v", a.Result)
	}

	for why, status := range map[string]team.AnnounceStatus{"not needed": team.AnnouncedError, team.TurnTimeout: team.AnnouncedTimeout} {
		c = begin("too slow")
		if err := r.CancelTurn(r.ctx, c.Job.ID, why); err != nil {
			t.Fatal(err)
		}
		end(TurnEnd{Ref: c.Job.Ref(), State: team.TurnCancelled, Reason: "interrupted"})
		if a := r.announced(devKey); a.Result.Status != status || !strings.Contains(a.Result.Summary, why) {
			t.Errorf("%s: %+v", why, a.Result)
		}
	}

	r.says(kid.Key, "not yet begun") // and never will
	jobs, err := r.TurnJobs(r.ctx, JobFilter{Session: kid.Key, Open: true})
	if err != nil || len(jobs) != 1 {
		t.Fatalf("%+v, %v", jobs, err)
	}
	if err := r.CancelTurn(r.ctx, jobs[0].ID, "not needed"); err != nil {
		t.Fatal(err)
	}
	if a := r.announced(devKey); a.Result.Summary != "cancelled: not needed" || a.Stats != (team.AnnouncedStats{}) || a.Task.Prompt != "not yet begun" {
		t.Errorf("%+v", a)
	}

	c = begin("crash")
	for range maxCrashes {
		gen++
		if _, err := r.RecoverTurns(r.ctx, devKey, fmt.Sprint("g", gen)); err != nil {
			t.Fatal(err)
		}
		for j := r.claim(devKey, fmt.Sprint("g", gen)); j != nil && j.Job.Session != kid.Key; j = r.claim(devKey, fmt.Sprint("g", gen)) {
			r.end(j, team.TurnDone)
		}
	}
	if a := r.announced(devKey); a.SourceRunID != fmt.Sprint(c.Job.ID) || a.Result.Status != team.AnnouncedUnknown || a.Result.Summary != "failed: crashes" || a.Stats.Tokens != nil {
		t.Errorf("%+v", a)
	}
}

// A chain of results that is too long ends: the lead is told, and a person sees it.
func TestAnnounceHops(t *testing.T) {
	t.Parallel()
	r := newSessionRig(t)
	kid := r.open(NewSession{Key: "agent:scout:subagent:1", Owner: devKey})
	_, err := r.TakeIn(r.ctx, TakeIn{Session: kid.Key, Hop: defaultMaxHops, Inputs: []Input{{NewEntry: NewEntry{Kind: EntryUser, Content: "x"}}}})
	if err != nil {
		t.Fatal(err)
	}
	if e := r.end(r.mustClaim(devKey, "g1"), team.TurnDone); !strings.Contains(e.Dropped, "injections in a row") {
		t.Errorf("%+v", e)
	}
	if c := r.claim(devKey, "g1"); c != nil {
		t.Errorf("a turn for what was dropped: %+v", c)
	}
	mail, err := r.Messages(r.ctx, MessageFilter{Recipient: team.LeadName})
	if err != nil || len(mail) != 1 || mail[0].From != "dev" || mail[0].Kind != team.KindError || !strings.Contains(mail[0].Text, kid.Key) {
		t.Errorf("%+v, %v", mail, err)
	}
	events, err := r.Events(r.ctx, 0, 0, EventFilter{What: team.EventSessionDropped})
	if err != nil || len(events) != 1 || events[0].ID != devKey {
		t.Errorf("%+v, %v", events, err)
	}
}

// What a call has returned of a child begins no turn; the same key is taken in once, and
// answers what became of the first.
func TestCollectedAndRepeated(t *testing.T) {
	t.Parallel()
	r := newSessionRig(t)
	kid := r.open(NewSession{Key: "agent:scout:subagent:1", Owner: devKey})
	r.says(devKey, "ask a child")
	parent := r.mustClaim(devKey, "g1")
	in := TakeIn{Session: kid.Key, Hop: 1, Inputs: []Input{{NewEntry: NewEntry{Kind: EntryUser, Content: "look", Source: "inject:1"}}}}
	first, err := r.TakeIn(r.ctx, in)
	if err != nil || first.Job == 0 {
		t.Fatalf("%+v, %v", first, err)
	}
	again := func(when string) {
		t.Helper()
		if got, err := r.TakeIn(r.ctx, in); err != nil || got.Job != first.Job || got.Backlogged || len(got.Entries) != 0 {
			t.Errorf("%s: %+v, %v", when, got, err)
		}
	}
	again("queued")
	c := r.mustClaim(devKey, "g1")
	again("running")
	late := in
	late.Inputs = []Input{{NewEntry: NewEntry{Kind: EntryUser, Content: "and there", Source: "inject:2"}}}
	for range 2 {
		if got, err := r.TakeIn(r.ctx, late); err != nil || !got.Backlogged {
			t.Errorf("%+v, %v", got, err)
		}
	}
	_, err = r.Answered(r.ctx, TurnAnswer{Ref: parent.Job.Ref(), Entry: NewEntry{Kind: EntryAssistant}, Calls: []NewCall{{CallID: "1", Name: "subagent_spawn_oneshot", Input: "{}"}}})
	if err != nil {
		t.Fatal(err)
	}
	r.end(c, team.TurnDone)
	again("done")
	if got, err := r.TakeIn(r.ctx, late); err != nil || !got.Backlogged {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = r.EndCalls(r.ctx, TurnResults{Ref: parent.Job.Ref(), Results: []CallResult{{CallID: "1", Entry: NewEntry{Content: "found"}, Collects: []string{AnnounceKey(devKey, kid.Key, c.Job.ID)}}}})
	if err != nil {
		t.Fatal(err)
	}
	if e := r.end(parent, team.TurnDone); e.Next != 0 {
		t.Error("a turn for what the call has returned")
	}
	c = r.mustClaim(devKey, "g1")
	if c.Job.Session != kid.Key || c.Job.Hop != 1 {
		t.Errorf("%+v", c.Job)
	}
}

// Too long a chain of injections ends, and says so.
func TestHops(t *testing.T) {
	t.Parallel()
	r := newSessionRig(t)
	in := TakeIn{Session: devKey, Hop: defaultMaxHops, Inputs: []Input{{NewEntry: NewEntry{Kind: EntryUser, Content: "x"}}}}
	if _, err := r.TakeIn(r.ctx, in); err != nil {
		t.Fatal(err)
	}
	in.Hop++
	_, err := r.TakeIn(r.ctx, in)
	r.refused(err, team.CodeLimit, team.ReasonHopLimit)
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
