package worktree

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/teamctl/teamctl/team"
)

func TestOpenRepo(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.create("w")
	f.must(os.Symlink(f.root, f.path("link")))
	for _, p := range []string{f.root, f.path("main/sub"), w.Path, f.path("wt/w/sub"), f.path("link"), f.path("main/.git")} {
		r, err := OpenRepo(f.ctx(), p)
		f.must(err)
		if r.Root() != f.root || r.common != f.path("main/.git") || r.bare {
			t.Errorf("%s: %+v", p, r)
		}
	}
	f.must(os.Mkdir(f.path("empty"), 0o755))
	f.must(os.Mkdir(f.path(".git"), 0o755)) // not a repository
	f.git(f.dir, "init", "--quiet", f.path("unborn"))
	f.write("broken/.git", "gitdir: /nowhere\n")
	f.write("file", "")
	for _, c := range []struct {
		path   string
		code   team.Code
		reason string
	}{
		{"nope", team.CodeNotFound, team.ReasonPathMissing},
		{"file", team.CodeInvalid, team.ReasonInvalidPath},
		{"empty", team.CodeInvalid, team.ReasonNotRepository},
		{"unborn", team.CodeInvalid, team.ReasonUnbornHead},
		{"broken", team.CodeInvalid, team.ReasonUnreadableRepo},
	} {
		_, err := OpenRepo(f.ctx(), f.path(c.path))
		wantErr(t, err, c.code, c.reason)
		if c.reason != team.ReasonInvalidPath && team.HintOf(err) == "" {
			t.Errorf("%s: no hint", c.path)
		}
	}
}

func TestGitMissing(t *testing.T) {
	f := newFixture(t)
	path := os.Getenv("PATH")
	t.Setenv("PATH", f.dir)
	_, err := OpenRepo(f.ctx(), f.root)
	wantErr(t, err, team.CodeUnavailable, team.ReasonGitMissing)
	_, err = Check(f.ctx())
	wantErr(t, err, team.CodeUnavailable, team.ReasonGitMissing)
	f.write("git", "#!/bin/sh\necho git version 2.11.0\n")
	f.must(os.Chmod(f.path("git"), 0o755))
	v, err := Check(f.ctx())
	wantErr(t, err, team.CodeUnavailable, team.ReasonGitTooOld)
	if v != "2.11.0" {
		t.Error(v)
	}
	t.Setenv("PATH", path)
	if v, err := Check(f.ctx()); err != nil || v == "" {
		t.Error(v, err)
	}
}

