package tools

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/agent/secrets"
)

// TestSecretsAreWrittenNowhere checks that a known secret is in no result and in no file with a
// long result, even if it is split across two writes of a command.
func TestSecretsAreWrittenNowhere(t *testing.T) {
	t.Parallel()
	known := &secrets.Set{}
	known.Add("KEY", "sk-very-secret")
	r := newRig(t, func(c *Config) { c.Secrets = known })
	r.file("long", strings.Repeat("sk-very-secret and more\n", 3*MaxLines))
	out := r.call("shell", map[string]any{"command": "cat long long; printf sk-very-; printf secret"})
	r.wants(out, false, "[redacted:KEY]")
	r.wants(r.call("grep", map[string]any{"pattern": "secret"}), false, "[redacted:KEY]")
	files, err := filepath.Glob(filepath.Join(r.cfg.Outputs, "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no file of a long result: %v, %v", files, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), "sk-very-secret") || !strings.Contains(string(b), "[redacted:KEY]") {
			t.Errorf("%s: %.100s", f, b)
		}
	}
	if strings.Contains(out.Text, "sk-very-secret") {
		t.Errorf("%.300s", out.Text)
	}
}
