package teamfile

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRepos(t *testing.T) {
	t.Parallel()
	f, err := Parse("t.yaml", []byte("team: demo\nrepo: .\nrepos: {api: ../api, web-2: ../web}\nmembers:\n"+
		"  - {name: a, repo: api}\n  - {name: b, worktree: false}\n  - {name: c, worktree: true}\n  - {name: d, worktree: ../there}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(Repos{"api": "../api", "web-2": "../web"}, f.Repos); d != "" {
		t.Error(d)
	}
	got := map[string]string{}
	for _, m := range f.Members {
		got[m.Name] = m.Repo + " " + m.WorktreeMode
	}
	if d := cmp.Diff(map[string]string{"a": "api ", "b": " none", "c": " own", "d": " ../there"}, got); d != "" {
		t.Error(d)
	}
	for text, why := range map[string]string{
		"repos: {api: ''}":                                 "repository api has no path",
		"repos: {Api: x}":                                  `"Api" cannot name a repository`,
		"repos: {a: x, a: y}":                              `"a" is given twice`,
		"repos: [x]":                                       "repos",
		"repos: {a: [x]}":                                  "repository a",
		"repos: {api: x}\nmembers: [{name: m}]":            "which repository is m to work on?",
		"members: [{name: m, repo: api}]":                  `repo names no repository: "api"`,
		"members: [{name: m, repo: apo}]\nrepos: {api: x}": `did you mean api?`,
	} {
		_, err := Parse("t.yaml", []byte("team: demo\n"+text+"\n"))
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
