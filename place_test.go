package teamctl_test

import (
	"context"
	"errors"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/teamctl/teamctl"
	"github.com/teamctl/teamctl/internal/strays"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// demo is a team of an example's own, which nobody supervises yet.
func demo() (context.Context, *tool.Team, func()) {
	home, done, err := place()
	if err != nil {
		log.Fatal(err)
	}
	program, err := built()
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	env, err := teamctl.New(teamctl.Options{Home: home, Program: []string{program}})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := env.TeamCreate(ctx, tool.Person(), tool.TeamCreateIn{TeamName: "demo"}); err != nil {
		log.Fatal(err)
	}
	t, err := env.Open(ctx, "demo")
	if err != nil {
		log.Fatal(err)
	}
	return ctx, t, func() {
		err := t.Close()
		if _, derr := env.Delete(ctx, tool.Person(), "demo", tool.DeleteIn{Force: true}); err == nil {
			err = derr
		}
		cancel()
		done()
		if err != nil {
			log.Fatal(err)
		}
	}
}

// join makes this program a member of a team.
func join(ctx context.Context, t *tool.Team, name string) tool.Caller {
	joined, err := t.Join(ctx, tool.Person(), tool.JoinIn{Name: name})
	if err != nil {
		log.Fatal(err)
	}
	return tool.Caller{Name: joined.Member.Name, Session: joined.Member.SessionKey, Role: joined.Member.Role}
}

// place is a directory of an example's own, with sockets on short paths.
func place() (home string, done func(), err error) {
	dir, err := os.MkdirTemp(strays.Short(), "tc")
	if err != nil {
		return "", nil, err
	}
	before, was := os.LookupEnv(team.EnvRuntime)
	if err := os.Setenv(team.EnvRuntime, filepath.Join(dir, "r")); err != nil {
		return "", nil, err
	}
	return filepath.Join(dir, "home"), func() {
		if was {
			_ = os.Setenv(team.EnvRuntime, before)
		} else {
			_ = os.Unsetenv(team.EnvRuntime)
		}
		// A supervisor leaves a moment after its last answer.
		if err := errors.Join(strays.Gone(strays.Below(dir)), os.RemoveAll(dir)); err != nil {
			log.Print(err)
		}
	}, nil
}
