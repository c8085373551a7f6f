package program

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/agent/model/config"
	"github.com/teamctl/teamctl/agent/secrets"
	"github.com/teamctl/teamctl/team"
)

// says is a provider that returns a fixed answer.
type says struct {
	model.Provider
	answer model.Answer
	err    error
}

func (s says) Stream(context.Context, model.Request, func(model.Delta)) (model.Answer, error) {
	return s.answer, s.err
}

// TestModelRepeatsNoSecret checks that a known secret in an answer is redacted in any spelling,
// and that an answer without one keeps the provider's bytes.
func TestModelRepeatsNoSecret(t *testing.T) {
	t.Parallel()
	var known secrets.Set
	known.Add("KEY", "sk-very-secret")
	known.Add("ODD", `pass"word\1`)
	for _, c := range []struct{ text, input, raw string }{
		{"the key is sk-very-secret.", `{}`, `[{"type":"text","text":"the key is sk-very-secret."}]`},
		{"", `{"command":"echo sk-very-secret"}`, `[]`},
		{"", `{"command":"echo \u0073k-very-secret"}`, `[]`},
		{"", `{"command":"pass\"word\\1"}`, `[]`},
		{"", `{"a":[{"b":"\u0070ass\"word\\1"}]}`, `[]`},
		{"fine", `{}`, `[{"type":"thinking","thinking":"sk\u002dvery-secret","signature":"x"}]`},
		{"fine", `{"sk-very-secret`, `[]`},
	} {
		a := model.Answer{Message: model.Message{Raw: json.RawMessage(c.raw), Parts: []model.Part{{Text: c.text}, {Call: &model.Call{ID: "1", Input: json.RawMessage(c.input)}}}}}
		out, err := hiding{says{answer: a}, &known, nil}.Stream(t.Context(), model.Request{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var plain any
		all := out.Message.Parts[0].Text + string(out.Message.Parts[1].Call.Input) + string(out.Message.Raw)
		if json.Unmarshal(out.Message.Parts[1].Call.Input, &plain) == nil {
			b, _ := json.Marshal(plain)
			all += string(b)
		}
		if strings.Contains(all, "very-secret") || strings.Contains(all, "word") || out.Message.Raw != nil {
			t.Errorf("%+v: %s", c, all)
		}
	}
	raw := `[{"type":"text","text":"\u003cfine\u003e"}]`
	a := model.Answer{Message: model.Message{Raw: json.RawMessage(raw), Parts: []model.Part{{Text: "<fine>"}}}}
	out, err := hiding{says{answer: a}, &known, nil}.Stream(t.Context(), model.Request{}, nil)
	if err != nil || string(out.Message.Raw) != raw {
		t.Errorf("%s, %v", out.Message.Raw, err)
	}
	_, err = hiding{says{err: &model.Error{Kind: model.Login, Err: errors.New("no such key: sk-very-secret")}}, &known, nil}.Stream(t.Context(), model.Request{}, nil)
	if k, ok := model.KindOf(err); !ok || k != model.Login || strings.Contains(err.Error(), "very") {
		t.Error(err)
	}
}

// TestKeysAreKnown checks that keys from all sources are known before a tool runs, except that of
// a command, which is known once it has been used for a request, and that no tool opens a key
// file.
func TestKeysAreKnown(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	keys := t.TempDir()
	r.put(filepath.Join(keys, "key"), "sk-in-a-file\n")
	r.put(filepath.Join(keys, "open"), "sk-readable-by-all\n")
	if err := os.Chmod(filepath.Join(keys, "open"), 0o644); err != nil {
		t.Fatal(err)
	}
	r.put(filepath.Join(r.home.Dir, config.Name), `
providers:
  file: {api: chat, baseURL: "http://127.0.0.1:1/v1", keyFile: `+keys+`/key}
  open: {api: chat, baseURL: "http://127.0.0.1:1/v1", keyFile: `+keys+`/open}
  vault: {api: chat, baseURL: "http://127.0.0.1:1/v1", keyCommand: "echo sk-of-a-command"}
  named: {api: chat, baseURL: "http://127.0.0.1:1/v1", keyEnv: WORK_LOGIN, headers: {X-Api-Key: key-in-a-header, X-Team: not-a-secret}}
mcp:
  forge: {command: [forge], env: {FORGE_TOKEN: token-of-a-forge, FORGE_DIR: /srv/forge-data}}
`)
	cfg, err := config.Load(r.home)
	if err != nil {
		t.Fatal(err)
	}
	p := r.life(keys, "WORK_LOGIN=sk-in-a-variable", "NPM_TOKEN=token-of-npm", "SSH_KEY=/home/me/.ssh/id", "EDITOR=some-editor", team.EnvToken+"=token-of-dev")
	p.learn(cfg, map[string]team.MCPServer{"x": {URL: "https://x", Headers: map[string]string{"Authorization": "Bearer of-the-file"}}})
	for value, hidden := range map[string]bool{
		"sk-in-a-file": true, "sk-in-a-variable": true, "key-in-a-header": true, "not-a-secret": false, "token-of-a-forge": true, "/srv/forge-data": false,
		"token-of-npm": true, "/home/me/.ssh/id": false, "some-editor": false, "token-of-dev": true, "Bearer of-the-file": true, "sk-of-a-command": false,
	} {
		if got := p.secrets.Hide("x " + value + " y"); strings.Contains(got, "[redacted:") != hidden {
			t.Errorf("%s: %s", value, got)
		}
	}
	for name, want := range map[string]team.Code{"vault": "", "open": team.CodeInvalid} {
		ask, _, err := cfg.Open(model.Ref{Provider: name, Model: "m"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err = ask.Models(t.Context()); want != "" && !team.IsCode(err, want) { // nothing listens at this address
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := p.secrets.Hide("sk-of-a-command"); got != "[redacted:key of vault]" {
		t.Error(got)
	}
	space, err := p.space(t.Context(), r.session.Key, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if out := r.call(space.Tools(), "read", `{"path":"key"}`); !out.Failed || strings.Contains(out.Text, "sk-") {
		t.Errorf("a key file is read: %+v", out)
	}
	if out := r.call(space.Tools(), "grep", `{"pattern":"sk-"}`); strings.Contains(out.Text, "a-file") {
		t.Errorf("a key file is searched: %+v", out)
	}
}

// TestSeenComesBack checks that the next process may change a file that the session has read,
// unless the file has changed since.
func TestSeenComesBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	dir := t.TempDir()
	r.put(filepath.Join(dir, "a"), "one\n")
	life := func() (read func(tool, input string) string) {
		space, err := r.life(dir).space(t.Context(), r.session.Key, r.cfg)
		if err != nil {
			t.Fatal(err)
		}
		return func(tool, input string) string {
			out := r.call(space.Tools(), tool, input)
			if !out.Failed {
				meta, err := json.Marshal(map[string]any{"seen": out.Seen})
				if err != nil {
					t.Fatal(err)
				}
				r.turn(tool, input, string(meta))
			}
			return out.Text
		}
	}
	edit := func(from, to string) string {
		return `{"path":"a","edits":[{"old":"` + from + `","new":"` + to + `"}]}`
	}
	if got := life()("edit", edit("one", "two")); !strings.HasPrefix(got, "stale: ") {
		t.Error(got)
	}
	life()("read", `{"path":"a"}`)
	if got := life()("edit", edit("one", "two")); !strings.HasPrefix(got, "Wrote ") {
		t.Error(got)
	}
	if got := life()("edit", edit("two", "three")); !strings.HasPrefix(got, "Wrote ") {
		t.Errorf("after its own edit: %s", got)
	}
	r.put(filepath.Join(dir, "a"), "three\nand more\n")
	if got := life()("edit", edit("three", "four")); !strings.HasPrefix(got, "stale: ") {
		t.Errorf("after a change by others: %s", got)
	}
}

// TestConfinedMember checks that commands of a confined member can write only to its worktree,
// the shared git directory, its temporary directory and the writable paths of the team file.
func TestConfinedMember(t *testing.T) {
	t.Parallel()
	if err := CheckConfine(); err != nil {
		t.Skip("no confinement here: ", err)
	}
	r := newRig(t)
	out, more := t.TempDir(), t.TempDir()
	main, tree := filepath.Join(t.TempDir(), "main"), filepath.Join(t.TempDir(), "tree")
	free, err := r.life(t.TempDir()).space(t.Context(), r.session.Key, r.cfg)
	if err != nil {
		t.Fatal(err)
	}
	made := r.call(free.Tools(), "shell", `{"command":"git init -q `+main+` && cd `+main+` && git -c user.name=n -c user.email=e commit -qm m --allow-empty && git worktree add -q `+tree+`"}`)
	if made.Failed {
		t.Fatal(made.Text)
	}
	r.member.Spec.Confine, r.member.Spec.Writable = true, []string{more}
	p := r.life(tree, "PATH="+os.Getenv("PATH"))
	if p.enter, p.temp, err = p.bounds(); err != nil {
		t.Fatal(err)
	}
	space, err := p.space(t.Context(), r.session.Key, r.cfg)
	if err != nil {
		t.Fatal(err)
	}
	for command, works := range map[string]bool{
		"echo x > f": true, "git add . && git -c user.name=n -c user.email=e commit -qm f --allow-empty": true,
		"echo x > " + more + "/f": true, "echo x > $TMPDIR/f && mktemp": true,
		"echo x > " + out + "/f": false, "echo x > " + main + "/f": false, "echo x > " + r.home.Dir + "/f": false,
	} {
		in, _ := json.Marshal(map[string]string{"command": command})
		if got := r.call(space.Tools(), "shell", string(in)); got.Failed == works {
			t.Errorf("%s: %s", command, got.Text)
		}
	}
	p.close()
	if _, err := os.Stat(p.temp); err == nil {
		t.Error("the temporary directory is left")
	}
	r.member.Spec.Writable = []string{filepath.Join(more, "none")}
	if _, _, err := r.life(tree).bounds(); !team.IsCode(err, team.CodeUnavailable) {
		t.Errorf("a missing writable path: %v", err)
	}
}
