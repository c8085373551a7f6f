package run

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/team"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(roleEnv); dir != "" {
		os.Exit(runInScope(dir))
	}
	goleak.VerifyTestMain(m)
}

func cmdOf(t *testing.T, command string, out *bytes.Buffer) Cmd {
	return Cmd{Command: command, Dir: t.TempDir(), Env: append(os.Environ(), "X=y"), Generation: team.NewUUID(), Stdin: []byte("in"), Stdout: out, Stderr: out, Grace: time.Second}
}

func TestEndings(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]Ended{
		`cat; echo " $X $PWD" >&2`: {},
		"exit 7":                   {Code: 7},
		"kill -KILL $$":            {Code: 137, Signal: "SIGKILL"},
		"sleep 600 & exit 3":       {Code: 3},
	} {
		var out bytes.Buffer
		c := cmdOf(t, command, &out)
		got, err := Run(t.Context(), c)
		if err != nil || got != want || got.OK() != (want == Ended{}) {
			t.Errorf("%s: %+v, %v", command, got, err)
		}
		if want.OK() && out.String() != "in y "+c.Dir+"\n" {
			t.Errorf("wrote %q", out.String())
		}
		if left := proc.ByGeneration(c.Generation); len(left) != 0 {
			t.Errorf("%s leaves %v", command, left)
		}
	}
	c := cmdOf(t, "true", nil)
	c.Dir = filepath.Join(c.Dir, "gone")
	if got, err := Run(t.Context(), c); err != nil || !errors.Is(got.Err, os.ErrNotExist) || got.OK() {
		t.Errorf("%+v, %v", got, err)
	}
}

// hide starts a process in a session of its own that ignores SIGTERM, with its
// pid in a file.
const hide = `setsid bash -c 'trap "" TERM; echo $$ > pid.new; mv pid.new pid; while :; do sleep 0.1; done' &
until test -e pid; do sleep 0.02; done; wait; exit 1`

// A process that hides in a session of its own and ignores SIGTERM is ended
// too: at the limit, when ctx ends, and by another process.
func TestAllOfItIsEnded(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"limit", "cut", "left"} {
		t.Run(how, func(t *testing.T) {
			var out bytes.Buffer
			c := cmdOf(t, hide, &out)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if how == "limit" {
				c.Limit = time.Second
			}
			type result struct {
				Ended
				err error
			}
			ended := make(chan result, 1)
			go func() {
				e, err := Run(ctx, c)
				ended <- result{e, err}
			}()
			pid := 0
			if how != "limit" {
				pid = waitFor(t, filepath.Join(c.Dir, "pid"))
			}
			switch how {
			case "cut":
				cancel()
			case "left":
				if err := End(nil, c.Generation, 0); err != nil {
					t.Error(err)
				}
			}
			r := <-ended
			if r.err != nil || r.OK() || r.Late != (how == "limit") || r.Cut != (how == "cut") {
				t.Errorf("%+v", r)
			}
			if left := proc.ByGeneration(c.Generation); len(left) != 0 {
				t.Errorf("left: %v", left)
			}
			if _, err := proc.Identify(pid); pid != 0 && err == nil {
				t.Errorf("%d lives", pid)
			}
		})
	}
}

// What a command leaves in the background is asked to end first, and what it writes
// until it has ended is kept. A command of a member is found by both generations.
func TestLastWords(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	c := cmdOf(t, `setsid bash -c 'trap "echo last words; exit" TERM; touch on; while :; do sleep 0.1; done' 2>/dev/null &
until test -e on; do sleep 0.02; done; echo "$TEAMCTL_GENERATION $TEAMCTL_COMMAND"; exit 3`, &out)
	member := team.NewUUID()
	c.Env, c.Grace = append(c.Env, team.EnvGen+"="+member), time.Minute
	end, err := Run(t.Context(), c)
	if err != nil || end.Code != 3 || end.Why(0) != "exit 3" {
		t.Errorf("%+v, %v", end, err)
	}
	if want := member + " " + c.Generation + "\nlast words\n"; out.String() != want {
		t.Errorf("wrote %q, want %q", out.String(), want)
	}
	for _, gen := range []string{member, c.Generation} {
		if left := proc.ByGeneration(gen); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	}
}
