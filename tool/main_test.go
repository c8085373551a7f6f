package tool

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// envCreate makes this test binary a process that creates the team "demo" in a home and
// kills itself at a step, or waits there: "HOME STEP" and "HOME STEP wait". With "HOME STEP
// recover" it recovers the team's ledger and kills itself at the step.
const envCreate = "TEAMCTL_TEST_CREATE"

func TestMain(m *testing.M) {
	if spec := os.Getenv(envCreate); spec != "" {
		os.Exit(createChild(strings.Fields(spec)))
	}
	for k, v := range map[string]string{
		"HOME": "/nonexistent", "XDG_CONFIG_HOME": "/nonexistent", "GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_NOSYSTEM": "1",
		"GIT_AUTHOR_NAME": "T", "GIT_AUTHOR_EMAIL": "t@example.org", "GIT_COMMITTER_NAME": "T", "GIT_COMMITTER_EMAIL": "t@example.org",
	} {
		if err := os.Setenv(k, v); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

func createChild(spec []string) int {
	e := &Env{Home: team.Home{Dir: spec[0]}, step: func(step string) {
		switch {
		case step != spec[1]:
			return
		case len(spec) > 2 && spec[2] == "wait": // until its input ends
			fmt.Println("here")
			_, _ = os.Stdin.Read(make([]byte, 1))
		default:
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}}
	var err error
	if len(spec) > 2 && spec[2] == "recover" {
		_, err = e.LedgerRecover(context.Background(), Person(), "demo")
	} else {
		_, err = e.TeamCreate(context.Background(), Person(), TeamCreateIn{TeamName: "demo", Description: "first"})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return team.ExitStatus(err)
	}
	return 0
}
