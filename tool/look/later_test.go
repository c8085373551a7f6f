package look

import (
	"slices"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// TestPutOff checks that a need that is put off is so for every reader of the team, that it comes back when
// its time is over, when it changes and when it is taken up, and that records of needs that have gone are
// removed.
func TestPutOff(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	tm := newMailTeam(t, "ann")
	other, err := tm.Env.Open(ctx, "demo")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := other.Close(); err != nil {
			t.Error(err)
		}
	}()
	m, err := tm.Post(ctx, ledger.NewMessage{From: team.LeadName, To: "ann", Kind: team.KindMessage, Text: "look"})
	if err != nil {
		t.Fatal(err)
	}
	mark := func(s team.DeliveryState, why string) {
		t.Helper()
		if _, err := tm.Ledger.Mark(ctx, ledger.DeliveryMark{MessageID: m.ID, Recipient: "ann", State: s, Reason: why, Evidence: "a test"}); err != nil {
			t.Fatal(err)
		}
	}
	need := func(of *tool.Team) view.Need {
		t.Helper()
		list, err := Needs(ctx, of)
		i := slices.IndexFunc(list, func(n view.Need) bool { return n.Kind == view.NeedMail })
		if err != nil || i < 0 {
			t.Fatalf("%+v, %v", list, err)
		}
		g, err := Glance(ctx, of, time.Time{})
		if want := len(view.Waiting(list)); err != nil || g.Needs != want || want != len(list) && !list[len(list)-1].Later {
			t.Errorf("%d are counted, want %d, %v", g.Needs, want, err)
		}
		return list[i]
	}
	mark(team.Held, "no room")
	n := need(tm)
	if n.Later {
		t.Fatal("put off at first")
	}
	if err := PutOff(ctx, tm, tool.Caller{Name: "ann"}, n, 0); !team.IsCode(err, team.CodeDenied) {
		t.Errorf("by a member: %v", err)
	}
	for _, d := range []time.Duration{0, time.Hour} {
		if err := PutOff(ctx, tm, tool.Person(), need(tm), d); err != nil {
			t.Fatal(err)
		}
		if got := need(other); !got.Later || got.Until.IsZero() != (d == 0) {
			t.Errorf("%s, elsewhere: %+v", d, got)
		}
		due := laterDue([]view.Need{need(other)}, time.Now())
		if all, err := putOffDue(ctx, other, time.Now()); err != nil || due > time.Hour || (due > 0) != (d > 0) || (all > 0) != (d > 0) {
			t.Errorf("%s: read again in %s or %s, %v", d, due, all, err)
		}
		if err := TakeUp(ctx, other, tool.Person(), n); err != nil {
			t.Fatal(err)
		}
		if need(tm).Later {
			t.Errorf("%s: taken up, and still put off", d)
		}
	}
	if x := (tool.Later{Need: n.ID(), Seen: n.Seen(), Until: 5}); isOff(x, n, time.UnixMilli(5)) || !isOff(x, n, time.UnixMilli(4)) {
		t.Error("the time is not the end")
	}

	if err := PutOff(ctx, tm, tool.Person(), n, 0); err != nil {
		t.Fatal(err)
	}
	mark(team.Injected, "")
	mark(team.Unknown, "nothing shows it")
	changed := need(tm)
	if changed.Later || changed.ID() != n.ID() {
		t.Errorf("after a change: %+v", changed)
	}
	if err := PutOff(ctx, tm, tool.Person(), n, 0); !team.IsCode(err, team.CodeConflict) {
		t.Errorf("as it was before: %v", err)
	}
	if err := tm.PutOff(ctx, tool.Person(), tool.Later{Need: "need:gone"}); err != nil {
		t.Fatal(err)
	}
	if err := PutOff(ctx, tm, tool.Person(), changed, 0); err != nil {
		t.Fatal(err)
	}
	if off, err := tm.PutOffs(ctx); err != nil || len(off) != 1 || off[n.ID()].By == "" {
		t.Errorf("recorded: %+v, %v", off, err)
	}
}

// TestSameCause checks what makes a need that is put off another one.
func TestSameCause(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1000)
	for name, c := range map[string]struct {
		a, b view.Need
		same bool
	}{
		"in another place":      {view.Need{Kind: view.NeedTask, Task: "1", Since: at}, view.Need{Kind: view.NeedTask, Task: "1", Since: at.UTC()}, true},
		"failed again":          {view.Need{Kind: view.NeedTask, Task: "1", Since: at}, view.Need{Kind: view.NeedTask, Task: "1", Since: at.Add(time.Second)}, false},
		"the rest of a request": {view.Need{Kind: view.NeedPlan, Approval: 1, Text: "x", Cause: "a"}, view.Need{Kind: view.NeedPlan, Approval: 1, Text: "x", Cause: "b"}, false},
		"more of a budget":      {view.Need{Kind: view.NeedBudget, Text: "81 %", Cause: "nearly"}, view.Need{Kind: view.NeedBudget, Text: "82 %", Cause: "nearly"}, true},
		"all of a budget":       {view.Need{Kind: view.NeedBudget, Text: "99 %", Cause: "nearly"}, view.Need{Kind: view.NeedBudget, Text: "100 %", Cause: "all"}, false},
	} {
		if got := c.a.Seen() == c.b.Seen(); got != c.same {
			t.Errorf("%s: the same: %v", name, got)
		}
	}
}
