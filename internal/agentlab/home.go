package agentlab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/strays"
)

// Home is the environment of the CLIs: a user's home directory, a repository, and teamctl's own
// home directory.
type Home struct {
	Dir     string   // everything but the sockets
	Repo    string   // a git repository with one empty commit
	User    string   // $HOME
	Teams   string   // $TEAMCTL_HOME
	Sockets string   // $TEAMCTL_RUNTIME_DIR, short
	Env     []string // of every process in it: only PATH is inherited

	// Files are the person's own files as they were written, by their path below User.
	Files map[string]string
}

// NewHome makes one below dir for the given CLIs, whose programs are below cache, with
// the model at url. dir must not be below /tmp for the real programs: Gemini CLI skips
// settings that lie where others may write.
func NewHome(ctx context.Context, dir, cache, url string, with []Client) (_ *Home, err error) {
	if dir, err = os.MkdirTemp(dir, "run-"); err != nil {
		return nil, err
	}
	h := &Home{Dir: dir, Repo: filepath.Join(dir, "repo"), User: filepath.Join(dir, "home"), Teams: filepath.Join(dir, "t")}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.Remove())
		}
	}()
	if h.Sockets, err = os.MkdirTemp(strays.Short(), "tc-"); err != nil { // a socket path is short
		return nil, err
	}
	bin := filepath.Join(dir, "bin")
	for _, d := range []string{bin, h.Repo, h.User} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, err
		}
	}
	for _, c := range with {
		if err := c.install(bin, cache); err != nil {
			return nil, err
		}
	}
	h.Env = []string{
		"HOME=" + h.User, "PATH=" + bin + ":" + os.Getenv("PATH"), "TERM=xterm-256color", "LANG=C.UTF-8", "SHELL=/bin/bash",
		"TEAMCTL_HOME=" + h.Teams, "TEAMCTL_RUNTIME_DIR=" + h.Sockets,
		"ANTHROPIC_BASE_URL=" + url, "ANTHROPIC_AUTH_TOKEN=dummy-token", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "IS_SANDBOX=1",
		"GITHUB_SHA=0", // there Gemini CLI hands on least
		"FAKE_API_KEY=x", "GEMINI_API_KEY=dummy", "GOOGLE_GEMINI_BASE_URL=" + url,
		"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1",
	}
	if h.Files, err = Configure(h.User, url, h.Repo); err != nil {
		return nil, err
	}
	for _, argv := range [][]string{{"git", "init", "-q", "-b", "main"}, {"git", "commit", "-q", "--allow-empty", "-m", "begin"}} {
		if _, err := h.Run(ctx, argv...); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// Configure writes the files of a person who uses the CLIs and trusts the repository into
// a home directory, with the model at url, and returns them by their path below it.
func Configure(home, url, repo string) (map[string]string, error) {
	files := configs(url, repo)
	for name, text := range files {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// configs returns the users' own files, which keep each CLI from asking for an account, and permit
// the commands of the checks that do not test permissions. They have the current format, since a
// program converts an older one, which would look like a change made by teamctl.
func configs(url, repo string) map[string]string {
	return map[string]string{
		".gitconfig":            "[user]\n\tname = a\n\temail = a@example.org\n",
		".claude.json":          `{"hasCompletedOnboarding":true,"projects":{"` + repo + `":{"hasTrustDialogAccepted":true}}}`,
		".claude/settings.json": `{"permissions":{"allow":["Bash(sleep:*)","Bash(cat:*)","Bash(git:*)"]},"skipDangerousModePermissionPrompt":true}`,
		".codex/config.toml": `model = "fake-model"
model_provider = "fake"
[model_providers.fake]
name = "Fake"
base_url = "` + url + `/v1"
env_key = "FAKE_API_KEY"
wire_api = "responses"
[analytics]
enabled = false
[tui]
screen_reader_detection_done = true
[tui.model_availability_nux]
"gpt-6.1-sol" = 9
[projects."` + repo + `"]
trust_level = "trusted"
`,
		".gemini/trustedFolders.json": `{"` + repo + `":"TRUST_FOLDER"}`,
		".gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"},` +
			`"environmentVariableRedaction":{"enabled":true,"allowed":["OF_THE_PERSON"]}},"privacy":{"usageStatisticsEnabled":false}}`,
		".gemini/policies/free.toml": geminiRule("sleep") + geminiRule("cat") + geminiRule("git"),
		".config/opencode/opencode.json": `{"$schema":"https://opencode.ai/config.json","provider":{"fake":{"npm":"@ai-sdk/openai-compatible","options":{"baseURL":"` + url +
			`/v1","apiKey":"dummy"},"models":{"fake-model":{"name":"fake","tool_call":true,"limit":{"context":200000,"output":8000}}}}},` +
			`"model":"fake/fake-model","small_model":"fake/fake-model","enabled_providers":["fake"],"permission":{"bash":{"*":"allow","touch asked":"ask","touch ruled":"ask"}}}`,
	}
}

// geminiRule lets commands that begin so run unasked.
func geminiRule(prefix string) string {
	return "[[rule]]\ntoolName = \"run_shell_command\"\ncommandPrefix = \"" + prefix + "\"\ndecision = \"allow\"\npriority = 100\n"
}

// Run runs a command in the repository and returns what it printed; its error has what
// it said.
func (h *Home) Run(ctx context.Context, argv ...string) (string, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = h.Repo, h.Env
	cmd.WaitDelay = 5 * time.Second // children of a killed command may hold its output
	var out, bad bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &bad
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, strings.TrimSpace(bad.String()+out.String()))
	}
	return out.String(), nil
}

// Reap ends processes that were started in the home directory and are still running.
func (h *Home) Reap() error { return strays.End(h.Processes) }

// Processes are those that run in the home, this one apart: every one has the home in
// its environment, or the sockets' directory if a test has started it for itself.
func (h *Home) Processes() []int {
	return strays.Of(func(env []byte) bool {
		return bytes.Contains(env, []byte("HOME="+h.User+"\x00")) || bytes.Contains(env, []byte("="+h.Sockets+"\x00"))
	})()
}

// Remove removes its directories. Reap comes first.
func (h *Home) Remove() error {
	err := os.RemoveAll(h.Dir)
	if h.Sockets != "" {
		err = errors.Join(err, os.RemoveAll(h.Sockets))
	}
	return err
}
