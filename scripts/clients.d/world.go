package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/teamctl/teamctl/internal/fakemodel"
)

// world is an empty home with the CLIs' own configuration as a person would have
// it, a repository, a team, and a model.
type world struct {
	dir, repo, home string
	sockets         string
	exe             string
	env             []string
	model           *fakemodel.Server
	started         time.Time
	tokens          int
	prompt          string // token of the first prompt
	limit           time.Duration
	busy            int
}

func newWorld(ctx context.Context, o options, with []client) (_ *world, err error) {
	// Not below /tmp: Gemini CLI skips settings that lie where others may write.
	dir, err := os.MkdirTemp(filepath.Dir(o.cache), "run-")
	if err != nil {
		return nil, err
	}
	sockets, err := os.MkdirTemp("/tmp", "tc-") // a socket path is short
	if err != nil {
		return nil, err
	}
	w := &world{dir: dir, sockets: sockets, repo: filepath.Join(dir, "repo"), home: filepath.Join(dir, "home"), exe: o.exe, limit: o.limit, busy: o.busy, started: time.Now()}
	if w.model, err = fakemodel.Start("", nil); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close(false))
		}
	}()
	bin := filepath.Join(dir, "bin")
	for _, d := range []string{bin, w.repo, w.home} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, err
		}
	}
	for _, c := range with {
		if err := c.install(bin, o.cache); err != nil {
			return nil, err
		}
	}
	url := w.model.URL
	w.env = []string{
		"HOME=" + w.home, "PATH=" + bin + ":" + os.Getenv("PATH"), "TERM=xterm-256color", "LANG=C.UTF-8", "SHELL=/bin/bash",
		"TEAMCTL_HOME=" + filepath.Join(dir, "t"), "TEAMCTL_RUNTIME_DIR=" + sockets,
		"ANTHROPIC_BASE_URL=" + url, "ANTHROPIC_AUTH_TOKEN=dummy-token", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "IS_SANDBOX=1",
		"FAKE_API_KEY=x", "GEMINI_API_KEY=dummy", "GOOGLE_GEMINI_BASE_URL=" + url,
		"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org",
	}
	for name, text := range configs(url, w.repo) {
		path := filepath.Join(w.home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	for _, argv := range [][]string{
		{"git", "init", "-q", "-b", "main"}, {"git", "commit", "-q", "--allow-empty", "-m", "begin"}, {o.exe, "create", "demo", "--repo", w.repo},
	} {
		if _, err := w.command(ctx, argv...); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// configs are the persons' own files: what keeps each CLI from asking who they are,
// and lets the commands of the checks run that are not the question.
func configs(url, repo string) map[string]string {
	return map[string]string{
		".claude.json":          `{"hasCompletedOnboarding":true,"bypassPermissionsModeAccepted":true,"projects":{"` + repo + `":{"hasTrustDialogAccepted":true}}}`,
		".claude/settings.json": `{"permissions":{"allow":["Bash(sleep:*)"]}}`,
		".codex/config.toml": `model = "fake-model"
model_provider = "fake"
[model_providers.fake]
name = "Fake"
base_url = "` + url + `/v1"
env_key = "FAKE_API_KEY"
wire_api = "responses"
[analytics]
enabled = false
`,
		".gemini/settings.json":       `{"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false}}`,
		".gemini/policies/sleep.toml": "[[rule]]\ntoolName = \"run_shell_command\"\ncommandPrefix = \"sleep\"\ndecision = \"allow\"\npriority = 100\n",
		".config/opencode/opencode.json": `{"provider":{"fake":{"npm":"@ai-sdk/openai-compatible","options":{"baseURL":"` + url +
			`/v1","apiKey":"dummy"},"models":{"fake-model":{"name":"fake","tool_call":true,"limit":{"context":200000,"output":8000}}}}},` +
			`"model":"fake/fake-model","small_model":"fake/fake-model","enabled_providers":["fake"],"permission":{"bash":{"*":"allow","touch asked":"ask","touch ruled":"ask"}}}`,
	}
}

// close ends the team and what is left of its processes: all of them have the
// world's directory in their environment.
func (w *world) close(keep bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var errs []error
	if len(w.env) > 0 {
		if !keep {
			if _, err := w.teamctl(ctx, "delete", "--force"); err != nil { // what it cannot end is ended below
				fmt.Fprintln(os.Stderr, "clients:", err)
			}
		}
		errs = append(errs, w.reap())
	}
	errs = append(errs, w.model.Close())
	if keep {
		errs = append(errs, w.keepRequests())
		fmt.Fprintln(os.Stderr, "kept:", w.dir)
		return errors.Join(errs...)
	}
	return errors.Join(append(errs, os.RemoveAll(w.dir), os.RemoveAll(w.sockets))...)
}

// keepRequests writes what the model was asked and has answered.
func (w *world) keepRequests() error {
	f, err := os.Create(filepath.Join(w.dir, "requests.jsonl"))
	if err != nil {
		return err
	}
	enc := json.NewEncoder(f)
	for _, r := range w.model.Requests() {
		r.Body = ""
		err = errors.Join(err, enc.Encode(r))
	}
	return errors.Join(err, f.Close())
}

// reap ends what the run started and nobody ended.
func (w *world) reap() error {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return err
	}
	for _, d := range dirs {
		env, err := os.ReadFile(filepath.Join(d, "environ"))
		if err != nil || !bytes.Contains(env, []byte("HOME="+w.home)) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(d))
		if err == nil && pid != os.Getpid() {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have gone
		}
	}
	return nil
}

func (w *world) command(ctx context.Context, argv ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*w.limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = w.repo, w.env
	var out, bad bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &bad
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, strings.TrimSpace(bad.String()+out.String()))
	}
	return out.String(), nil
}