// The caller may itself run inside a hook or an agent that sets git variables.
func TestEnvironment(t *testing.T) {
	f := newFixture(t)
	for k, v := range map[string]string{"GIT_DIR": "/nowhere", "GIT_INDEX_FILE": "/nowhere/index", "GIT_WORK_TREE": "/", "GIT_TRACE": "1",
		"GIT_AUTHOR_NAME": "Mallory", "LANG": "de_DE.UTF-8", "GIT_CONFIG_PARAMETERS": "'core.bare=true'"} {
		t.Setenv(k, v)
	}
	head, err := f.repo.Head(f.ctx())
	f.must(err)
	if len(head) != 40 {
		t.Error(head)
	}
	got := gitEnv([]string{"PATH=/bin", "GIT_DIR=x", "GIT_SSH=y", "GIT_SSL_NO_VERIFY=1", "LC_MESSAGES=de", "LANGUAGE=de"}, true)
	want := []string{"PATH=/bin", "GIT_SSH=y", "GIT_SSL_NO_VERIFY=1", "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_EDITOR=true",
		"GIT_MERGE_AUTOEDIT=no", "GIT_OPTIONAL_LOCKS=0"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if slices.Contains(gitEnv(nil, false), "GIT_OPTIONAL_LOCKS=0") {
		t.Error("a write without its locks")
	}
	for _, k := range []string{"GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_TRACE", "GIT_CONFIG_PARAMETERS"} {
		f.must(os.Unsetenv(k)) // the fixture's own git must not see them; t.Setenv restores them
	}
}

func TestRevisions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first, err := f.repo.Head(f.ctx())
	f.must(err)
	f.write("main/c.txt", "c")
	f.commitMain("second")
	second := f.head(f.root)
	for rev, want := range map[string]string{"HEAD": second, "main~1": first, first[:10]: first} {
		if got, err := f.repo.Resolve(f.ctx(), rev); err != nil || got != want {
			t.Errorf("%s: %s %v", rev, got, err)
		}
	}
	for _, rev := range []string{"nope", strings.Repeat("1", 40), "HEAD:a.txt"} {
		_, err := f.repo.Resolve(f.ctx(), rev)
		wantErr(t, err, team.CodeNotFound, team.ReasonUnknownRev)
	}
	for _, rev := range []string{"", "--all", "a\nb"} {
		_, err := f.repo.Resolve(f.ctx(), rev)
		wantErr(t, err, team.CodeInvalid, team.ReasonUnknownRev)
	}
	for _, c := range []struct {
		a, b string
		want bool
	}{{first, second, true}, {second, first, false}, {first, first, true}} {
		if got, err := f.repo.IsAncestor(f.ctx(), c.a, c.b); err != nil || got != c.want {
			t.Errorf("%v: %v %v", c, got, err)
		}
	}
	if _, err := f.repo.IsAncestor(f.ctx(), "nope", first); err == nil {
		t.Error("an unknown commit is no ancestor and no non-ancestor")
	}
	loose := f.git(f.root, "commit-tree", "-m", "loose", second+"^{tree}")
	for commit, want := range map[string]bool{first: true, loose: false} {
		if got, err := f.contained(commit); err != nil || got != want {
			t.Errorf("%s: %v %v", commit, got, err)
		}
	}
	// A snapshot may be dropped, so it does not contain a commit for good. A
	// tag does.
	f.git(f.root, "update-ref", "refs/teamctl/rescue/t/a/x", loose)
	if got, err := f.contained(loose); err != nil || got {
		t.Error(got, err)
	}
	f.git(f.root, "tag", "keep", loose)
	if got, err := f.contained(loose); err != nil || !got {
		t.Error(got, err)
	}
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx, cancel := context.WithDeadline(f.ctx(), time.Now().Add(-time.Second))
	defer cancel()
	_, err := f.repo.Head(ctx)
	wantErr(t, err, team.CodeTimeout, team.ReasonTimeout)
	_, err = f.repo.Create(ctx, CreateIn{Path: f.path("wt/w"), Branch: "b"})
	wantErr(t, err, team.CodeTimeout, team.ReasonTimeout)
}

func TestList(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	head := f.git(f.root, "rev-parse", "HEAD")
	f.create("a")
	_, err := f.repo.Create(f.ctx(), CreateIn{Path: f.path("wt/line\there"), Base: head})
	f.must(err)
	b := f.create("b")
	f.git(f.root, "worktree", "lock", "--reason", "on a disk", b.Path)
	f.must(os.Rename(b.Path, f.path("away")))
	got, err := f.repo.List(f.ctx())
	f.must(err)
	want := []Registered{
		{Path: f.root, Head: head, Branch: "main", Main: true},
		{Path: f.path("wt/a"), Head: head, Branch: "team/a"},
		{Path: f.path("wt/b"), Head: head, Branch: "team/b", Locked: true, LockReason: "on a disk", Missing: true},
		{Path: f.path("wt/line\there"), Head: head, Detached: true},
	}
	byPath := cmpopts.SortSlices(func(a, b Registered) bool { return a.Path < b.Path })
	if d := cmp.Diff(want, got, byPath); d != "" {
		t.Error(d)
	}
	f.must(os.Rename(f.path("away"), b.Path))
	old := parseList([]byte("worktree /r\nHEAD 0000000000000000000000000000000000000000\nbranch refs/heads/main\n\nworktree /w\nHEAD abc\ndetached\nprunable gone\n\n"), '\n')
	if d := cmp.Diff([]Registered{{Path: "/r", Branch: "main", Main: true}, {Path: "/w", Head: "abc", Detached: true}}, old); d != "" {
		t.Error(d)
	}
}

// contained reports whether a commit is reachable from what a removal may rely on.
func (f *fixture) contained(commit string) (bool, error) {
	n, err := f.repo.uncontained(f.ctx(), commit, "", "")
	return n == 0, err
}
