package tool

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// spawned opens a child of the caller's session by the operation.
func (r talkRig) spawned(c Caller, in ChildIn) ledger.Session {
	r.Helper()
	s, err := r.SpawnSession(r.Context(), c, in)
	if err != nil {
		r.Fatal(err)
	}
	return s
}

// TestChildrenOfASession: a child belongs to its parent: it is internal, not delivered, of the same
// member, bounded in number and depth, and closed by its parent.
func TestChildrenOfASession(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	dev := r.session("dev", "default")
	ann := r.session("ann", "default")
	ctx := t.Context()
	if _, err := r.Ledger.UpdateSession(ctx, ledger.SessionPatch{Key: dev.Session, Provider: ptr("script"), Model: ptr("demo")}); err != nil {
		t.Fatal(err)
	}
	s := r.spawned(dev, ChildIn{Agent: "sco", Label: "find\nit", Tags: []string{"a"}, Meta: json.RawMessage(`{"x":1}`)})
	if s.ActiveAgentID != "scout" || s.Owner != dev.Session || s.Member != dev.Session || s.Depth != 1 || s.Label != "find it" ||
		s.Channel != team.ChannelInternal || s.Deliver || s.ModelOverride != "demo" || string(s.Routing) != `{"meta":{"x":1},"tags":["a"]}` {
		t.Errorf("%+v", s)
	}
	kid := dev
	kid.Conversation = s.Key
	_, err := r.SpawnSession(ctx, kid, ChildIn{})
	denied(t, err, team.CodeLimit, "session_depth")
	if err == nil || err.Error() != "session_spawn is not allowed at this depth (current depth: 1, max: 1)" {
		t.Error(err)
	}
	for range ledger.DefaultChildren - 1 {
		r.spawned(dev, ChildIn{})
	}
	_, err = r.SpawnSession(ctx, dev, ChildIn{})
	denied(t, err, team.CodeLimit, "too_many_children")
	if err == nil || err.Error() != "session_spawn has reached max active children for this session (5/5)" {
		t.Error(err)
	}
	_, err = r.SpawnSession(ctx, ann, ChildIn{Parent: dev.Session})
	denied(t, err, team.CodeDenied, "role")
	_, err = r.SpawnSession(ctx, ann, ChildIn{Agent: "nobody"})
	denied(t, err, team.CodeNotFound, "agent_not_found")
	_, err = r.SpawnSession(ctx, Person(), ChildIn{})
	denied(t, err, team.CodeInvalid, "input")
	r.set(SetModels, "script/*")
	if _, err := r.CreateSpec(ctx, Person(), json.RawMessage(`{"name":"dear","defaults":{"model":{"provider":"work","model":"big"}}}`)); err != nil {
		t.Fatal(err)
	}

	asked, err := r.answers(false, func(ctx context.Context) error {
		_, err := r.SpawnSession(ctx, dev, ChildIn{Agent: "dear"})
		return err
	})
	if !asked || !team.IsCode(err, team.CodeDenied) {
		t.Errorf("a model that is not the agents' to choose: asked %v, %v", asked, err)
	}
	list, err := r.Sessions(ctx, dev, false)
	if err != nil || len(list) != 1+ledger.DefaultChildren || list[0].Key != dev.Session || list[1].Depth != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	if list, err := r.Sessions(ctx, ann, false); err != nil || len(list) != 1 || list[0].Member != "ann" {
		t.Errorf("%+v, %v", list, err)
	}
	if list, err := r.Sessions(ctx, Person(), false); err != nil || len(list) != 2+ledger.DefaultChildren {
		t.Errorf("%+v, %v", list, err)
	}

	_, err = r.StopSession(ctx, ann, s.Key)
	denied(t, err, team.CodeNotFound, "session_not_found")
	_, err = r.StopSession(ctx, dev, dev.Session)
	denied(t, err, team.CodeDenied, "self_send")
	if s, err = r.StopSession(ctx, dev, s.Key); err != nil || s.State != ledger.SessionClosed {
		t.Errorf("%+v, %v", s, err)
	}
	_, err = r.SendSession(ctx, dev, InjectIn{Session: s.Key, Message: "x"})
	denied(t, err, team.CodeConflict, "session_closed")
	r.spawned(dev, ChildIn{}) // there is place again
	if err := r.CloseSession(ctx, Person(), dev.Session, "through"); err != nil {
		t.Fatal(err)
	}
	if open, err := r.Ledger.Sessions(ctx, ledger.SessionFilter{Owner: dev.Session}); err != nil || len(open) != 0 {
		t.Errorf("%+v, %v", open, err)
	}
}

