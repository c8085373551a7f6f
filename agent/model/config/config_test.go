package config

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/internal/fakemodel"
	"github.com/teamctl/teamctl/team"
)

func parse(t *testing.T, home, text string) *Config {
	t.Helper()
	c, err := Parse(home, "config.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// clean removes the keys and addresses of known providers from the environment.
func clean(t *testing.T) {
	t.Helper()
	for _, k := range known {
		t.Setenv(k.keyEnv, "")
		t.Setenv(k.urlEnv, "")
	}
}

func TestEmpty(t *testing.T) {
	clean(t)
	home := team.Home{Dir: t.TempDir()}
	c, err := Load(home)
	if err != nil || c.Default.String() != "script/demo" || c.Chosen || len(c.Unused()) != 0 {
		t.Fatalf("%+v, %v", c, err)
	}
	t.Setenv("OPENAI_API_KEY", "sk-1")
	if got := c.Unused(); !slices.Equal(got, []string{"openai"}) || c.Default.String() != "script/demo" {
		t.Errorf("unused %v, default %s: a key must not choose a model", got, c.Default)
	}
	if err := os.WriteFile(filepath.Join(home.Dir, Name), []byte("model: openai/gpt-5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err = Load(home); err != nil || c.Default.String() != "openai/gpt-5" || !c.Chosen || len(c.Unused()) != 0 {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestSharedFile checks that the file may also configure hooks, and is refused if others can
// write to it.
func TestSharedFile(t *testing.T) {
	clean(t)
	home := team.Home{Dir: t.TempDir()}
	file := filepath.Join(home.Dir, Name)
	if err := os.WriteFile(file, []byte("model: openai/gpt-5\nhooks:\n  TeammateIdle: \"true\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := Load(home); err != nil || !c.Chosen {
		t.Errorf("with hooks: %v", err)
	}
	if err := os.Chmod(file, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(home); team.CodeOf(err) != team.CodeDenied {
		t.Errorf("writable by all: %v", err)
	}
}

func TestParse(t *testing.T) {
	clean(t)
	t.Setenv("ANTHROPIC_BASE_URL", "https://gateway.example.com/v1/")
	c := parse(t, t.TempDir(), `
model: anthropic/claude-sonnet-4-5
providers:
  anthropic: {}
  local: {api: chat, baseURL: "http://127.0.0.1:11434/v1/", models: {qwen3: {context: 32768}}}
  work: {api: responses, baseURL: "https://llm.example.com/v1", keyEnv: WORK_KEY, headers: {X-Team: infra}}
models: {anthropic/claude-sonnet-4-5: {context: 200000, price: {input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75}}}
mcp:
  files: {command: [mcp-files, --root, .]}
`)
	if p := c.providers["anthropic"]; p.API != "messages" || p.BaseURL != "https://gateway.example.com" || p.KeyEnv != "ANTHROPIC_API_KEY" {
		t.Errorf("anthropic: %+v", p)
	}
	_, i, err := c.Open(model.Ref{Provider: "local", Model: "qwen3"})
	if err != nil || i.Context != 32768 || i.Price != nil {
		t.Errorf("local: %+v, %v", i, err)
	}
	_, i, err = c.Open(c.Default)
	if err != nil || i.Context != 200000 || i.Price == nil || i.Price.CacheWrite != 3.75 {
		t.Errorf("default: %+v, %v", i, err)
	}
	if got := c.KeyVariables(); !slices.Contains(got, "WORK_KEY") || !slices.Contains(got, "GEMINI_API_KEY") {
		t.Errorf("key variables %v", got)
	}
	_, _, err = c.Open(model.Ref{Provider: "antropic", Model: "x"})
	if team.CodeOf(err) != team.CodeNotFound || !strings.Contains(team.HintOf(err), "anthropic") {
		t.Errorf("unknown provider: %v (%s)", err, team.HintOf(err))
	}
}

func TestBadFiles(t *testing.T) {
	clean(t)
	for _, c := range []struct{ name, text, want string }{
		{"unknown key", "model: openai/x\nprovders: {}\n", "[2:1]"},
		{"unknown key within", "providers:\n  local:\n    api: chat\n    url: x\n", "[4:5]"},
		{"type", "models: 3\n", "[1:9]"},
		{"no api", "providers: {x: {baseURL: https://x.example.com}}", "api is missing"},
		{"bad api", "providers: {x: {api: grpc, baseURL: https://x.example.com}}", `unknown api "grpc"`},
		{"no address", "providers: {x: {api: chat}}", "baseURL is missing"},
		{"not https", "providers: {x: {api: chat, baseURL: http://x.example.com}}", "use https"},
		{"key in the address", "providers: {x: {api: chat, baseURL: https://u:p@x.example.com}}", "keyEnv"},
		{"two keys", "providers: {x: {api: chat, baseURL: https://x.example.com, keyEnv: A, keyFile: B}}", "more than one"},
		{"no provider", "model: claude", "invalid model"},
		{"unknown provider", "model: nobody/x", `no provider "nobody"`},
		{"unknown provider of a model", "models: {nobody/x: {context: 1}}", `no provider "nobody"`},
		{"negative", "models: {openai/x: {context: -1}}", "not negative"},
		{"name", "providers: {script: {api: chat}}", "cannot be called"},
		{"server", "mcp: {x: {command: [a], url: https://b.example.com}}", "command or url"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse(t.TempDir(), "config.yaml", []byte(c.text))
			if team.CodeOf(err) != team.CodeInvalid || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func TestKeys(t *testing.T) {
	clean(t)
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil { // regardless of the umask
			t.Fatal(err)
		}
	}
	write("good", "sk-file\n", 0o600)
	write("open", "sk-file\n", 0o644)
	write("empty", "", 0o600)
	t.Setenv("SOME_KEY", " sk-env ")
	t.Setenv("NO_KEY", "")
	for _, c := range []struct {
		name string
		p    Provider
		key  string
		code team.Code
		want string
	}{
		{"none", Provider{}, "", "", ""},
		{"env", Provider{KeyEnv: "SOME_KEY"}, "sk-env", "", ""},
		{"env unset", Provider{KeyEnv: "NO_KEY"}, "", team.CodeUnavailable, "NO_KEY"},
		{"file", Provider{KeyFile: "good"}, "sk-file", "", ""},
		{"file missing", Provider{KeyFile: "gone"}, "", team.CodeUnavailable, filepath.Join(dir, "gone")},
		{"file readable", Provider{KeyFile: "open"}, "", team.CodeInvalid, filepath.Join(dir, "open")},
		{"file empty", Provider{KeyFile: "empty"}, "", team.CodeUnavailable, "empty"},
		{"command", Provider{KeyCommand: "echo sk-$((1+1))"}, "sk-2", "", ""},
		{"command fails", Provider{KeyCommand: "exit 3"}, "", team.CodeUnavailable, "exit status 3"},
		{"command says nothing", Provider{KeyCommand: "true"}, "", team.CodeUnavailable, "no key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := &Config{dir: dir}
			k, err := cfg.key(t.Context(), "x", c.p)
			if k != c.key || c.code == "" && err != nil || c.code != "" && (team.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%q, %v", k, err)
			}
		})
	}
}

// TestKeyOnTheWire checks that each protocol sends the key in its own header and reads it for
// each request.
func TestKeyOnTheWire(t *testing.T) {
	clean(t)
	t.Setenv("K", "one")
	c := parse(t, t.TempDir(), "providers: {}")
	for api, header := range map[string]string{"messages": "X-Api-Key", "chat": "Authorization", "responses": "Authorization"} {
		set := c.authorize("x", Provider{API: api, KeyEnv: "K"})
		for _, key := range []string{"one", "two"} {
			t.Setenv("K", key)
			h := http.Header{}
			if err := set(t.Context(), h); err != nil || !strings.HasSuffix(h.Get(header), key) || len(h) != 1 {
				t.Errorf("%s: %v, %v", api, h, err)
			}
		}
	}
}

func TestList(t *testing.T) {
	clean(t)
	s, err := fakemodel.Start("", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	home := t.TempDir()
	text := "providers: {local: {api: chat, baseURL: " + s.URL + "/v1, models: {extra: {context: 9}, fake-model: {context: 7}}}}"
	c := parse(t, home, text)
	all, err := c.List(t.Context(), "", false)
	if err != nil || len(all) != 2 || all[0].Provider != "script" || all[1].Err != nil || all[1].At == 0 {
		t.Fatalf("%+v, %v", all, err)
	}
	ids := func(l Listed) (out []string) {
		for _, m := range l.Models {
			out = append(out, m.ID)
		}
		return out
	}
	if got := ids(all[1]); !slices.Equal(got, []string{"extra", "fake-model"}) || all[1].Models[1].Context != 7 {
		t.Errorf("%v %+v", got, all[1].Models)
	}
	// The list is cached: it needs no request, and remains available without a server.
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	c = parse(t, home, text)
	if all, err = c.List(t.Context(), "local", false); err != nil || all[0].Err != nil || len(all[0].Models) != 2 {
		t.Errorf("kept: %+v, %v", all, err)
	}
	if all, err = c.List(t.Context(), "local", true); err != nil || all[0].Err == nil || len(all[0].Models) != 2 {
		t.Errorf("refreshed without a server: %+v, %v", all, err)
	}
	if _, err := c.List(t.Context(), "nobody", false); team.CodeOf(err) != team.CodeNotFound {
		t.Error(err)
	}
}

// TestSilentCut checks that a server that silently drops the beginning of a request is reported
// once.
func TestSilentCut(t *testing.T) {
	clean(t)
	s, err := fakemodel.Start("", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Strict()
	var fault *fakemodel.Fault
	s.Break(func(fakemodel.Request) *fakemodel.Fault { return fault })
	c := parse(t, t.TempDir(), "providers: {local: {api: chat, baseURL: "+s.URL+"/v1}}")
	p, _, err := c.Open(model.Ref{Provider: "local", Model: "qwen3"})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(text string) string {
		t.Helper()
		a, err := p.Stream(t.Context(), model.Request{Model: "qwen3", Messages: []model.Message{{Role: model.RoleUser, Parts: []model.Part{{Text: text}}}}}, func(model.Delta) {})
		if err != nil {
			t.Fatal(err)
		}
		return a.Notice
	}
	long := strings.Repeat("word ", 8000)
	if got := ask(long); got != "" {
		t.Errorf("all was read: %s", got)
	}
	fault = &fakemodel.Fault{How: fakemodel.Forget}
	if got := ask("short"); got != "" {
		t.Error(got)
	}
	if got := ask(long); !strings.Contains(got, "providers.local.models.qwen3.context") {
		t.Error(got)
	}
	if got := ask(long); got != "" {
		t.Errorf("twice: %s", got)
	}
}
