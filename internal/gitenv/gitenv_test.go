package gitenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// git runs git in dir, and returns what it writes.
func git(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// Every variable that git holds to be one repository's goes, but for one that people set.
func TestWithoutLocal(t *testing.T) {
	t.Parallel()
	for _, name := range strings.Fields(git(t, t.TempDir(), os.Environ(), "rev-parse", "--local-env-vars")) {
		if got := Without([]string{name + "=1"}); len(got) > 0 != (name == "GIT_CONFIG_COUNT") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// What a person has set stays.
func TestWithoutOfPerson(t *testing.T) {
	t.Parallel()
	own := []string{"HOME=/h", "GIT_AUTHOR_NAME=Ann", "GIT_AUTHOR_EMAIL=ann@example.org", "GIT_COMMITTER_NAME=Ann", "GIT_EDITOR=:", "GIT_SEQUENCE_EDITOR=:",
		"GIT_SSH_COMMAND=ssh -4", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*", "malformed"}
	if got := Without(own); !slices.Equal(got, own) {
		t.Errorf("%q", got)
	}
	// An alias has a prefix; the author is still the person's.
	alias := append([]string{"GIT_PREFIX=sub/"}, slices.DeleteFunc(slices.Clone(own), func(kv string) bool { return strings.HasSuffix(kv, "EDITOR=:") })...)
	if got := Without(alias); !slices.Equal(got, alias[1:]) {
		t.Errorf("%q", got)
	}
	// A date of one's own does not make the author git's.
	if got := Without(append(slices.Clone(own), "GIT_AUTHOR_DATE=@0 +0000")); !slices.Equal(got, own) {
		t.Errorf("%q", got)
	}
}

// What is left in a hook of git is what git was called with.
func TestWithoutInHook(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1"}
	git(t, dir, env, "init", "--quiet", "--initial-branch=main")
	git(t, dir, env, "config", "user.name", "Ann")
	git(t, dir, env, "config", "user.email", "ann@example.org")
	hooks := []string{"pre-commit", "post-commit", "post-rewrite", "post-merge", "post-checkout"}
	for _, name := range hooks {
		script := "#!/bin/sh\nenv >\"" + filepath.Join(dir, "env."+name) + "\"\n"
		if err := os.WriteFile(filepath.Join(dir, ".git", "hooks", name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	git(t, dir, env, "-c", "core.abbrev=9", "commit", "--quiet", "--allow-empty", "-m", "one")
	git(t, dir, env, "commit", "--quiet", "--allow-empty", "--amend", "-m", "two")
	git(t, dir, env, "checkout", "--quiet", "-b", "side")
	git(t, dir, env, "commit", "--quiet", "--allow-empty", "-m", "three")
	git(t, dir, env, "checkout", "--quiet", "main")
	git(t, dir, env, "merge", "--quiet", "--no-ff", "-m", "merged", "side")
	for _, name := range hooks {
		data, err := os.ReadFile(filepath.Join(dir, "env."+name))
		if err != nil {
			t.Fatal(err)
		}
		for _, kv := range Without(strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")) {
			// git may name the directory of its own programs, which are the same for everybody.
			if strings.HasPrefix(kv, "GIT_") && !strings.HasPrefix(kv, "GIT_EXEC_PATH=") && !slices.Contains(env, kv) {
				t.Errorf("%s has %s", name, kv)
			}
		}
	}
}