func ptr[T any](v T) *T { return &v }

// TestSendToASession: a text sent to a session is internal, names its sender and the sender's
// session, and is taken once for a key. It goes to no session of another member, and in no circle.
func TestSendToASession(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	dev := r.session("dev", "default")
	ann := r.session("ann", "default")
	s := r.spawned(dev, ChildIn{})
	first, err := r.SendSession(ctx, dev, InjectIn{Session: s.Key, Message: "look", Key: "k", Meta: json.RawMessage(`{"n":1}`)})
	if err != nil || first.RunID == 0 || first.Queued {
		t.Fatalf("%+v, %v", first, err)
	}
	for range 2 {
		if again, err := r.SendSession(ctx, dev, InjectIn{Session: s.Key, Message: "something else", Key: "k"}); err != nil || again != first {
			t.Errorf("%+v, %v, want %+v", again, err, first)
		}
	}
	entries, err := r.Ledger.Entries(ctx, s.Key, 0, 0)
	if err != nil || len(entries) != 1 || entries[0].Content != "look" || entries[0].Channel != team.ChannelInternal ||
		!strings.Contains(string(entries[0].Provenance), `"session":"`+dev.Session+`"`) || !strings.Contains(string(entries[0].Meta), `"given":{"n":1}`) {
		t.Errorf("%+v, %v", entries, err)
	}
	claim, err := r.Ledger.ClaimTurn(ctx, ledger.ClaimTurnIn{Member: dev.Session, Generation: "g"})
	if err != nil || claim == nil || claim.Job.ID != first.RunID || claim.Job.Hop != 1 || claim.Job.Lane != team.LaneSubagent {
		t.Fatalf("%+v, %v", claim, err)
	}
	if got, err := r.SendSession(ctx, dev, InjectIn{Session: s.Key, Message: "more"}); err != nil || !got.Queued || got.RunID != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	kid := dev
	kid.Conversation = s.Key
	if _, err := r.SendSession(ctx, kid, InjectIn{Session: dev.Session, Message: "back"}); err != nil {
		t.Error(err)
	}
	if jobs, err := r.Ledger.TurnJobs(ctx, ledger.JobFilter{Session: dev.Session}); err != nil || len(jobs) != 1 || jobs[0].Hop != 2 {
		t.Errorf("%+v, %v", jobs, err)
	}
	if err := r.Ledger.Set(ctx, ledger.SettingMaxHops, 1); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		why    string
		who    Caller
		in     InjectIn
		code   team.Code
		reason string
	}{
		{"itself", dev, InjectIn{Session: dev.Session, Message: "x"}, team.CodeDenied, "self_send"},
		{"a child, itself", kid, InjectIn{Session: s.Key, Message: "x"}, team.CodeDenied, "self_send"},
		{"somebody else's child", ann, InjectIn{Session: s.Key, Message: "x"}, team.CodeNotFound, "session_not_found"},
		{"another member", ann, InjectIn{Session: dev.Session, Message: "x"}, team.CodeNotFound, "session_not_found"},
		{"no session", dev, InjectIn{Session: "agent:default:subagent:none", Message: "x"}, team.CodeNotFound, "session_not_found"},
		{"too much", dev, InjectIn{Session: s.Key, Message: strings.Repeat("x", MaxInjection+1)}, team.CodeLimit, "message_too_large"},
		{"nothing", dev, InjectIn{Session: s.Key, Message: " "}, team.CodeInvalid, "input"},
		{"no object", dev, InjectIn{Session: s.Key, Message: "x", Meta: json.RawMessage(`[]`)}, team.CodeInvalid, "input"},
		{"a member gets messages", Person(), InjectIn{Session: dev.Session, Message: "x"}, team.CodeInvalid, "input"},
		{"too long a chain", kid, InjectIn{Session: dev.Session, Message: "x"}, team.CodeLimit, "hop_limit"},
	} {
		_, err := r.SendSession(ctx, c.who, c.in)
		if team.CodeOf(err) != c.code || team.ReasonOf(err) != c.reason {
			t.Errorf("%s: %v (%s, %s)", c.why, err, team.CodeOf(err), team.ReasonOf(err))
		}
	}
	if _, err := r.SendSession(ctx, Person(), InjectIn{Session: s.Key, Message: "from me"}); err != nil {
		t.Error(err)
	}
}