func (w *world) teamctl(ctx context.Context, args ...string) (string, error) {
	return w.command(ctx, append([]string{w.exe}, args...)...)
}

// member is what ps says of one.
type member struct {
	Name       string `json:"name"`
	Observed   string `json:"observed"`
	Activity   string `json:"activity"`
	Generation string `json:"generation"`
	PID        int    `json:"pid"`
	Worktree   string `json:"worktree"`
}

func (w *world) member(ctx context.Context, name string) (member, error) {
	out, err := w.teamctl(ctx, "ps", "--json")
	if err != nil {
		return member{}, err
	}
	var all struct{ Members []member }
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		return member{}, fmt.Errorf("read ps: %w", err)
	}
	for _, m := range all.Members {
		if m.Name == name {
			return m, nil
		}
	}
	return member{}, fmt.Errorf("%s is not in ps", name)
}

// lives reports a model that is gone: nothing would be true after that.
func (w *world) lives() error {
	if w.model == nil {
		return errors.New("there is no model")
	}
	return nil
}

// until polls a condition that no event tells of: ps is what a person has too.
func (w *world) until(ctx context.Context, what string, ok func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, w.limit)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		good, err := ok()
		if good && err == nil {
			return nil
		}
		if err != nil && ctx.Err() == nil {
			last = err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("not %s within %s", what, w.limit), last)
		}
	}
}

// asked waits for the request in which a text came in.
func (w *world) asked(ctx context.Context, text string) (fakemodel.Request, error) {
	return w.request(ctx, text, func(r fakemodel.Request) bool { return strings.Contains(r.New, text) })
}

// answered waits for the request that was answered with a text.
func (w *world) answered(ctx context.Context, text string) (fakemodel.Request, error) {
	return w.request(ctx, text, func(r fakemodel.Request) bool { return strings.Contains(r.Answer, text) })
}

func (w *world) request(ctx context.Context, what string, ok func(fakemodel.Request) bool) (fakemodel.Request, error) {
	ctx, cancel := context.WithTimeout(ctx, w.limit)
	defer cancel()
	r, err := w.model.Wait(ctx, func(r fakemodel.Request) bool { return !r.Side && ok(r) })
	if err != nil {
		return r, fmt.Errorf("%q did not reach the model within %s (%d requests)", what, w.limit, len(w.model.Requests()))
	}
	return r, nil
}

// token is a word that nothing else contains.
func (w *world) token(what string) string {
	w.tokens++
	return fmt.Sprintf("%s-%d-%d", what, w.started.UnixMilli()%100000, w.tokens)
}
