package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/teamctl/teamctl/internal/control"
	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/supervisor"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// TestViewOverTheSocket follows the screens of members in tmux and on PTYs over the supervisor's
// socket, across a kill of the supervisor, which does not wait for them when it is told to end.
func TestViewOverTheSocket(t *testing.T) {
	r := newFaultRig(t)
	program := []string{"sh", "-c", `printf '\033[32mready\033[0m\033]0;title\007\n'; exec cat`}
	r.agent("a", "never", program...)
	r.teamctl(append([]string{"spawn", "b", "--backend", "pty", "--worktree", "none", "--restart", "never", "--"}, program...)...)
	runtime, err := filepath.Glob(r.dir + "/r/*/s") // that of this process is another
	if err != nil || len(runtime) != 1 {
		t.Fatalf("%v: %v", runtime, err)
	}
	env := &tool.Env{Home: team.Home{Dir: r.dir + "/t"}, Dial: func(context.Context, team.Layout, bool) (tool.Supervisor, error) {
		return control.NewClient(runtime[0]), nil
	}}
	opened, err := env.Open(t.Context(), "f")
	if err != nil {
		t.Fatal(err)
	}
	s := &screenTeam{team: opened, env: env, key: "f"}
	defer s.close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	type shown struct {
		of   string
		text string
	}
	frames, ended := make(chan shown, 100), make(chan error, 2)
	for _, name := range []string{"a", "b"} {
		go func() {
			ended <- s.Screen(ctx, name, func(f view.Frame) { frames <- shown{name, strings.Join(f.Lines, "\n")} })
		}()
	}
	both := func(want string) {
		t.Helper()
		seen := map[string]bool{}
		for len(seen) < 2 {
			select {
			case f := <-frames:
				if strings.Contains(f.text, "title") {
					t.Errorf("%q", f)
				}
				if strings.Contains(f.text, want) {
					seen[f.of] = true
				}
			case err := <-ended:
				t.Fatal(err)
			case <-ctx.Done():
				t.Fatalf("only %v have shown %q", seen, want)
			}
		}
	}
	both("\x1b[0;32mready\x1b[0m")
	client := control.NewClient(runtime[0])
	defer client.Close()
	say := func(text string) {
		t.Helper()
		for _, name := range []string{"a", "b"} {
			if err := client.TypeText(ctx, name, text, true); err != nil {
				t.Fatal(err)
			}
		}
	}
	say("first")
	both("first")
	r.gone(syscall.SIGKILL)
	r.teamctl("ps") // the next supervisor
	say("second")
	both("second")

	quit := make(chan error, 1)
	err = client.View(ctx, "a", func([]string) {
		go func() { quit <- client.Quit(ctx, false) }()
	})
	if err := <-quit; err != nil {
		t.Error(err)
	}
	if !supervisor.IsStopped(err) {
		t.Errorf("it was told to end: %v", err)
	}
	cancel()
	for range 2 {
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}
