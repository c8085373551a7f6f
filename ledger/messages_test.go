package ledger

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/team"
)

func post(t testing.TB, l *Ledger, n NewMessage) Message {
	t.Helper()
	if n.Kind == "" {
		n.Kind = team.KindMessage
	}
	if n.Text == "" {
		n.Text = "hello"
	}
	m, _, err := l.Post(ctxFor(t), n)
	ok(t, err)
	return m
}

func TestPost(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a", "b")
	ctx := ctxFor(t)
	m, ds, err := l.Post(ctx, NewMessage{Kind: team.KindInfo, From: "a", To: "B@demo", Text: "hi", Summary: "s", RequestID: "r", Hop: 3, Payload: raw(`{"k":1}`)})
	ok(t, err)
	if m.To != "b" || m.Seq != 1 || m.Run != 1 || m.ID == "" {
		t.Errorf("%+v", m)
	}
	if diff := cmp.Diff(m, must[Message](t)(l.Message(ctx, m.ID))); diff != "" {
		t.Error(diff)
	}
	want := []Delivery{{MessageID: m.ID, Seq: 1, Recipient: "b", Session: "s-b", State: team.Posted, At: m.At}}
	if diff := cmp.Diff(want, ds); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, must[[]Delivery](t)(l.Deliveries(ctx, m.ID))); diff != "" {
		t.Error(diff)
	}
	_, ds, err = l.Post(ctx, NewMessage{Kind: team.KindBroadcast, From: "a", Text: "all"})
	ok(t, err)
	var got []string
	for _, d := range ds {
		got = append(got, d.Recipient)
	}
	if diff := cmp.Diff([]string{"team-lead", "b"}, got); diff != "" {
		t.Error(diff)
	}
	if got := sqlRow[string](t, l.DB(), "SELECT from_agent_id || kind || payload || (to_agent_id IS NULL) FROM team_messages WHERE kind = 'broadcast'"); got != `abroadcast{"text":"all"}1` {
		t.Errorf("view: %s", got)
	}
}

func TestPostRefuses(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a", "b")
	ctx := ctxFor(t)
	first := post(t, l, NewMessage{From: "a", To: "b"})
	must[Run](t)(l.StartRun(ctx))
	for _, tt := range []struct {
		name   string
		n      NewMessage
		code   team.Code
		reason string
		says   string
	}{
		{"unknown", NewMessage{To: "zzz"}, team.CodeNotFound, team.ReasonMemberNotFound, "zzz"},
		{"self", NewMessage{To: "A"}, team.CodeInvalid, team.ReasonSelfSend, "Cannot send a message to yourself"},
		{"another session", NewMessage{To: "b", ToSession: "s-old"}, team.CodeNotFound, team.ReasonMemberNotFound, "a different agent"},
		{"kind", NewMessage{To: "b", Kind: "gossip"}, team.CodeInvalid, "invalid_kind", "invalid kind: gossip"},
		{"size", NewMessage{To: "b", Text: strings.Repeat("x", team.MaxMessageBytes+1)}, team.CodeLimit, "too_long", "102400"},
		{"hops", NewMessage{To: "b", Hop: team.MaxHops + 1}, team.CodeLimit, team.ReasonHopLimit, "4 hops"},
		{"payload", NewMessage{To: "b", Payload: raw(`"`)}, team.CodeInvalid, "", "encode"},
		{"response", NewMessage{To: "b", Kind: team.KindTaskResponse}, team.CodeInvalid, "parent_required", "task_response"},
		{"parent", NewMessage{To: "b", Parent: "no"}, team.CodeNotFound, team.ReasonMessageNotFound, "no"},
		{"other run", NewMessage{To: "b", Kind: team.KindTaskResponse, Parent: first.ID}, team.CodeInvalid, "parent_of_other_run", "run 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.n.From = "a"
			if tt.n.Kind == "" {
				tt.n.Kind = team.KindMessage
			}
			if tt.n.Text == "" {
				tt.n.Text = "x"
			}
			_, _, err := l.Post(ctx, tt.n)
			refused(t, err, tt.code, tt.reason)
			if !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v does not say %q", err, tt.says)
			}
		})
	}
	if _, _, err := l.Post(ctx, NewMessage{Kind: team.KindMessage, From: "a", To: "b"}); team.CodeOf(err) != team.CodeInvalid {
		t.Errorf("empty: %v", err)
	}
	if _, _, err := l.Post(ctx, NewMessage{Kind: team.KindMessage, To: "b", Text: "x"}); team.CodeOf(err) != team.CodeInvalid {
		t.Errorf("no sender: %v", err)
	}
	if n := len(must[[]Message](t)(l.Messages(ctx, MessageFilter{}))); n != 1 {
		t.Errorf("%d messages", n)
	}
	post(t, l, NewMessage{From: "a", To: "b", Text: strings.Repeat("x", team.MaxMessageBytes)})
}

