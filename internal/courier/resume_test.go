package courier

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/team"
)

// A program that refuses to resume its conversation begins another; one that was killed at its
// start, or that was heard of, resumes it.
func TestConversationThatIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		exit, heard string
		resumes     bool
	}{
		"refused":                    {`{"generation":"g2","known":true,"code":42}`, "g1", false},
		"killed":                     {`{"generation":"g2","known":true,"code":-1,"signal":"SIGKILL"}`, "g1", true},
		"ended well":                 {`{"generation":"g2","known":true,"code":0}`, "g1", true},
		"its exit is unknown":        {`{"generation":"g2","known":false,"code":1}`, "g1", true},
		"heard of, and then failed":  {`{"generation":"g2","known":true,"code":1}`, "g2", true},
		"the exit of one before it":  {`{"generation":"g1","known":true,"code":42}`, "g1", true},
		"nothing is known of an end": {``, "g1", true},
	} {
		dir := t.TempDir()
		program := filepath.Join(dir, "gemini")
		if err := os.WriteFile(program, []byte("#!/bin/sh\necho 0.61.0\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		layout := team.Home{Dir: dir}.Team("demo")
		b := layout.Bundle("a")
		l := adapter.Launcher{Exe: "/bin/teamctl"}
		plan := func(generation string) adapter.Input {
			t.Helper()
			in, err := Prepare(t.Context(), l, adapter.Input{
				Layout: layout, Team: "demo", Name: "a", Session: "s", Dir: dir, Generation: generation,
				Environ: []string{"PATH=" + os.Getenv("PATH")}, MemberSpec: team.MemberSpec{Agent: adapter.Gemini, Env: map[string]string{adapter.ProgramVariable(adapter.Gemini): program}},
			})
			if err != nil {
				t.Fatal(err)
			}
			out, err := l.Plan(in)
			if err == nil {
				err = WriteFiles(b, out)
			}
			if err != nil {
				t.Fatal(err)
			}
			return in
		}
		plan("g1")
		if err := WriteConversation(b, Conversation{Agent: adapter.Gemini, Session: "s", Generation: "g1", ID: "c", Began: true}); err != nil {
			t.Fatal(err)
		}
		if in := plan("g2"); in.Resume != "c" {
			t.Fatalf("%s: it goes on with %q", name, in.Resume)
		}
		if err := WriteConversation(b, Conversation{Agent: adapter.Gemini, Session: "s", Generation: c.heard, ID: "c", Began: true}); err != nil {
			t.Fatal(err)
		}
		if c.exit != "" {
			if err := os.WriteFile(b.Exit(), []byte(c.exit), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if in := plan("g3"); (in.Resume != "") != c.resumes {
			t.Errorf("%s: it goes on with %q", name, in.Resume)
		}
	}
}
