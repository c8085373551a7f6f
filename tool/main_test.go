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
// kills itself at a step, or waits there: "HOME STEP" and "HOME STEP wait".
const envCreate = "TEAMCTL_TEST_CREATE"

func TestMain(m *testing.M) {
	if spec := os.Getenv(envCreate); spec != "" {
		os.Exit(createChild(strings.Fields(spec)))
	}
	os.Exit(m.Run())
}

func createChild(spec []string) int {
	e := &Env{Home: team.Home{Dir: spec[0]}, step: func(step string) {
		switch {
		case step != spec[1]:
			return
		case len(spec) > 2: // until its input ends
			fmt.Println("here")
			_, _ = os.Stdin.Read(make([]byte, 1))
		default:
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}}
	if _, err := e.TeamCreate(context.Background(), Person(), TeamCreateIn{TeamName: "demo", Description: "first"}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return team.ExitStatus(err)
	}
	return 0
}
