package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/teamctl/teamctl/internal/tui"
	"github.com/teamctl/teamctl/team"
)

func testOutput(json bool) (*output, *bytes.Buffer, *bytes.Buffer) {
	var out, err bytes.Buffer
	return &output{stdout: &out, stderr: &err, json: json}, &out, &err
}

func TestOutputError(t *testing.T) {
	t.Parallel()
	coded := team.Errorf(team.CodeConflict, "claim task 3: %w", errors.New("already\x1b[2J claimed")).
		WithReason("already_claimed").WithHint("teamctl task ls")
	for name, c := range map[string]struct {
		err       error
		json      bool
		out, errs string
	}{
		"coded":   {err: coded, errs: "teamctl: error: claim task 3: already\\x1b[2J claimed\nteamctl: hint: teamctl task ls\n"},
		"wrapped": {err: fmt.Errorf("outer: %w", coded), errs: "teamctl: error: outer: claim task 3: already\\x1b[2J claimed\nteamctl: hint: teamctl task ls\n"},
		"several": {err: errors.Join(errors.New("a"), errors.New("b")), errs: "teamctl: error: a\nteamctl: error: b\n"},
		"json": {err: coded, json: true, out: `{
  "error": {
    "code": "conflict",
    "message": "claim task 3: already\u001b[2J claimed",
    "reason": "already_claimed",
    "hint": "teamctl task ls"
  }
}
`},
		"json uncoded": {err: context.DeadlineExceeded, json: true, out: `{
  "error": {
    "code": "timeout",
    "message": "context deadline exceeded"
  }
}
`},
	} {
		t.Run(name, func(t *testing.T) {
			o, out, errs := testOutput(c.json)
			o.error(c.err)
			if out.String() != c.out {
				t.Errorf("stdout %q, want %q", out, c.out)
			}
			if errs.String() != c.errs {
				t.Errorf("stderr %q, want %q", errs, c.errs)
			}
		})
	}
}

func TestOutputTable(t *testing.T) {
	t.Parallel()
	o, out, _ := testOutput(false)
	o.style = tui.NewStyle(true)
	o.table([]string{"NAME", "WHAT"}, [][]string{{"数据", "wide"}, {o.style.Red("red"), "coloured"}, {"x", ""}, {"y", "\x1b[31m\u202e\u200b\n\u009b"}}, false)
	want := "\x1b[2mNAME  WHAT\x1b[0m\n数据  wide\n\x1b[31mred\x1b[0m   coloured\nx\ny     \\x1b[31m\\u202e\\u200b\\n\\u009b\n"
	if out.String() != want {
		t.Errorf("got\n%q\nwant\n%q", out, want)
	}
}

// TestOutputJSONIsAlone checks that --json writes only JSON to standard output.
func TestOutputJSONIsAlone(t *testing.T) {
	t.Parallel()
	o, out, _ := testOutput(true)
	o.line("for people")
	if !o.value(map[string]string{"run": "a < b && c"}) {
		t.Error("value did not write")
	}
	if want := "{\n  \"run\": \"a < b && c\"\n}\n"; out.String() != want {
		t.Errorf("%q, want %q", out, want)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("disk full") }

// TestOutputBrokenStdout checks that a command fails if it cannot write its result.
func TestOutputBrokenStdout(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"version"}, {"version", "--json"}} {
		var errs bytes.Buffer
		a := &app{out: &output{stdout: broken{}, stderr: &errs, json: wantsJSON(args)}, stdin: strings.NewReader("")}
		if got := a.run(t.Context(), args); got != 7 {
			t.Errorf("%v: exit status %d, want 7 (%s)", args, got, &errs)
		}
	}
}

func TestColorful(t *testing.T) {
	for _, c := range []struct {
		no, term string
		want     bool
	}{{"", "xterm", true}, {"1", "xterm", false}, {"", "dumb", false},
		{"", "", true}, {"", "linux", true}, {"", "vt100", false}, {"", "vt100-nav", false}, {"", "vt220", false}, {"", "screen-256color", true},
		{"", "xterm-mono", false}, {"", "linux-m", false}} {
		t.Setenv("NO_COLOR", c.no)
		t.Setenv("TERM", c.term)
		if got := colorful(); got != c.want {
			t.Errorf("NO_COLOR=%q TERM=%q: %v", c.no, c.term, got)
		}
	}
}

func TestWantsJSON(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]bool{
		"ps --json": true, "--json ps": true, "ps": false, "spawn x -- prog --json": false, "ps --json=true": true,
	} {
		if got := wantsJSON(strings.Fields(args)); got != want {
			t.Errorf("%s: %v", args, got)
		}
	}
}

// TestCommandsTeach checks that every verb has an example and every top-level command a group,
// and that examples name existing verbs.
func TestCommandsTeach(t *testing.T) {
	t.Parallel()
	o, _, _ := testOutput(false)
	root := (&app{out: o, stdin: strings.NewReader("")}).root(nil)
	for _, c := range root.Commands() {
		if c.Hidden || c.Name() == "help" || c.Name() == "completion" {
			continue
		}
		if c.Example == "" && !c.HasSubCommands() { // the examples of a noun are those of its verbs
			t.Errorf("%s has no example", c.CommandPath())
		}
		if c.GroupID == "" {
			t.Errorf("%s has no group", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			if sub.Example == "" {
				t.Errorf("%s has no example", sub.CommandPath())
			}
		}
		for _, line := range strings.Split(c.Example, "\n") {
			words := strings.Fields(line)
			i := 0
			for i < len(words) && words[i] != "teamctl" {
				i++
			}
			if i+1 >= len(words) {
				continue
			}
			if found, _, err := root.Find(words[i+1 : i+2]); err != nil || found == root {
				t.Errorf("%s: the example %q names no verb", c.CommandPath(), line)
			}
		}
	}
}

// TestFirstFailureIsKept: what fails while something else is written does not hide that output failed, and
// writers at the same time are no race.
func TestFirstFailureIsKept(t *testing.T) {
	t.Parallel()
	_, closed := io.Pipe()
	_ = closed.Close()
	o := &output{stdout: closed}
	var g sync.WaitGroup
	for range 8 {
		g.Go(func() { o.text("x") })
	}
	g.Wait()
	o.encode(func() {}, "") // no JSON
	if got := team.CodeOf(o.failure()); got != team.CodeUnavailable {
		t.Errorf("%v", o.failure())
	}
}