// A sender that is not on the roster, or no longer, cannot post.
func TestStrangersSendNothing(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a", "b")
	ctx := ctxFor(t)
	ok(t, l.RemoveMember(ctx, "s-b"))
	for _, from := range []string{"stranger", "b", "s-a", "a@demo"} {
		for _, n := range []NewMessage{{From: from, To: "a", Kind: team.KindMessage, Text: "x"}, {From: from, Kind: team.KindBroadcast, Text: "x"}} {
			_, _, err := l.Post(ctx, n)
			refused(t, err, team.CodeDenied, team.ReasonNotAMember)
		}
	}
	if n := len(must[[]Message](t)(l.Messages(ctx, MessageFilter{}))); n != 0 {
		t.Errorf("%d messages", n)
	}
}

func TestPostIdempotent(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a", "b")
	first := post(t, l, NewMessage{From: "a", To: "b", IdemKey: "k", Text: "1"})
	again := post(t, l, NewMessage{From: "a", To: "b", IdemKey: "k", Text: "2"})
	if diff := cmp.Diff(first, again); diff != "" {
		t.Error(diff)
	}
	if other := post(t, l, NewMessage{From: "b", To: "a", IdemKey: "k"}); other.ID == first.ID {
		t.Error("another sender's key")
	}
	// A new member with the name of a former one is a different sender.
	ok(t, l.RemoveMember(ctxFor(t), "s-a"))
	_, _, err := l.AddMember(ctxFor(t), Member{Name: "a", SessionKey: "s-a2"}, true)
	ok(t, err)
	fresh := post(t, l, NewMessage{From: "a", To: "b", IdemKey: "k", Text: "3"})
	if fresh.ID == first.ID || fresh.Text != "3" {
		t.Errorf("the message of the one before: %+v", fresh)
	}
	if again := post(t, l, NewMessage{From: "a", To: "b", IdemKey: "k", Text: "4"}); again.ID != fresh.ID {
		t.Errorf("%+v", again)
	}
}

// Mail for a reused name belongs to the session to which it was sent.
func TestMailIsBoundToTheSession(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a", "b")
	ctx := ctxFor(t)
	old := post(t, l, NewMessage{From: "a", To: "b"})
	ok(t, l.RemoveMember(ctx, "s-b"))
	_, _, err := l.AddMember(ctx, Member{Name: "b", SessionKey: "s-b2"}, true)
	ok(t, err)
	now := post(t, l, NewMessage{From: "a", To: "b"})
	for session, want := range map[string]string{"s-b": old.ID, "s-b2": now.ID} {
		box := must[[]Outgoing](t)(l.Mailbox(ctx, session, 0))
		if len(box) != 1 || box[0].Message.ID != want || box[0].Delivery.Session != session {
			t.Errorf("%s: %+v", session, box)
		}
	}
	if box := must[[]Outgoing](t)(l.Mailbox(ctx, "s-b", old.Seq)); len(box) != 0 {
		t.Errorf("%+v", box)
	}
}

