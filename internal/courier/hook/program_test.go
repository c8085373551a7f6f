package hook

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/courier"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// program simulates what Claude Code does with the answers of its hooks: it writes a transcript.
type program struct {
	*rig
	file string
}

func (r *rig) program() *program {
	return &program{r, filepath.Join(r.t.TempDir(), "transcript.jsonl")}
}

func (p *program) input(more string) string {
	return `{"session_id":"c1","transcript_path":"` + p.file + `"` + more + `}`
}

func (p *program) write(line map[string]any) {
	p.t.Helper()
	b, err := json.Marshal(line)
	if err != nil {
		p.t.Fatal(err)
	}
	f, err := os.OpenFile(p.file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.Write(append(b, '\n'))
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// text returns the text in an answer.
func text(t *testing.T, a adapter.HookReply) string {
	t.Helper()
	if a.Exit == 2 {
		return a.Stderr
	}
	var out struct {
		Reason string
		Out    struct{ AdditionalContext string } `json:"hookSpecificOutput"`
	}
	if a.Stdout == "" {
		return ""
	}
	if err := json.Unmarshal([]byte(a.Stdout), &out); err != nil {
		t.Fatal(err)
	}
	return out.Reason + out.Out.AdditionalContext
}

// takes records what the model gets of an answer.
func (p *program) takes(event string, a adapter.HookReply) {
	p.t.Helper()
	p.write(map[string]any{"type": "attachment", "attachment": map[string]any{
		"type": "hook_additional_context", "content": []string{text(p.t, a)}, "hookEvent": event}})
}

// previews records an answer that is too long: the model gets only its beginning.
func (p *program) previews(event string, a adapter.HookReply) {
	p.t.Helper()
	s := text(p.t, a)
	p.write(map[string]any{"type": "attachment", "attachment": map[string]any{"type": "hook_success", "hookEvent": event, "stdout": a.Stdout}})
	p.write(map[string]any{"type": "attachment", "attachment": map[string]any{
		"type": "hook_additional_context", "content": []string{"<persisted-output>\n" + s[:len(s)/2] + "\n...\n</persisted-output>"}, "hookEvent": event}})
}

// answers records an answer of the model, with which its turn goes on.
func (p *program) answers() {
	p.write(map[string]any{"type": "assistant", "message": map[string]any{"id": team.NewUUID(), "role": "assistant", "stop_reason": "tool_use",
		"content": []any{map[string]any{"type": "tool_use", "name": "Bash"}}}})
}

// ends records the last answer of a turn.
func (p *program) ends() {
	p.write(map[string]any{"type": "assistant", "message": map[string]any{"id": team.NewUUID(), "role": "assistant", "stop_reason": "end_turn",
		"content": []any{map[string]any{"type": "text", "text": "ok"}}}})
}

// restarted continues the member as another process.
func (p *program) restarted() {
	p.t.Helper()
	gen := team.NewUUID()
	if _, err := p.team.Ledger.UpdateMember(p.t.Context(), ledger.MemberPatch{SessionKey: p.ann.SessionKey, Generation: &gen}); err != nil {
		p.t.Fatal(err)
	}
	b := p.team.Layout.Bundle("ann")
	link, err := courier.ReadLink(b, "")
	if err != nil {
		p.t.Fatal(err)
	}
	link.Generation = gen
	if err := courier.WriteLink(b, link); err != nil {
		p.t.Fatal(err)
	}
	p.vars[team.EnvGen] = gen
}

// version changes the version of the program.
func (p *program) version(v string) {
	p.t.Helper()
	b := p.team.Layout.Bundle("ann")
	link, err := courier.ReadLink(b, "")
	link.Version = v
	if err == nil {
		err = courier.WriteLink(b, link)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}
