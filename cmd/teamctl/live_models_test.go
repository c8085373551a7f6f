package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/internal/fakemodel"
)

// TestScriptOfLiveModels checks that scripts/test-models asks a model of each provider that has a
// key, reports a model that does not remember, and makes no request without --live. The models
// are scripted, on loopback.
func TestScriptOfLiveModels(t *testing.T) {
	t.Parallel()
	exe, err := exec.LookPath("teamctl")
	if err != nil {
		t.Fatal(err)
	}
	s, err := fakemodel.Start("", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	dir := t.TempDir()
	run := func(recall string, env []string, args ...string) (string, int) {
		t.Helper()
		cmd := exec.Command("bash", append([]string{"../../scripts/test-models"}, args...)...)
		cmd.Env = append([]string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "TEST_MODELS_PROGRAM=" + exe, "TEST_MODELS_PATIENCE=10m",
			"TEST_MODELS_WORD=tern", "TEST_MODELS_CONTENT=gannet", "TEST_MODELS_REMEMBER=@@say %s", "TEST_MODELS_RECALL=@@say " + recall,
			"TEST_MODELS_LOOK=@@call read {\"path\":\"%s\"}\n@@say gannet",
		}, env...)
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
	keys := []string{"ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL=" + s.URL, "OPENAI_API_KEY=k", "OPENAI_BASE_URL=" + s.URL + "/v1", "GEMINI_API_KEY=k", "GEMINI_BASE_URL=" + s.URL + "/v1"}
	if out, code := run("", nil, "--live"); code != 7 || !strings.Contains(out, "no key of a provider") {
		t.Errorf("without a key: exit status %d, %s", code, out)
	}
	if out, code := run("", keys); code != 0 || !strings.Contains(out, "would ask anthropic/") || len(s.Requests()) != 0 {
		t.Errorf("without --live: exit status %d, %d requests, %s", code, len(s.Requests()), out)
	}
	if out, code := run("word-tern", keys, "--live"); code != 0 || strings.Count(out, "    recalls\n") != 3 {
		t.Errorf("exit status %d, %s", code, out)
	}
	asked := map[string]bool{}
	for _, r := range s.Requests() {
		asked[r.Protocol] = true
	}
	if !asked["anthropic"] || !asked["responses"] || !asked["chat"] {
		t.Errorf("asked by %v", asked)
	}
	out, code := run("no idea", keys[:2], "--live", "anthropic/other")
	if code != 1 || !strings.Contains(out, "anthropic/other\n") || !strings.Contains(out, "    reads a file\n    answered: no idea\n    FAILED\n") {
		t.Errorf("exit status %d, %s", code, out)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 1 { // .cache or the like
		t.Errorf("left: %v, %v", left, err)
	}
}
