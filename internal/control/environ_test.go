package control

import (
	"os"
	"slices"
	"testing"

	"github.com/teamctl/teamctl/team"
)

func TestOriginOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		env  []string
		want Origin
	}{
		{[]string{"HOME=/h", "TEAMCTL_HOME=/t"}, FromPerson},
		{[]string{team.EnvGen + "=g"}, FromMember},
		{[]string{team.EnvAgentID + "=a@t", team.EnvGen + "=g"}, FromMember},
		{[]string{team.EnvGen + "=", team.EnvAgentID + "=a@t"}, FromProgram}, // it has joined
		{[]string{team.EnvDetached + "=1"}, FromProgram},
	} {
		if got := OriginOf(c.env); got != c.want {
			t.Errorf("%q: %d, want %d", c.env, got, c.want)
		}
	}
}

// Whose environment a supervisor gets, and what of it is recorded.
func TestPersonEnv(t *testing.T) {
	t.Parallel()
	l := newTeam(t)
	person := []string{"HOME=/h", "KEY=a\nb", "TMUX=x", team.EnvTeam + "=t"}
	member := []string{"HOME=/m", "KEY=member", team.EnvGen + "=g", team.EnvToken + "=secret"}
	check := func(from Origin, own, want []string, record bool) {
		t.Helper()
		env, rec, err := personEnv(l, from, own)
		if err != nil || !slices.Equal(env, want) || rec != record {
			t.Errorf("%q, recorded %v, %v; want %q, %v", env, rec, err, want, record)
		}
	}
	if _, _, err := personEnv(l, FromMember, member); !team.IsCode(err, team.CodeUnavailable) || team.ReasonOf(err) != team.ReasonNoEnviron {
		t.Errorf("a member, and nothing recorded: %v", err)
	}
	check(FromProgram, person, []string{"HOME=/h", "KEY=a\nb"}, true) // there is none better
	check(FromPerson, person, []string{"HOME=/h", "KEY=a\nb"}, true)
	if err := record(l, []string{"HOME=/h", "KEY=a\nb"}); err != nil {
		t.Fatal(err)
	}
	check(FromMember, member, []string{"HOME=/h", "KEY=a\nb"}, false)
	check(FromProgram, []string{"HOME=/less"}, []string{"HOME=/h", "KEY=a\nb"}, false)
	check(FromPerson, []string{"HOME=/new"}, []string{"HOME=/new"}, true)
	// A command of the person's that git has called, as a hook: what git has set for it is not the
	// person's, and was not when an older teamctl recorded it.
	hook := []string{"HOME=/h", "GIT_AUTHOR_NAME=Other", "GIT_AUTHOR_EMAIL=other@example.org", "GIT_AUTHOR_DATE=@1 +0000", "GIT_COMMITTER_NAME=Ann",
		"GIT_INDEX_FILE=.git/index", "GIT_PREFIX=", "GIT_EDITOR=:"}
	check(FromPerson, hook, []string{"HOME=/h", "GIT_COMMITTER_NAME=Ann"}, true)
	if err := record(l, hook); err != nil {
		t.Fatal(err)
	}
	check(FromMember, member, []string{"HOME=/h", "GIT_COMMITTER_NAME=Ann"}, false)
	fi, err := os.Stat(l.SupervisorEnv())
	if err != nil || fi.Mode() != 0o600 {
		t.Errorf("%v, %v", fi, err)
	}
	// One that is not whole is none.
	if err := os.WriteFile(l.SupervisorEnv(), []byte("HOME=/h\x00KEY=a"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := personEnv(l, FromMember, member); team.ReasonOf(err) != team.ReasonNoEnviron {
		t.Errorf("a member, and half a record: %v", err)
	}
}

// A supervisor that a service manager has started gets what it lacks, and keeps what it has.
func TestComplete(t *testing.T) {
	l := newTeam(t)
	t.Setenv("TEST_OF_THE_UNIT", "unit")
	t.Setenv("TEST_OF_THE_PERSON", "")
	if err := os.Unsetenv("TEST_OF_THE_PERSON"); err != nil { // t.Setenv puts it back
		t.Fatal(err)
	}
	if err := Complete(l); err != nil {
		t.Errorf("nothing recorded: %v", err)
	}
	if err := record(l, []string{"TEST_OF_THE_UNIT=person", "TEST_OF_THE_PERSON=person"}); err != nil {
		t.Fatal(err)
	}
	if err := Complete(l); err != nil {
		t.Fatal(err)
	}
	if a, b := os.Getenv("TEST_OF_THE_UNIT"), os.Getenv("TEST_OF_THE_PERSON"); a != "unit" || b != "person" {
		t.Errorf("%q, %q", a, b)
	}
}
