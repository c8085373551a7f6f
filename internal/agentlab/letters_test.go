package agentlab

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/internal/fakemodel"
)

// requestOf returns a request to the model whose conversation contains the texts; the last one is new.
func requestOf(t *testing.T, seq int, texts ...string) fakemodel.Request {
	t.Helper()
	var talk []map[string]string
	for i, s := range texts {
		if i > 0 {
			talk = append(talk, map[string]string{"role": "assistant", "content": "ok"})
		}
		talk = append(talk, map[string]string{"role": "user", "content": s})
	}
	b, err := json.Marshal(map[string]any{"messages": talk})
	if err != nil {
		t.Fatal(err)
	}
	return fakemodel.Request{Seq: seq, Protocol: "anthropic", New: texts[len(texts)-1], Body: string(b)}
}

func asItIs(s string) string { return s }

func TestCompare(t *testing.T) {
	var client Client
	letters := Nasty("n", 30)
	var all []string
	for i := range letters {
		letters[i].State = "accepted"
		all = append(all, "<teammate-message>\n"+letters[i].Text+"\n</teammate-message>")
	}
	whole := requestOf(t, 1, strings.Join(all, "\n\n"))
	if got := client.Compare(letters, []fakemodel.Request{whole}, asItIs); got.Err(false) != nil || got.Sent != 30 {
		t.Errorf("whole: %+v", got)
	}
	bad := append([]Letter(nil), letters[:5]...)
	bad[3].State = "injected"
	second := strings.Join([]string{all[4], all[3], bad[2].Token + ": if a", all[1]}, "\n")
	got := client.Compare(bad, []fakemodel.Request{requestOf(t, 1, all[1]), requestOf(t, 2, all[1], second)}, asItIs)
	want := Tally{Sent: 5, Lost: []string{"n-001", "n-003"}, False: []string{"n-001 is accepted", "n-003 is accepted"}, Open: []string{"n-004 is injected"},
		Cut: []string{"n-003"}, Doubled: []string{"n-002 2 times"}, Order: []string{"n-005"}}
	if g, w := mustJSON(t, got), mustJSON(t, want); g != w {
		t.Errorf("got  %s\nwant %s", g, w)
	}
	escaped := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(all[2])
	if got := client.Compare(letters[2:3], []fakemodel.Request{requestOf(t, 1, escaped)}, asItIs); len(got.Changed) != 1 || got.Lost != nil {
		t.Errorf("escaped: %+v", got)
	}
	// What the program itself has answered is new in no request.
	if got := client.Compare(letters[:2], []fakemodel.Request{requestOf(t, 1, all[0], all[1])}, asItIs); got.Err(false) != nil {
		t.Errorf("answered by the program: %+v", got)
	}
	shorter := []fakemodel.Request{requestOf(t, 1, all[0], all[1]), requestOf(t, 2, "a summary", "go on")}
	if got := client.Compare(letters[:2], shorter, asItIs); got.Err(false) != nil {
		t.Errorf("answered by the program, which then made the conversation shorter: %+v", got)
	}
	// Gemini CLI escapes angle brackets of what a hook adds, and has results of tools as JSON.
	quoted, err := json.Marshal(strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(strings.Join(all, "\n\n")))
	if err != nil {
		t.Fatal(err)
	}
	if got := (Client{Escapes: true}).Compare(letters, []fakemodel.Request{{Seq: 1, New: `{"output":` + string(quoted) + `}`}}, asItIs); got.Err(true) != nil {
		t.Errorf("by Gemini CLI: %+v", got)
	}
	if err := got.Err(true); err == nil || !strings.Contains(err.Error(), "lost 2") || strings.Contains(err.Error(), "doubled") {
		t.Errorf("its error: %v", err)
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestTokensDiffer: the tokens of a thousand letters are counted by their text.
func TestTokensDiffer(t *testing.T) {
	t.Parallel()
	letters := Nasty("t", 1000)
	first, last := letters[99], letters[999]
	if strings.HasPrefix(last.Token, first.Token) {
		t.Errorf("%s begins with %s", last.Token, first.Token)
	}
	both := []Letter{first, last}
	if got := (Client{}).Compare(both, []fakemodel.Request{requestOf(t, 1, "\n"+first.Text+"\n"+last.Text)}, asItIs); len(got.Doubled) > 0 || len(got.Lost) > 0 {
		t.Errorf("doubled %q, lost %q", got.Doubled, got.Lost)
	}
}
