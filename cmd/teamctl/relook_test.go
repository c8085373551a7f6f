package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/team"
)

// ownHome gives the test a home and a runtime directory of its own.
func ownHome(t *testing.T) {
	t.Helper()
	t.Setenv(team.EnvHome, t.TempDir())
	t.Setenv(team.EnvRuntime, t.TempDir())
	for _, name := range []string{team.EnvTeam, team.EnvAgentID, team.EnvToken} {
		t.Setenv(name, "")
	}
}

// command runs a command line in this process and returns its output.
func command(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	a := &app{out: &output{stdout: &out, stderr: &errs, json: wantsJSON(args)}, stdin: strings.NewReader("")}
	if code := a.run(t.Context(), args); code != 0 {
		t.Fatalf("teamctl %s: exit status %d\n%s%s", strings.Join(args, " "), code, out.String(), errs.String())
	}
	return out.String()
}

// TestWatchedListFollows checks that a watched list writes new elements when they appear, and
// exits when the listed team is deleted.
func TestWatchedListFollows(t *testing.T) {
	ownHome(t)
	command(t, "create", "demo")
	command(t, "task", "add", "one")
	for _, c := range []struct {
		args []string
		do   [][]string // each causes the next line
		want []string
		ends bool // with the team
	}{
		{
			args: []string{"task", "ls", "--watch", "-o", "name", "--team", "demo"},
			do:   [][]string{{"task", "add", "two"}, {"delete", "demo"}}, want: []string{"1", "2"}, ends: true,
		},
		{
			args: []string{"team", "ls", "-w", "-o", "name"},
			do:   [][]string{{"create", "other"}, {"create", "third"}}, want: []string{"other", "third"},
		},
	} {
		if !c.ends {
			command(t, "create", "first")
			c.want = append([]string{"first"}, c.want...)
		}
		r, w := io.Pipe()
		a := &app{out: &output{stdout: w, stderr: io.Discard}, stdin: strings.NewReader("")}
		ctx, stop := a.signals(context.Background())
		done := make(chan int, 1)
		go func() {
			code := a.run(ctx, c.args)
			_ = w.Close()
			done <- code
		}()
		lines := make(chan string)
		go func() {
			defer close(lines)
			for s := bufio.NewScanner(r); s.Scan(); {
				lines <- s.Text()
			}
		}()
		for i, want := range c.want {
			select {
			case got, ok := <-lines:
				if !ok || got != want {
					t.Fatalf("%v: line %q, want %q", c.args, got, want)
				}
			case <-time.After(patience):
				t.Fatalf("%v: no line %q", c.args, want)
			}
			if i < len(c.do) {
				command(t, c.do[i]...)
			}
		}
		if !c.ends {
			_ = r.Close() // the reader has exited
			command(t, "create", "fourth")
		}
		select {
		case code := <-done:
			if c.ends != (code == 0) {
				t.Errorf("%v: exit status %d", c.args, code)
			}
		case <-time.After(patience):
			t.Fatalf("%v did not end", c.args)
		}
		stop()
		for range lines {
			t.Errorf("%v: a line too many", c.args)
		}
	}
}

// TestReviser checks that each new line is written once in a format for programs, and that a new
// text for people follows an empty line.
func TestReviser(t *testing.T) {
	t.Parallel()
	var out, notes bytes.Buffer
	r := reviser{out: &output{stdout: &out, stderr: &notes, format: formatName}}
	for _, text := range []string{"1\n2\n", "1\n2\n", "2\n3\n", "1\n"} {
		r.show(text, "")
	}
	if got, want := out.String(), "1\n2\n3\n1\n"; got != want {
		t.Errorf("names: %q, want %q", got, want)
	}
	out.Reset()
	r = reviser{out: &output{stdout: &out, stderr: &notes}}
	r.show("a\n", "none\n")
	r.show("a\n", "none\n")
	r.show("b\n", "")
	if got, want := out.String(), "a\n\nb\n"; got != want || notes.String() != "none\n" {
		t.Errorf("text: %q, want %q; notes %q", got, want, notes.String())
	}
}