// TestLongTextForASession: a text that is too long for an entry is in a file, at once and in the
// backlog of a turn under way, and is read whole.
func TestLongTextForASession(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	dev := r.session("dev", "default")
	s := r.spawned(dev, ChildIn{})
	first, second := strings.Repeat("a", ledger.MaxEntryText+1), strings.Repeat("b", MaxInjection)
	for i, text := range []string{first, second, strings.Repeat("c", ledger.MaxEntryText)} {
		out, err := r.SendSession(ctx, dev, InjectIn{Session: s.Key, Message: text})
		if err != nil || out.Queued {
			t.Fatalf("%d: %+v, %v", i, out, err)
		}
	}
	list, err := r.Ledger.Entries(ctx, s.Key, 0, 0)
	if err != nil || len(list) != 3 {
		t.Fatalf("%d entries, %v", len(list), err)
	}
	if len(list[0].Content) > 1000 || len(list[1].Content) > 1000 || len(list[2].Content) != ledger.MaxEntryText {
		t.Errorf("entries of %d, %d and %d bytes", len(list[0].Content), len(list[1].Content), len(list[2].Content))
	}
	whole, err := r.Transcript(ctx, s)
	if err != nil || whole[0].Content != first || whole[1].Content != second {
		t.Errorf("%.100s, %.100s, %v", whole[0].Content, whole[1].Content, err)
	}
	if _, err := r.Ledger.ClaimTurn(ctx, ledger.ClaimTurnIn{Member: s.Member, Generation: "g"}); err != nil {
		t.Fatal(err)
	}
	if out, err := r.SendSession(ctx, dev, InjectIn{Session: s.Key, Message: second}); err != nil || !out.Queued {
		t.Fatalf("%+v, %v", out, err)
	}
	waits, err := r.Ledger.Backlog(ctx, s.Key)
	if err != nil || len(waits) != 1 || len(waits[0].Text) > 1000 || !strings.Contains(string(waits[0].Meta), `"long":"entry-`) {
		t.Errorf("%.500v, %v", waits, err)
	}
}

// TestLongTextSentAgain: a long text is in one file, however often it is sent under its key, also where a
// kill kept the first from being taken in; one that is refused leaves none.
func TestLongTextSentAgain(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	dev := r.session("dev", "default")
	s := r.spawned(dev, ChildIn{})
	m, err := r.Ledger.MemberBySession(ctx, s.Member)
	if err != nil {
		t.Fatal(err)
	}
	files := func(want int) {
		t.Helper()
		list, err := filepath.Glob(filepath.Join(r.Layout.Bundle(m.Name).Outputs(), "*"))
		if err != nil || len(list) != want {
			t.Errorf("files %v, %v; want %d", list, err, want)
		}
	}
	send := func(key, text string) error {
		_, err := r.SendSession(ctx, dev, InjectIn{Session: s.Key, Message: text, Key: key})
		return err
	}
	text, other := strings.Repeat("a", ledger.MaxEntryText+1), strings.Repeat("b", ledger.MaxEntryText+1)
	// Killed between the file and the ledger.
	if _, _, err := r.keepText(ctx, s, InjectIn{Message: text}, "inject:"+dev.OwnSession()+":k"); err != nil {
		t.Fatal(err)
	}
	files(1)
	for _, again := range []string{text, text, other} {
		if err := send("k", again); err != nil {
			t.Fatal(err)
		}
		files(1)
	}
	whole, err := r.Transcript(ctx, s)
	if err != nil || len(whole) != 1 || whole[0].Content != text {
		t.Fatalf("%d entries, %v", len(whole), err)
	}
	if err := send("k2", text); err != nil {
		t.Fatal(err)
	}
	files(2)
	if _, err := r.Ledger.ClaimTurn(ctx, ledger.ClaimTurnIn{Member: s.Member, Generation: "g"}); err != nil {
		t.Fatal(err)
	}
	n := 0
	for err = nil; err == nil && n < 1000; n++ {
		err = send("", text)
	}
	if !team.IsCode(err, team.CodeLimit) {
		t.Fatalf("%d were taken: %v", n, err)
	}
	files(2 + n - 1)
}

