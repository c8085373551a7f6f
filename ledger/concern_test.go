package ledger

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/teamctl/teamctl/team"
)

// woken reports whether a watch has received since the last call.
func woken(wakes <-chan struct{}) bool {
	select {
	case <-wakes:
		return true
	default:
		return false
	}
}

// deaf is a watch of files that hears nothing. A watch that hears of a commit of this process and
// cannot ask in time whose it was wakes everyone, as is its right.
type deaf struct{}

func (deaf) Watch(string, func(team.FileEvent)) (func(), error) { return func() {}, nil }

// A member is woken by what concerns its turns and its mail, and not by the turns and the mail of
// others; a watch of everything is woken by all of it.
func TestChangesForAMember(t *testing.T) {
	t.Parallel()
	names := []string{"ada", "bob"}
	l := newTeam(t, names...)
	l.db.opts.Watch = deaf{}
	ctx := ctxFor(t)
	ok(t, l.Set(ctx, SettingLane+string(team.LaneTeammate), 1))
	var wakes [2]<-chan struct{}
	var sessions [2]string
	for i, name := range names {
		sessions[i] = "agent:default:teammate:" + name
		must[Session](t)(l.OpenSession(ctx, NewSession{Key: sessions[i], Member: "s-" + name}))
		c, stop, err := l.ChangesFor(ctx, "s-"+name)
		ok(t, err)
		defer stop()
		wakes[i] = c
	}
	all, stop, err := l.Changes(ctx)
	ok(t, err)
	defer stop()
	const ada, bob = 0, 1
	expect := func(what string, who ...int) {
		t.Helper()
		if !woken(all) {
			t.Errorf("%s: a watch of everything is not woken", what)
		}
		for i, c := range wakes {
			want := false
			for _, w := range who {
				want = want || w == i
			}
			if got := woken(c); got != want {
				t.Errorf("%s: member %d woken %v, not %v", what, i, got, want)
			}
		}
	}
	expect("the start", ada, bob)
	say := func(i int, text string) {
		t.Helper()
		must[TakenIn](t)(l.TakeIn(ctx, TakeIn{Session: sessions[i], Inputs: []Input{{NewEntry: NewEntry{Kind: EntryUser, Content: text, Source: text}}}}))
	}
	claim := func(i int) *ClaimedTurn {
		t.Helper()
		return must[*ClaimedTurn](t)(l.ClaimTurn(ctx, ClaimTurnIn{Member: "s-" + names[i], Generation: "g"}))
	}
	say(ada, "one")
	expect("a turn", ada)
	first := claim(ada)
	expect("a claim")
	must[Entry](t)(l.Answered(ctx, TurnAnswer{Ref: first.Job.Ref(), Entry: NewEntry{Kind: EntryAssistant, Content: "x"}, Calls: []NewCall{{CallID: "c", Name: "n"}}}))
	expect("an answer")
	must[bool](t)(l.BeginCall(ctx, first.Job.Ref(), "c"))
	expect("the begin of a call")
	must[[]Entry](t)(l.EndCalls(ctx, TurnResults{Ref: first.Job.Ref(), Results: []CallResult{{CallID: "c", Entry: NewEntry{Content: "r"}}}}))
	expect("the end of a call")
	say(bob, "two")
	expect("a turn in a full lane", bob)
	if claim(bob) != nil {
		t.Fatal("two turns in a lane for one")
	}
	woken(all)
	must[EndedTurn](t)(l.EndTurn(ctx, TurnEnd{Ref: first.Job.Ref(), State: team.TurnDone}))
	expect("the place in the lane", bob)
	second := claim(bob)
	say(ada, "three")
	woken(all)
	woken(wakes[ada])
	ok(t, l.YieldTurn(ctx, second.Job.Ref(), "waits"))
	expect("a place that a turn leaves", ada)
	third := claim(ada)
	woken(all)
	must[EndedTurn](t)(l.EndTurn(ctx, TurnEnd{Ref: third.Job.Ref(), State: team.TurnDone}))
	expect("a place for a turn that has left its own", bob)

	msg, _, err := l.Post(ctx, NewMessage{Kind: team.KindMessage, From: "ada", To: "bob", Text: "hello"})
	ok(t, err)
	expect("mail", bob)
	must[bool](t)(l.Mark(ctx, DeliveryMark{MessageID: msg.ID, Recipient: "bob", State: team.Mailed}))
	expect("the delivery of mail", bob)
	must[bool](t)(l.As("bob").Mark(ctx, DeliveryMark{MessageID: msg.ID, Recipient: "bob", State: team.Accepted, Evidence: "read"}))
	expect("the receipt of mail")
	working, stopped := team.Working, team.WantStopped
	must[Member](t)(l.As("ada").UpdateMember(ctx, MemberPatch{SessionKey: "s-ada", Activity: &working}))
	expect("what a member writes about itself")
	must[Member](t)(l.UpdateMember(ctx, MemberPatch{SessionKey: "s-ada", Desired: &stopped}))
	expect("what others write about a member", ada)
	ok(t, l.CancelTurn(ctx, second.Job.ID, "enough"))
	expect("an operation that names nobody", ada, bob)
}

