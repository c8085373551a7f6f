package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/internal/strays"
)

// TestReleased checks that a version known to the go command is shown as it is, except for the
// pseudo-version of a repository without tags.
func TestReleased(t *testing.T) {
	t.Parallel()
	for module, want := range map[string]string{
		"":        release,
		"(devel)": release,
		"v0.0.0-20261125221135-0123456789ab+dirty": release,
		"v1.2.3":                               "v1.2.3",
		"v1.2.4-0.20261125221135-0123456789ab": "v1.2.4-0.20261125221135-0123456789ab",
	} {
		if got := released(module); got != want {
			t.Errorf("%q: %q, want %q", module, got, want)
		}
	}
}

// TestReleaseOfTheChangelog checks that the program's version is the newest release in the
// changelog.
func TestReleaseOfTheChangelog(t *testing.T) {
	t.Parallel()
	dirs, err := filepath.Glob(filepath.Join("..", "..", "docs", "changelog", "v*"))
	if err != nil {
		t.Fatal(err)
	}
	newest, at := "", [3]int{}
	for _, d := range dirs {
		var n [3]int
		name := filepath.Base(d)
		if _, err := fmt.Sscanf(name, "v%d.%d.%d", &n[0], &n[1], &n[2]); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if newest == "" || slices.Compare(n[:], at[:]) > 0 {
			newest, at = name, n
		}
	}
	if release != newest {
		t.Errorf("the version is %s, the newest release in docs/changelog is %s", release, newest)
	}
}

// TestCutRelease checks that scripts/release moves the entries, sets the version and commits
// both. It adds later entries to a release that has no tag, and otherwise fails without changing
// anything.
func TestCutRelease(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := strays.WriteProgram(file, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	for _, script := range []string{"release", "lib.sh"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "scripts", script))
		if err != nil {
			t.Fatal(err)
		}
		put("scripts/"+script, string(text))
	}
	put("cmd/teamctl/version.go", "package main\n\nconst release = \"v0.0.0\"\n")
	run := func(args ...string) (string, error) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	git := func(args ...string) string {
		t.Helper()
		out, err := run(append([]string{"git"}, args...)...)
		if err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
		return out
	}
	commit := func() {
		t.Helper()
		git("add", "-A")
		git("commit", "-q", "-m", "a change")
	}
	release := func(version, want string) {
		t.Helper()
		head := git("rev-parse", "HEAD")
		out, err := run("scripts/release", version)
		if (err != nil) != strings.HasPrefix(want, "error: ") || !strings.Contains(out, want) {
			t.Errorf("release %s: %v: %s, want %q", version, err, out, want)
		}
		if changed := git("rev-parse", "HEAD") != head; changed != (err == nil) || git("status", "--porcelain") != "" {
			t.Errorf("release %s: a commit: %v, left: %s", version, changed, git("status", "--porcelain"))
		}
	}
	put("docs/changelog/README.md", "# Changelog\n")
	git("init", "-q")
	commit()
	release("v0.1.0", "error: docs/changelog/unreleased has no entry")
	put("docs/changelog/unreleased/one.md", "# One\n")
	commit()
	release("0.1", "error: invalid version 0.1")
	release("v0.1.0", "git tag -a v0.1.0")
	put("docs/changelog/unreleased/two.md", "# Two\n")
	commit()
	release("v0.0.9", "error: v0.0.9 is older than v0.1.0")
	release("v0.1.0", "released v0.1.0: 1 entries")
	put("docs/changelog/unreleased/two.md", "# Two again\n")
	commit()
	release("v0.1.0", "error: v0.1.0 has an entry two.md already")
	git("tag", "v0.1.0")
	release("v0.1.0", "error: v0.1.0 is tagged already")
	release("v0.1.1", "released v0.1.1: 1 entries")
	want := "docs/changelog/README.md\ndocs/changelog/unreleased/.gitkeep\ndocs/changelog/v0.1.0/one.md\ndocs/changelog/v0.1.0/two.md\ndocs/changelog/v0.1.1/two.md\n"
	if got := git("ls-files", "docs"); got != want {
		t.Errorf("the changelog has\n%s", got)
	}
	text, err := os.ReadFile(filepath.Join(dir, "cmd", "teamctl", "version.go"))
	if err != nil || !regexp.MustCompile(`(?m)^const release = "v0\.1\.1"$`).Match(text) {
		t.Errorf("%v: %s", err, text)
	}
	put("left", "")
	out, err := run("scripts/release", "v0.2.0")
	if err == nil || !strings.Contains(out, "the working tree has changes") {
		t.Errorf("with a change: %v: %s", err, out)
	}
}
