package courier

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/strays"
	"github.com/teamctl/teamctl/team"
)

// errLate is the error of a program that has not answered in time.
var errLate = team.Errorf(team.CodeUnavailable, "late").WithReason(team.ReasonVersionLate)

// learning runs a learner for a generation without a version, and returns how often it asked
// within a day, and what it reported.
func learning(t *testing.T, b team.Bundle, answer func(n int) (string, error)) (asked int, seen []team.Observation) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := Facts{Bundle: b, Name: "a", Generation: "g1", Log: slog.New(slog.DiscardHandler), Link: adapter.Link{Generation: "g1", Assumed: "2.1.34"}}
		f.Probe = func(context.Context) (string, error) {
			asked++
			return answer(asked)
		}
		l := newLearner(f, func(o team.Observation) { seen = append(seen, o) })
		f.learn = l
		if v := f.Version(); v.Known() {
			t.Errorf("its version is %s before it was asked", v)
		}
		Pause(t.Context(), 24*time.Hour)
		l.close()
	})
	return asked, seen
}

// A program that has not printed its version in time is asked until it does; then hooks and the
// next supervisor have the version, and held mail is tried again.
func TestVersionIsLearned(t *testing.T) {
	t.Parallel()
	b := team.Bundle(t.TempDir())
	if err := WriteLink(b, adapter.Link{Agent: "claude", Generation: "g1", Assumed: "2.1.34"}); err != nil {
		t.Fatal(err)
	}
	asked, seen := learning(t, b, func(n int) (string, error) {
		if n < 3 {
			return "", errLate
		}
		return "2.1.329 (Claude Code)", nil
	})
	if asked != 3 || len(seen) != 1 {
		t.Errorf("asked %d times, reported %+v", asked, seen)
	}
	link, err := ReadLink(b, "g1")
	if err != nil || link.Version != "2.1.329" || link.StartedAs() != (adapter.Version{2, 1, 34}) {
		t.Errorf("link %+v, %v", link, err)
	}
	// The version of one generation does not apply to another.
	if err := WriteLink(b, adapter.Link{Agent: "claude", Generation: "g2", Assumed: "2.1.34"}); err != nil {
		t.Fatal(err)
	}
	if link, err := ReadLink(b, "g2"); err != nil || link.Version != "" {
		t.Errorf("link %+v, %v", link, err)
	}
}

// The learner stops: at once if the answer would be the same, and after a while if there is none.
func TestVersionIsNotAskedForEver(t *testing.T) {
	t.Parallel()
	if asked, seen := learning(t, team.Bundle(t.TempDir()), func(int) (string, error) { return "", errLate }); asked != learnTries || len(seen) > 0 {
		t.Errorf("asked %d times, reported %+v", asked, seen)
	}
	if asked, _ := learning(t, team.Bundle(t.TempDir()), func(int) (string, error) { return "no version", nil }); asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}

// A program that does not answer in time is planned as the oldest supported version, once: if that
// start was never heard of, the next one goes the safest way.
func TestLateVersionIsAssumedOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "claude")
	if err := strays.WriteProgram(program, []byte("#!/bin/sh\nexec sleep 600\n")); err != nil {
		t.Fatal(err)
	}
	layout := team.Home{Dir: dir}.Team("demo")
	plan := func(generation string) (adapter.Output, adapter.Input) {
		t.Helper()
		in := adapter.Input{Layout: layout, Team: "demo", Name: "a", Dir: dir, Generation: generation, Environ: []string{"PATH=" + os.Getenv("PATH")},
			MemberSpec: team.MemberSpec{Agent: "claude", Env: map[string]string{adapter.ProgramVariable("claude"): program}}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second) // as if versionWithin had passed
		defer cancel()
		l := adapter.Launcher{Exe: "/bin/teamctl"}
		in, err := Prepare(ctx, l, in)
		if err != nil {
			t.Fatal(err)
		}
		out, err := l.Plan(in)
		if err == nil {
			err = WriteFiles(layout.Bundle("a"), out)
		}
		if err != nil {
			t.Fatal(err)
		}
		return out, in
	}
	first, _ := plan("g1")
	if first.Link.Version != "" || first.Link.Assumed != "2.1.34" || first.Link.Ways[0] != adapter.WayHooks || len(first.Notes) == 0 {
		t.Errorf("%+v, notes %q", first.Link, first.Notes)
	}
	if out, _ := plan("g2"); out.Link.Assumed != "" || out.Link.Ways[0] != adapter.WayTyping {
		t.Errorf("after a start of which nothing was heard: %+v", out.Link)
	}
	plan("g3")
	if err := WriteConversation(layout.Bundle("a"), Conversation{Session: "s", Generation: "g3"}); err != nil {
		t.Fatal(err)
	}
	if out, _ := plan("g4"); out.Link.Assumed == "" {
		t.Errorf("after a start that was heard of: %+v", out.Link)
	}
}