func TestCap(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a", "b")
	ctx := ctxFor(t)
	g := startGroup(t, l.DB())
	gl := New(l.DB(), g)
	var posted, refusedN atomic.Int64
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for j := range 70 {
				_, _, err := gl.Post(ctx, NewMessage{Kind: team.KindMessage, From: "a", To: "b", Text: fmt.Sprint(i, j)})
				switch {
				case err == nil:
					posted.Add(1)
				case team.ReasonOf(err) == team.ReasonMessagesCap && team.CodeOf(err) == team.CodeLimit &&
					err.Error() == "team_messages_cap_exceeded: team_run 1 already has 1000 messages (cap 1000)":
					refusedN.Add(1)
				default:
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if posted.Load() != 1000 || refusedN.Load() != 120 {
		t.Errorf("%d posted, %d refused", posted.Load(), refusedN.Load())
	}
	// A team that has reached its message limit can still be stopped, and
	// continue in a new run.
	post(t, l, NewMessage{From: "team-lead", To: "b", Kind: team.KindShutdownRequest})
	must[Run](t)(l.StartRun(ctx))
	post(t, l, NewMessage{From: "a", To: "b"})
}

func TestUndelivered(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a", "b")
	ctx := ctxFor(t)
	for _, n := range []NewMessage{
		{From: "a", To: "b", Text: "peer 1"}, {From: "team-lead", To: "b", Text: "lead 1"},
		{From: "a", To: "b", Text: "stop", Kind: team.KindShutdownRequest}, {From: "b", Text: "all", Kind: team.KindBroadcast},
		{From: "team-lead", To: "a", Text: "lead 2"},
	} {
		post(t, l, n)
	}
	list := func(limit int) string {
		var got []string
		for _, o := range must[[]Outgoing](t)(l.Undelivered(ctx, limit)) {
			got = append(got, o.Message.Text+">"+o.Delivery.Recipient)
		}
		return strings.Join(got, ", ")
	}
	if got := list(0); got != "stop>b, lead 1>b, lead 2>a, peer 1>b, all>a, all>team-lead" {
		t.Errorf("order: %s", got)
	}
	if got := list(2); got != "stop>b, lead 1>b" {
		t.Errorf("limit: %s", got)
	}
	for _, o := range must[[]Outgoing](t)(l.Undelivered(ctx, 5)) {
		must[bool](t)(l.Mark(ctx, DeliveryMark{MessageID: o.Message.ID, Recipient: o.Delivery.Recipient, State: team.Mailed}))
	}
	if got := list(0); got != "all>team-lead" {
		t.Errorf("left: %s", got)
	}
}

func TestMark(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a", "b")
	ctx := ctxFor(t)
	all := []team.DeliveryState{team.Posted, team.Held, team.Mailed, team.Injected, team.Unknown, team.Accepted, team.Read, team.Answered, team.Dropped}
	allowed := map[team.DeliveryState]string{
		team.Posted:   "held mailed injected accepted read answered dropped",
		team.Held:     "mailed injected accepted read answered dropped",
		team.Mailed:   "held injected accepted read answered dropped",
		team.Injected: "held unknown accepted read answered dropped",
		team.Unknown:  "held injected accepted read answered dropped",
		team.Accepted: "read answered",
		team.Read:     "answered",
	}
	for _, from := range all {
		var got []string
		for _, to := range all {
			if to == team.Posted {
				continue
			}
			m := post(t, l, NewMessage{From: "a", To: "b"})
			mark := DeliveryMark{MessageID: m.ID, Recipient: "b", Reason: "r", Evidence: "e"}
			if from == team.Unknown { // of what was handed over only
				mark.State = team.Injected
				must[bool](t)(l.Mark(ctx, mark))
			}
			if from != team.Posted {
				mark.State = from
				must[bool](t)(l.Mark(ctx, mark))
			}
			mark.State = to
			if must[bool](t)(l.Mark(ctx, mark)) {
				got = append(got, string(to))
			}
		}
		if strings.Join(got, " ") != allowed[from] {
			t.Errorf("%s: %v", from, got)
		}
	}
	m := post(t, l, NewMessage{From: "a", To: "b"})
	for _, bad := range []team.DeliveryState{team.Posted, team.Held, team.Unknown, team.Dropped, team.Accepted, team.Read, team.Answered, "lost"} {
		_, err := l.Mark(ctx, DeliveryMark{MessageID: m.ID, Recipient: "b", State: bad})
		refused(t, err, team.CodeInvalid, "")
	}
	_, err := l.Mark(ctx, DeliveryMark{MessageID: m.ID, Recipient: "a", State: team.Mailed})
	refused(t, err, team.CodeNotFound, team.ReasonMessageNotFound)
	if must[bool](t)(l.Mark(ctx, DeliveryMark{MessageID: m.ID, Recipient: "b", State: team.Injected, IfStates: []team.DeliveryState{team.Mailed}})) {
		t.Error("moved from another state than asked for")
	}
	n, err := l.MarkMany(ctx, []DeliveryMark{{MessageID: m.ID, Recipient: "b", State: team.Mailed}, {MessageID: m.ID, Recipient: "b", State: team.Mailed}})
	if err != nil || n != 1 {
		t.Errorf("%d, %v", n, err)
	}
	_, err = l.MarkMany(ctx, []DeliveryMark{{MessageID: m.ID, Recipient: "b", State: team.Injected}, {MessageID: "no", Recipient: "b", State: team.Injected}})
	refused(t, err, team.CodeNotFound, team.ReasonMessageNotFound)
	if d := must[[]Delivery](t)(l.Deliveries(ctx, m.ID))[0]; d.State != team.Mailed {
		t.Errorf("half of a refused batch was kept: %+v", d)
	}
}

func TestReplyAnswersItsParent(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a", "b")
	ctx := ctxFor(t)
	ask := post(t, l, NewMessage{Kind: team.KindTaskRequest, From: "a", To: "b"})
	reply := post(t, l, NewMessage{Kind: team.KindTaskResponse, From: "b", To: "a", Parent: ask.ID})
	d := must[[]Delivery](t)(l.Deliveries(ctx, ask.ID))[0]
	if d.State != team.Answered || d.Evidence != "reply "+reply.ID {
		t.Errorf("%+v", d)
	}
	post(t, l, NewMessage{From: "a", To: "b", Parent: reply.ID})
	got := must[[]string](t)(read(ctx, l.DB(), "test", scanOne[string], "SELECT kind || depth FROM v_team_run_conversation ORDER BY seq"))
	if diff := cmp.Diff([]string{"task_request0", "task_response1", "message2"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestMessageFilters(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a", "b", "c")
	ctx := ctxFor(t)
	first := post(t, l, NewMessage{From: "a", To: "b", Text: "1", RequestID: "r"})
	post(t, l, NewMessage{From: "b", To: "a", Text: "2", Parent: first.ID})
	post(t, l, NewMessage{From: "c", Text: "3", Kind: team.KindBroadcast})
	must[Run](t)(l.StartRun(ctx))
	post(t, l, NewMessage{From: "c", To: "a", Text: "4"})
	for _, tt := range []struct {
		f    MessageFilter
		want string
	}{
		{MessageFilter{}, "1 2 3 4"}, {MessageFilter{Newest: true, Limit: 2}, "4 3"}, {MessageFilter{Run: 2}, "4"},
		{MessageFilter{Kind: team.KindBroadcast}, "3"}, {MessageFilter{From: "C"}, "3 4"}, {MessageFilter{Recipient: "b"}, "1 3"},
		{MessageFilter{With: "b"}, "1 2 3"}, {MessageFilter{Parent: first.ID}, "2"}, {MessageFilter{RequestID: "r"}, "1"}, {MessageFilter{After: 2}, "3 4"},
	} {
		var got []string
		for _, m := range must[[]Message](t)(l.Messages(ctx, tt.f)) {
			got = append(got, m.Text)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%+v: %v", tt.f, got)
		}
	}
	_, err := l.Message(ctx, "no")
	refused(t, err, team.CodeNotFound, team.ReasonMessageNotFound)
	var log bytes.Buffer
	ok(t, l.Audit(ctx, &log))
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if want := fmt.Sprintf(`{"timestamp":%d,"from":"a","to":"b","type":"message","size":1}`, first.At); len(lines) != 4 || lines[0] != want {
		t.Errorf("audit log:\n%s", log.String())
	}
}