// A commit of this process's writer wakes once, a commit of another connection wakes everyone: at
// once after a commit of its own, else when the file is seen to have changed.
func TestChangesForAMemberByOthers(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	db, foreign := openAt(t, path), openAt(t, path)
	l, other := New(db, Direct(db)), New(foreign, Direct(foreign))
	ctx := ctxFor(t)
	wakes, stop, err := l.ChangesFor(ctx, "nobody")
	ok(t, err)
	defer stop()
	<-wakes
	await := func(what string) {
		t.Helper()
		select {
		case <-wakes:
		case <-time.After(5 * time.Minute):
			t.Fatalf("%s does not wake", what)
		}
	}
	must[int64](t)(other.Event(ctx, Event{What: "one"}))
	await("a commit of others before the first own one")
	near := func() { must[int64](t)(l.RenewLeases(ctx, []string{"x"}, time.Minute)) }
	near()
	must[int64](t)(other.Event(ctx, Event{What: "two"}))
	await("a commit of others")
	for range 20 {
		must[int64](t)(other.Event(ctx, Event{What: "three"}))
		near() // the writer sees the other's commit before the watch does
		await("a commit of others before an own one")
	}
}

// A claim that shows its member as working does so in its own commit, and only if it claims.
func TestClaimShowsTheMemberAsWorking(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "ada").As("ada")
	ctx := ctxFor(t)
	const session = "agent:default:teammate:ada"
	must[Session](t)(l.OpenSession(ctx, NewSession{Key: session, Member: "s-ada"}))
	activity := func() team.Activity {
		t.Helper()
		return must[Member](t)(l.Member(ctx, "ada")).Activity
	}
	claim := func(working bool) *ClaimedTurn {
		t.Helper()
		return must[*ClaimedTurn](t)(l.ClaimTurn(ctx, ClaimTurnIn{Member: "s-ada", Generation: "g", Working: working}))
	}
	before := activity()
	if claim(true) != nil || activity() != before {
		t.Errorf("without a turn the member is %s", activity())
	}
	for _, working := range []bool{false, true} {
		must[TakenIn](t)(l.TakeIn(ctx, TakeIn{Session: session, Inputs: []Input{{NewEntry: NewEntry{Kind: EntryUser, Content: "x", Source: mustJSON(working)}}}}))
		turn := claim(working)
		if turn == nil || (activity() == team.Working) != working {
			t.Errorf("a claim with working %v: %v, and the member is %s", working, turn, activity())
		}
		must[EndedTurn](t)(l.EndTurn(ctx, TurnEnd{Ref: turn.Job.Ref(), State: team.TurnDone}))
	}
	if n := len(must[[]Event](t)(l.Events(ctx, 0, 0, EventFilter{What: team.EventMemberActivity}))); n != 1 {
		t.Errorf("%d changes of activity in the log", n)
	}
}
