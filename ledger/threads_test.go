package ledger

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/team"
)

func drawn(th Thread) string {
	var b strings.Builder
	for _, l := range th.Lines {
		fmt.Fprintf(&b, "%s%s\n", strings.Repeat(" ", l.Depth), l.Text)
	}
	return b.String()
}

func TestThread(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a", "b")
	ctx := ctxFor(t)
	root := post(t, l, NewMessage{From: "a", To: "b", Text: "root"})
	other := post(t, l, NewMessage{From: "a", To: "b", Text: "other"})
	one := post(t, l, NewMessage{From: "b", To: "a", Text: "one", Parent: root.ID})
	post(t, l, NewMessage{From: "b", To: "a", Text: "two", Parent: root.ID})
	post(t, l, NewMessage{From: "b", To: "a", Text: "late", Parent: other.ID})
	deep := post(t, l, NewMessage{From: "a", To: "b", Text: "deep", Parent: one.ID})
	for _, id := range []string{root.ID, one.ID, deep.ID} {
		if diff := cmp.Diff("root\n one\n  deep\n two\n", drawn(must[Thread](t)(l.Thread(ctx, id)))); diff != "" {
			t.Errorf("thread of %s: %s", id, diff)
		}
	}
	if diff := cmp.Diff("root\n one\n  deep\n two\nother\n late\n", drawn(must[Thread](t)(l.Thread(ctx, "")))); diff != "" {
		t.Error(diff)
	}
	_, err := l.Thread(ctx, "nothing")
	refused(t, err, team.CodeNotFound, team.ReasonMessageNotFound)
}

func TestThreadIsBounded(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a", "b")
	ctx := ctxFor(t)
	ids := []string{}
	for i := range MaxThreadDepth + 4 {
		n := NewMessage{From: "a", To: "b", Text: fmt.Sprint(i)}
		if i%2 == 1 {
			n.From, n.To = "b", "a"
		}
		if i > 0 {
			n.Parent = ids[i-1]
		}
		ids = append(ids, post(t, l, n).ID)
	}
	th := must[Thread](t)(l.Thread(ctx, ids[0]))
	if len(th.Lines) != MaxThreadDepth+1 || th.Cut != 1 || th.Lines[MaxThreadDepth].Depth != MaxThreadDepth {
		t.Errorf("%d lines, %d cut", len(th.Lines), th.Cut)
	}
	// The same holds for the documented view, in which roots have depth 0.
	if got := sqlRow[string](t, l.DB(), "SELECT min(depth) || ' ' || max(depth) || ' ' || count(*) FROM v_team_run_conversation"); got != "0 50 51" {
		t.Errorf("the view: %s", got)
	}
	// A requested message is always included, however deep it is.
	last := must[Thread](t)(l.Thread(ctx, ids[len(ids)-1]))
	if got := last.Lines[len(last.Lines)-1]; got.ID != ids[len(ids)-1] || last.Cut != 0 {
		t.Errorf("the thread ends with %+v, %d cut", got, last.Cut)
	}
}

func TestFindMessage(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a", "b")
	ctx := ctxFor(t)
	m := post(t, l, NewMessage{From: "a", To: "b"})
	for _, id := range []string{m.ID, m.ID[:8], m.ID[:len(m.ID)-1]} {
		if got := must[Message](t)(l.FindMessage(ctx, id)); got.ID != m.ID {
			t.Errorf("%s: %s", id, got.ID)
		}
	}
	for _, id := range []string{"", m.ID[:3], m.ID + "x", "%%%%", "zzzz"} {
		_, err := l.FindMessage(ctx, id)
		refused(t, err, team.CodeNotFound, team.ReasonMessageNotFound)
	}
}

func TestReached(t *testing.T) {
	t.Parallel()
	order := []team.DeliveryState{team.Posted, team.Mailed, team.Injected, team.Accepted, team.Read, team.Answered}
	for i, have := range order {
		for j, want := range order {
			if Reached(have, want) != (i >= j) {
				t.Errorf("%s reaches %s: %v", have, want, i < j)
			}
		}
	}
	for _, s := range []team.DeliveryState{team.Held, team.Dropped, "odd"} {
		if Reached(s, team.Posted) {
			t.Errorf("%s reaches posted", s)
		}
	}
}

// A reused name gets nothing that was sent to its former member.
func TestMailOfWhoLeftIsDropped(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a", "b")
	ctx := ctxFor(t)
	posted := post(t, l, NewMessage{From: "b", To: "a", Text: "posted"})
	mailed := post(t, l, NewMessage{From: "b", To: "a", Text: "mailed"})
	read := post(t, l, NewMessage{From: "b", To: "a", Text: "read"})
	must[bool](t)(l.Mark(ctx, DeliveryMark{MessageID: mailed.ID, Recipient: "a", State: team.Mailed}))
	must[bool](t)(l.Mark(ctx, DeliveryMark{MessageID: read.ID, Recipient: "a", State: team.Read, Evidence: "x"}))
	ok(t, l.RemoveMember(ctx, "s-a"))
	for id, want := range map[string]team.DeliveryState{posted.ID: team.Dropped, mailed.ID: team.Dropped, read.ID: team.Read} {
		d := must[Delivery](t)(l.Delivery(ctx, id, "a"))
		if d.State != want || want == team.Dropped && d.Reason != "a has left the team" {
			t.Errorf("%+v, want %s", d, want)
		}
	}
	if out := must[[]Outgoing](t)(l.Undelivered(ctx, 0)); len(out) != 0 {
		t.Errorf("still to deliver: %v", out)
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	l := newTeam(t, "a", "b")
	ctx := ctxFor(t)
	check := func(session, token string, want bool) {
		t.Helper()
		if got := must[bool](t)(l.CheckToken(ctx, session, token)); got != want {
			t.Errorf("token %q of %s: %v", token, session, got)
		}
	}
	give := func(session, token string) {
		hash := HashToken(token)
		must[Member](t)(l.UpdateMember(ctx, MemberPatch{SessionKey: session, TokenHash: &hash}))
	}
	check("s-a", "", false)
	check("s-a", "x", false)
	give("s-a", "first")
	give("s-b", "other")
	check("s-a", "first", true)
	check("s-a", "other", false)
	check("s-a", HashToken("first"), false)
	check("s-zzz", "first", false)
	give("s-a", "second")
	check("s-a", "first", false)
	check("s-a", "second", true)
	bad := "first"
	if _, err := l.UpdateMember(ctx, MemberPatch{SessionKey: "s-a", TokenHash: &bad}); err == nil {
		t.Error("something that is no hash was taken for one")
	}
	ok(t, l.RemoveMember(ctx, "s-a"))
	check("s-a", "second", false)
	// Neither the secret nor its hash is in the log.
	for _, secret := range []string{"second", HashToken("second")} {
		if n := sqlRow[int](t, l.DB(), "SELECT count(*) FROM events WHERE instr(coalesce(data, '') || before || after, '"+secret+"')"); n != 0 {
			t.Errorf("%d events have %s", n, secret)
		}
		if n := sqlRow[int](t, l.DB(), "SELECT count(*) FROM applied_ops WHERE instr(result, '"+secret+"')"); n != 0 {
			t.Errorf("%d results have %s", n, secret)
		}
	}
}