// TestHistoryIsBounded: the answer has 100 KB of the newest texts, the newest in part if it alone
// is longer, and the rest by further calls; it has nothing of other members.
func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	dev := r.session("dev", "default")
	ann := r.session("ann", "default")
	s := r.spawned(dev, ChildIn{})
	const n, size = 120, 2000
	for i := range n {
		in := ledger.Input{NewEntry: ledger.NewEntry{Kind: ledger.EntryUser, Content: strings.Repeat(string(rune('a'+i%26)), size)}}
		if _, err := r.Ledger.TakeIn(ctx, ledger.TakeIn{Session: s.Key, Inputs: []ledger.Input{in}}); err != nil {
			t.Fatal(err)
		}
	}
	var seen []int64
	in := HistoryIn{Session: s.Key}
	for calls := 0; ; calls++ {
		h, err := r.SessionHistory(ctx, dev, in)
		if err != nil || len(h.Entries) == 0 || len(h.Entries)*size > MaxInjection {
			t.Fatalf("%d entries, %v", len(h.Entries), err)
		}
		for _, e := range slices.Backward(h.Entries) {
			seen = append(seen, e.Seq)
		}
		if in.Before = h.Entries[0].Seq; !h.Earlier {
			break
		}
	}
	if len(seen) != n || seen[0] != n || seen[n-1] != 1 {
		t.Errorf("%d entries, %v", len(seen), seen)
	}
	long := ledger.Input{NewEntry: ledger.NewEntry{Kind: ledger.EntryUser, Content: strings.Repeat("ä", MaxInjection)}}
	if _, err := r.Ledger.TakeIn(ctx, ledger.TakeIn{Session: s.Key, Inputs: []ledger.Input{long}}); err != nil {
		t.Fatal(err)
	}
	h, err := r.SessionHistory(ctx, dev, HistoryIn{Session: s.Key})
	if err != nil || len(h.Entries) != 1 || !h.Entries[0].Cut || len(h.Entries[0].Text) != MaxInjection || !h.Earlier {
		t.Errorf("%d entries, %v", len(h.Entries), err)
	}
	if h, err = r.SessionHistory(ctx, dev, HistoryIn{Session: s.Key, Before: 3, Limit: 1}); err != nil || len(h.Entries) != 1 || h.Entries[0].Seq != 2 {
		t.Errorf("%+v, %v", h, err)
	}
	_, err = r.SessionHistory(ctx, ann, HistoryIn{Session: s.Key})
	denied(t, err, team.CodeNotFound, "session_not_found")
	_, err = r.SessionHistory(ctx, r.as("other", team.RoleExecutor), HistoryIn{Session: s.Key})
	denied(t, err, team.CodeNotFound, "session_not_found")
	_, err = r.SessionHistory(ctx, dev, HistoryIn{Session: s.Key, Before: -1})
	denied(t, err, team.CodeInvalid, "input")
}

