package opencode

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/teamctl/teamctl/internal/courier/couriertest"
	"github.com/teamctl/teamctl/internal/fakecli"
	"github.com/teamctl/teamctl/team"
)

// A message that arrived during a turn and became part of a summary before the model answered is
// sent again, also by the next supervisor.
func TestServerGivesAgainWhatACompactionTook(t *testing.T) {
	t.Parallel()
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("supervisor killed %v", killed), func(t *testing.T) {
			r, addr := openCodeRig(t)
			e := fakecli.NewEngine(r.Model.URL, r.Dir)
			e.Compact = filepath.Join(r.Dir, "compact")
			s, err := fakecli.StartOpenCode(addr, "pw", e, false)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Close)
			r.open(t)
			r.Wait(t, "the session", 0, up)
			r.Deliver(t, false, "m1", "@@shell until test -e go; do read -t 0.05 <> <(:); done\n@@say never")
			r.Asked(t, "never")
			r.Deliver(t, false, "m2", "a word of mine")
			r.Wait(t, "the receipt", 0, couriertest.Receipt("m2"))
			r.Touch(t, "compact")
			if killed {
				r.Ch.Close()
			}
			r.Touch(t, "go")
			r.Asked(t, "Its summary: work was done")
			if killed {
				r.open(t)
			}
			r.Asked(t, "a word of mine")
			if out := r.Deliver(t, true, "m2", "a word of mine"); out[0].State != team.Accepted {
				t.Errorf("asked again: %+v", out)
			}
			r.Deliver(t, false, "m3", "@@say the end")
			r.Asked(t, "@@say the end")
			if n := r.Model.Arrivals("a word of mine"); n != 1 {
				t.Errorf("it came %d times", n)
			}
		})
	}
}

func TestTakenAway(t *testing.T) {
	t.Parallel()
	id := func(n int, mail string) string { return fmt.Sprintf("msg_%012x%s", n, messageHash(mail)) }
	user := func(id, text string) sessionMessage {
		return sessionMessage{Info: messageInfo{ID: id, Role: "user"}, Parts: []messagePart{{Type: "text", Text: text}}}
	}
	answer := func(id, parent string) sessionMessage {
		return sessionMessage{Info: messageInfo{ID: id, Role: "assistant", ParentID: parent, Mode: "build"}}
	}
	compact := func(tail string) []sessionMessage {
		return []sessionMessage{
			{Info: messageInfo{ID: "msg_000000000010AbCdEfGhIjKlMn", Role: "user"}, Parts: []messagePart{{Type: compaction, Tail: tail}}},
			{Info: messageInfo{ID: "msg_000000000011AbCdEfGhIjKlMn", Role: "assistant", ParentID: "msg_000000000010AbCdEfGhIjKlMn", Mode: compaction, Finish: "stop"}},
		}
	}
	goOn := user("msg_000000000012AbCdEfGhIjKlMn", "Continue")
	a, b := user(id(1, "a"), "text a"), user(id(3, "b"), "text b")
	before := []sessionMessage{a, answer("msg_000000000002AbCdEfGhIjKlMn", a.Info.ID), b}
	failed := compact("")
	failed[1].Info.Finish = ""
	for _, c := range []struct {
		name string
		all  []sessionMessage
		over bool
		want []string
	}{
		{"nothing was compacted", before, true, nil},
		{"an answered one stays with the summary", slices.Concat(before, compact(""), []sessionMessage{goOn}), false, []string{b.Info.ID}},
		{"the end of it is not known yet", slices.Concat(before, compact("")), false, nil},
		{"at rest it is", slices.Concat(before, compact("")), true, []string{b.Info.ID}},
		{"no summary came", slices.Concat(before, failed), true, nil},
		{"it was left as it was", slices.Concat(before, compact(b.Info.ID), []sessionMessage{goOn}), false, nil},
		{"what follows was left", slices.Concat(before, compact(id(4, "c")), []sessionMessage{goOn}), false, []string{b.Info.ID}},
		{"an answer to what follows", slices.Concat(before, compact(""), []sessionMessage{goOn, answer("msg_000000000013AbCdEfGhIjKlMn", goOn.Info.ID)}), true, []string{b.Info.ID}},
		{"given again by us", slices.Concat(before, compact(""), []sessionMessage{goOn, user(id(20, "b"), "text b")}), true, nil},
		{"given again by opencode", slices.Concat(before, compact(""), []sessionMessage{user("msg_000000000012AbCdEfGhIjKlMn", "text b")}), true, nil},
		{"and taken again", slices.Concat(before, compact(""), []sessionMessage{goOn, user(id(15, "b"), "text b")},
			[]sessionMessage{
				{Info: messageInfo{ID: "msg_000000000020AbCdEfGhIjKlMn", Role: "user"}, Parts: []messagePart{{Type: compaction}}},
				{Info: messageInfo{ID: "msg_000000000021AbCdEfGhIjKlMn", Role: "assistant", ParentID: "msg_000000000020AbCdEfGhIjKlMn", Mode: compaction, Finish: "stop"}},
			}), true, []string{id(15, "b")}},
	} {
		gone := takenAway(c.all, c.over)
		if got := slices.Sorted(maps.Keys(gone)); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
