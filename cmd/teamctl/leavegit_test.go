package main

import (
	"os"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// A command that a git hook calls starts nothing with the hook's variables; a member keeps what it
// was given.
func TestLeaveGit(t *testing.T) {
	t.Setenv("GIT_INDEX_FILE", ".git/index")
	t.Setenv("GIT_AUTHOR_DATE", "@1 +0000")
	t.Setenv("GIT_AUTHOR_NAME", "Hook")
	t.Setenv("GIT_SSH_COMMAND", "ssh -4")
	has := func(want map[string]bool) {
		t.Helper()
		for name, set := range want {
			if _, is := os.LookupEnv(name); is != set {
				t.Errorf("%s is set: %v", name, is)
			}
		}
	}
	t.Setenv(team.EnvGen, "g")
	leaveGit()
	has(map[string]bool{"GIT_INDEX_FILE": true, "GIT_AUTHOR_DATE": true, "GIT_AUTHOR_NAME": true, "GIT_SSH_COMMAND": true})
	t.Setenv(team.EnvGen, "")
	leaveGit()
	has(map[string]bool{"GIT_INDEX_FILE": false, "GIT_AUTHOR_DATE": false, "GIT_AUTHOR_NAME": false, "GIT_SSH_COMMAND": true})
}
