package ledger

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/team"
)

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

	c = begin("interrupted in a request")
	if _, err := r.EndTurn(r.ctx, TurnEnd{Ref: c.Job.Ref(), State: team.TurnCancelled, Reason: "interrupted", Usage: json.RawMessage(`{"inputTokens":7,"unknown":1}`)}); err != nil {
		t.Fatal(err)
	}
	if a := r.announced(devKey); a.SourceRunID != fmt.Sprint(c.Job.ID) || a.Stats.Tokens != nil || a.Stats.CostUSD != nil || a.Stats.DurationMS == nil {
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
