package hook

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/team"
)

// The hook of Gemini CLI at the end of a turn does not report that the turn failed: the transcript
// does.
func TestFailedTurnOfATranscript(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	file := filepath.Join(t.TempDir(), "chat.jsonl")
	for _, c := range []struct{ record, failed string }{
		{`{"id":"2","type":"error","content":"[API Error: bad thing]"}`, "[API Error: bad thing]"},
		{`{"id":"2","type":"gemini","content":"done"}`, ""},
	} {
		if err := os.WriteFile(file, []byte(`{"id":"1","type":"user","content":[{"text":"go"}]}`+"\n"+c.record+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		in := r.in("AfterAgent", `{"session_id":"c1","transcript_path":"`+file+`","prompt_response":"[no response text]"}`, func(adapter.HookReply) error { return nil })
		in.CLI = adapter.Gemini
		if err := Run(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		r.mu.Lock()
		o := r.told[len(r.told)-1]
		r.mu.Unlock()
		if o.Activity != team.Idle || o.Failed != c.failed {
			t.Errorf("%s after %s, failed of %q", o.Activity, c.record, o.Failed)
		}
	}
}