// TestWakes: a wake-up is between a minute and a day ahead, five are allowed, and they use the lane
// of timers.
func TestWakes(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	dev := r.session("dev", "default")
	for _, after := range []time.Duration{0, MinWake - 1, MaxWake + 1, -time.Hour} {
		_, err := r.WakeSession(ctx, dev, WakeIn{After: after, Text: "x"})
		denied(t, err, team.CodeInvalid, "input")
	}
	_, err := r.WakeSession(ctx, dev, WakeIn{After: MinWake})
	denied(t, err, team.CodeInvalid, "input")
	before := time.Now().Add(MinWake).UnixMilli()
	for range ledger.MaxWakes {
		w, err := r.WakeSession(ctx, dev, WakeIn{After: MinWake, Text: "look"})
		if err != nil || w.At < before || w.SessionKey != dev.Session {
			t.Errorf("%+v, %v", w, err)
		}
	}
	_, err = r.WakeSession(ctx, dev, WakeIn{After: MinWake, Text: "look"})
	denied(t, err, team.CodeLimit, "too_many_wakes")
	jobs, err := r.Ledger.TurnJobs(ctx, ledger.JobFilter{Session: dev.Session, Open: true})
	if err != nil || len(jobs) != ledger.MaxWakes || jobs[0].Lane != team.LaneCron || jobs[0].Cause != team.CauseWake || jobs[0].Hop != 1 {
		t.Errorf("%+v, %v", jobs, err)
	}
	list, err := r.Sessions(ctx, dev, false)
	if err != nil || len(list) != 1 || len(list[0].Wakes) != ledger.MaxWakes || list[0].Turn != "" {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestOneshot: spawn, send, wait and read in one call: the child is closed, its place in the lane
// was free meanwhile, and one that takes too long is cancelled.
func TestOneshot(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	dev := r.session("dev", "default")
	run := func(in OneshotIn, end func(ledger.ClaimedTurn)) Oneshot {
		t.Helper()
		// A task given in the turn of an announce would count its hops too.
		for {
			c, err := r.Ledger.ClaimTurn(ctx, ledger.ClaimTurnIn{Member: dev.Session, Generation: "g"})
			if err == nil && c != nil {
				_, err = r.Ledger.EndTurn(ctx, ledger.TurnEnd{Ref: c.Job.Ref(), State: team.TurnDone})
			}
			if err != nil {
				t.Fatal(err)
			}
			if c == nil {
				break
			}
		}
		done := make(chan struct{})
		ctx, through := context.WithCancel(t.Context())
		defer through()
		go func() {
			defer close(done)
			_ = r.OnChange(ctx, func() error {
				for {
					c, err := r.Ledger.ClaimTurn(ctx, ledger.ClaimTurnIn{Member: dev.Session, Generation: "g"})
					if err != nil || c == nil {
						return err
					}
					if c.Job.Session != dev.Session { // what the last one has announced ends at once
						end(*c)
						return errTurnEnded
					}
					if _, err := r.Ledger.EndTurn(ctx, ledger.TurnEnd{Ref: c.Job.Ref(), State: team.TurnDone}); err != nil {
						return err
					}
				}
			})
		}()
		out, err := r.Oneshot(ctx, dev, in)
		if err != nil {
			t.Error(err)
		}
		through() // a turn that was cancelled before it began is claimed by nobody
		<-done
		if s, err := r.Ledger.Session(t.Context(), out.SessionKey); err != nil || s.State != ledger.SessionClosed || s.ActiveAgentID != "scout" {
			t.Errorf("%+v, %v", s, err)
		}
		return out
	}
	finish := func(e ledger.TurnEnd) {
		if _, err := r.Ledger.EndTurn(ctx, e); err != nil {
			t.Error(err)
		}
	}
	long := strings.Repeat("word ", 1000)
	got := run(OneshotIn{Agent: "scout", Task: "look"}, func(c ledger.ClaimedTurn) {
		finish(ledger.TurnEnd{Ref: c.Job.Ref(), State: team.TurnDone, Result: json.RawMessage(`{"commits":["abc"]}`), Entries: []ledger.NewEntry{{Kind: ledger.EntryAssistant, Content: long}}})
	})
	if got.Status != team.AnnouncedOK || got.Reply != long || got.Reason != "" || !slices.Equal(got.Artifacts, []team.Artifact{{Kind: team.ArtifactCommit, SHA: "abc"}}) {
		t.Errorf("%+v", got)
	}
	got = run(OneshotIn{Agent: "scout", Task: "look"}, func(c ledger.ClaimedTurn) {
		finish(ledger.TurnEnd{Ref: c.Job.Ref(), State: team.TurnFailed, Reason: "loop"})
	})
	if got.Status != team.AnnouncedError || got.Reason != "loop" || got.Reply != "failed: loop" {
		t.Errorf("%+v", got)
	}
	got = run(OneshotIn{Agent: "scout", Task: "look", Timeout: 10 * time.Millisecond}, func(c ledger.ClaimedTurn) {
		_ = r.OnChange(ctx, func() error {
			j, err := r.Ledger.TurnJob(ctx, c.Job.ID)
			if err != nil || j.Cancel == "" {
				return err
			}
			return errTurnEnded
		})
		finish(ledger.TurnEnd{Ref: c.Job.Ref(), State: team.TurnCancelled, Reason: "interrupted"})
	})
	if got.Status != team.AnnouncedTimeout || got.Reason != team.TurnTimeout {
		t.Errorf("%+v", got)
	}
	_, err := r.Oneshot(ctx, dev, OneshotIn{Task: ""})
	denied(t, err, team.CodeInvalid, "input")
	if open, err := r.Ledger.Sessions(ctx, ledger.SessionFilter{Owner: dev.Session}); err != nil || len(open) != 0 {
		t.Errorf("%+v, %v", open, err)
	}
}

// TestSessionOfAMemberThatBegins: a member that was just spawned has its session, with the model of
// its spawn, before its process has opened it; a member of another kind has none.
func TestSessionOfAMemberThatBegins(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	dev, _ := r.memberOf("llm", "dev", team.RoleExecutor)
	if _, err := r.Specs(t.Context()); err != nil {
		t.Fatal(err)
	}
	kid := r.spawned(Person(), ChildIn{Parent: "dev"})
	s, err := r.Session(t.Context(), dev.Session)
	if err != nil || kid.Owner != s.Key || s.Member != dev.Session || s.Label != "dev" {
		t.Errorf("%+v of %+v, %v", kid, s, err)
	}
	r.memberOf("worker", "ann", team.RoleExecutor)
	_, err = r.Session(t.Context(), "ann")
	denied(t, err, team.CodeConflict, "no_session")
	_, err = r.Session(t.Context(), team.TeammateSessionKey(""))
	denied(t, err, team.CodeNotFound, "session_not_found")
	_, err = r.Session(t.Context(), "")
	denied(t, err, team.CodeInvalid, "input")
}
