package courier

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The user's answer counts for the directory, for those below it, and for the work trees of a
// repository; without an answer trust is unknown.
func TestGeminiTrust(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	repo, tree, other := filepath.Join(dir, "repo"), filepath.Join(dir, "trees", "mate"), filepath.Join(dir, "other")
	for _, argv := range [][]string{
		{"init", "-q", repo},
		{"-C", repo, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "--allow-empty", "-m", "x"},
		{"-C", repo, "worktree", "add", "-q", tree},
	} {
		if out, err := exec.CommandContext(t.Context(), "git", argv...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", argv, err, out)
		}
	}
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		folders, settings, env string
		dir                    string
		known, trusted         bool
	}{
		"nobody has said anything":    {dir: tree},
		"the directory":               {folders: `{"` + tree + `":"TRUST_FOLDER"}`, dir: tree, known: true, trusted: true},
		"not the directory":           {folders: `{"` + tree + `":"DO_NOT_TRUST","` + repo + `":"TRUST_FOLDER"}`, dir: tree, known: true},
		"its repository":              {folders: `{"` + repo + `":"TRUST_FOLDER"}`, dir: tree, known: true, trusted: true},
		"not its repository":          {folders: `{"` + repo + `":"DO_NOT_TRUST"}`, dir: tree},
		"the parent of its directory": {folders: `{"` + tree + `":"TRUST_PARENT"}`, dir: filepath.Join(dir, "trees"), known: true, trusted: true},
		"another directory":           {folders: `{"` + repo + `":"TRUST_FOLDER"}`, dir: other},
		"it asks nobody":              {settings: "// mine\n{\"security\":{\"folderTrust\":{\"enabled\":false,},},}", dir: tree, known: true},
		"the environment says":        {env: "false", dir: tree, known: true},
	} {
		home := t.TempDir()
		if err := os.Mkdir(filepath.Join(home, ".gemini"), 0o700); err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string]string{"trustedFolders.json": tt.folders, "settings.json": tt.settings} {
			if text == "" {
				continue
			}
			if err := os.WriteFile(filepath.Join(home, ".gemini", file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		env := map[string]string{"HOME": home, "GEMINI_CLI_TRUST_WORKSPACE": tt.env}
		got, err := GeminiTrust(context.Background(), tt.dir, func(name string) string { return env[name] })
		if err != nil || got.Known != tt.known || got.Trusted != tt.trusted {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	// The file exists, empty, before it has the answer.
	home := t.TempDir()
	file := filepath.Join(home, "folders.json")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"HOME": home, "GEMINI_CLI_TRUSTED_FOLDERS_PATH": file}
	if got, err := GeminiTrust(context.Background(), tree, func(name string) string { return env[name] }); err == nil {
		t.Errorf("a file that is half written says %+v", got)
	}
}
