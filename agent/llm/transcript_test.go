package llm

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/ledger"
)

// conversation returns a transcript built from lines: "u text", "a text", "c id name" for a call
// of the previous answer, and "r id text" for its result.
func conversation(t *testing.T, lines ...string) *transcript {
	t.Helper()
	var entries []ledger.Entry
	for _, l := range lines {
		kind, rest, _ := strings.Cut(l, " ")
		seq := int64(len(entries) + 1)
		e := ledger.Entry{ID: seq, Seq: seq, Job: 1, NewEntry: ledger.NewEntry{Content: rest}}
		var m meta
		switch kind {
		case "u":
			e.Kind = ledger.EntryUser
		case "a":
			e.Kind, m.From = ledger.EntryAssistant, "script/demo"
		case "c":
			id, name, _ := strings.Cut(rest, " ")
			last := &entries[len(entries)-1]
			m, err := metaOf(*last)
			if err != nil {
				t.Fatal(err)
			}
			m.Calls = append(m.Calls, model.Call{ID: id, Name: name, Input: json.RawMessage(`{}`)})
			last.Meta = m.raw()
			continue
		case "r":
			e.Kind = ledger.EntryToolResult
			m.Call, e.Content, _ = strings.Cut(rest, " ")
		}
		e.Meta = m.raw()
		entries = append(entries, e)
	}
	tr := &transcript{}
	if err := tr.add(entries...); err != nil {
		t.Fatal(err)
	}
	return tr
}

func sides(t *testing.T, tr *transcript) string {
	t.Helper()
	msgs, err := tr.messages()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, m := range msgs {
		fmt.Fprintf(&b, "%s(", m.Role)
		for _, p := range m.Parts {
			switch {
			case p.Call != nil:
				b.WriteString("call " + p.Call.ID)
			case p.Result != nil:
				b.WriteString("result " + p.Result.CallID)
			default:
				b.WriteString(p.Text)
			}
			b.WriteString(",")
		}
		b.WriteString(")")
	}
	return b.String()
}

func TestMessagesAlternate(t *testing.T) {
	t.Parallel()
	tr := conversation(t, "u first", "u second", "a on it", "c 1 x", "c 2 y", "r 1 one", "r 2 two", "u more", "a done")
	want := "user(first,second,)assistant(on it,call 1,call 2,)user(result 1,result 2,more,)assistant(done,)"
	if got := sides(t, tr); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if open := tr.open(); len(open) != 0 {
		t.Errorf("open calls %v", open)
	}
	tr = conversation(t, "u first", "a on it", "c 1 x", "c 2 y", "r 1 one")
	if open := tr.open(); len(open) != 1 || open[0].ID != "2" {
		t.Errorf("open calls %v, want 2 alone", open)
	}
}

// TestCompactedConversation checks that a cut never separates a call from its result, and that
// the newest entries and the task are kept unchanged.
func TestCompactedConversation(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 8000)
	tr := conversation(t, "u who you are", "u the task", "a on it", "c 1 x", "r 1 "+long, "a again", "c 2 x", "r 2 "+long, "a and again", "c 3 x", "r 3 end")
	short := tr.shortened(1000)
	if before, after := tr.size(), short.size(); after > before*3/4 {
		t.Errorf("shortened from %d to %d bytes only", before, after)
	}
	if got, want := sides(t, short), sides(t, tr); got != want {
		t.Errorf("shortening changed the order:\n%s\n%s", got, want)
	}
	sum := short.summarised(150, "they asked for x", "the task")
	want := "user(who you are,[Summary of what came before]\nthey asked for x\n\n[The task, word for word]\nthe task,)assistant(again,call 2,)user(result 2,)assistant(and again,call 3,)user(result 3,)"
	if got := sides(t, sum); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	// A second summary replaces the first.
	again := sum.shortened(10).summarised(10, "shorter", "")
	if n := strings.Count(sides(t, again), "[Summary"); n != 1 || strings.Contains(sides(t, again), "they asked") {
		t.Errorf("%d summaries: %s", n, sides(t, again))
	}
}

func TestRepeats(t *testing.T) {
	t.Parallel()
	round := func(i int, result string) []string {
		return []string{"a", fmt.Sprintf("c %d x", i), fmt.Sprintf("r %d %s", i, result)}
	}
	lines := []string{"u do it"}
	check := func(want bool) {
		t.Helper()
		x := &turn{entries: conversation(t, lines...), ClaimedTurn: ledger.ClaimedTurn{Job: ledger.TurnJob{ID: 1}}}
		if got := x.repeats(); got != want {
			t.Errorf("after %d lines: repeats %v, want %v", len(lines), got, want)
		}
	}
	check(false)
	lines = append(lines, round(1, "same")...)
	lines = append(lines, round(2, "same")...)
	check(false)
	lines = append(lines, round(3, "same")...)
	check(true)
	lines = append(lines, "u "+repetition)
	check(false)
	for i := range 9 { // five of ten are the same, but never three in a row
		lines = append(lines, round(10+i, []string{"same", "other " + fmt.Sprint(i)}[i%2])...)
	}
	check(true)
}
