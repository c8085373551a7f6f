package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// scribble overwrites a part of a file.
func scribble(t *testing.T, path string, at int64, data []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := f.WriteAt(data, at); err != nil {
		t.Fatal(err)
	}
}

// TestLedgerRecovered checks that commands on a damaged or missing ledger name ledger recover,
// which rebuilds it: running agents are adopted, and the contents of a backup and of the
// mailboxes are restored.
func TestLedgerRecovered(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, path string){
		"malformed page": func(t *testing.T, path string) {
			fi, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			scribble(t, path, fi.Size()/4096/2*4096, bytes.Repeat([]byte{0x5a}, 4096))
			scribble(t, path, 4096, bytes.Repeat([]byte{0x5a}, 4096))
		},
		"truncated": func(t *testing.T, path string) { truncate(t, path, 5*4096) },
		"empty":     func(t *testing.T, path string) { truncate(t, path, 0) },
		"foreign": func(t *testing.T, path string) {
			if err := os.WriteFile(path, bytes.Repeat([]byte("this is not a database\n"), 1000), 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"missing": func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		},
	} {
		if testing.Short() && name != "malformed page" && name != "missing" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			r := newFaultRig(t)
			r.agent("a", "always", "fakeagent", "hold")
			r.teamctl("spawn", "p", "--backend", "pty", "--restart", "always", "--", "fakeagent", "hold")
			for _, subject := range []string{"one", "two", "three"} {
				r.teamctl("task", "add", subject)
			}
			first := r.send("a", "before the copy")
			r.teamctl("ledger", "backup")
			second := r.send("a", "after the copy")
			before := r.members()
			place := r.place()
			r.kill(r.supervisor())
			checkpoint(t, r.layout)
			for _, end := range []string{"-wal", "-shm"} {
				_ = os.Remove(r.layout.Ledger() + end) // everything is in the file
			}
			damage(t, r.layout.Ledger())

			for _, args := range [][]string{{"task", "ls"}, {"task", "add", "x"}, {"ps"}, {"send", "a", "x"}, {"ledger", "check"}, {"ledger", "backup"}} {
				_, err := r.try(append([]string{r.exe, "--team", "f"}, args...)...)
				if err == nil && name == "malformed page" && !slices.Contains(args, "ls") && args[0] != "ledger" {
					continue // it needs none of the damaged pages
				}
				if exitCode(err) != team.ExitStatus(team.Errorf(team.CodeUnavailable, "")) || !strings.Contains(err.Error(), "teamctl ledger recover f") {
					t.Errorf("%v: %v", args, err)
				}
			}
			if out, _ := r.try(r.exe, "doctor"); !strings.Contains(out, "teamctl ledger recover f") {
				t.Errorf("doctor does not name ledger recover:\n%s", out)
			}
			if out, err := r.try(r.exe, "doctor", "--repair", "--team", "f"); err == nil || !strings.Contains(out+err.Error(), "teamctl ledger recover f") {
				t.Errorf("doctor --repair: %v\n%s", err, out)
			}

			var got tool.LedgerRecovered
			out := r.teamctl("ledger", "recover", "f", "--json")
			if err := json.Unmarshal([]byte(out), &got); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			t.Logf("%s", out)
			if slices.Sort(got.Members); !slices.Equal(got.Members, []string{"a", "p"}) {
				t.Errorf("members that live: %q", got.Members)
			}
			r.teamctl("ledger", "check")
			if r.place() != place {
				t.Errorf("the place was %+v and is %+v", place, r.place())
			}
			after := r.members()
			for _, name := range []string{"a", "p"} {
				b, now := before[name], after[name]
				if now.PID != b.PID || now.Generation != b.Generation || now.SessionKey != b.SessionKey || now.Observed != team.Running {
					t.Errorf("%s was %+v and is %+v", name, b, now)
				}
				if p := r.proc(name); !proc.Alive(p.Agent) {
					t.Errorf("the agent of %s has ended", name)
				}
			}
			if subjects := slices.DeleteFunc(r.subjects(), func(s string) bool { return s == "x" }); !slices.Equal(subjects, []string{"one", "two", "three"}) {
				t.Errorf("tasks: %q", subjects)
			}
			for _, id := range []string{first, second} {
				if out, err := r.try(r.exe, "message", "show", id, "--json"); err != nil || !strings.Contains(out, id) {
					t.Errorf("message %s: %v: %s", id, err, out)
				}
			}
			kept, _ := filepath.Glob(r.layout.Ledger() + ".damaged-*Z")
			if (len(kept) == 1) != (name != "missing") {
				t.Errorf("kept: %q", kept)
			}
			if third := r.send("a", "after the recovery"); r.mail("a")[third] != 1 || r.mail("a")[second] != 1 {
				t.Errorf("mail of a: %v", r.mail("a"))
			}
			if again := r.teamctl("ledger", "recover"); !strings.Contains(again, "sound") {
				t.Errorf("once more: %s", again)
			}
		})
	}
}

// place returns the place that the ledger belongs to.
func (r *faultRig) place() (p ledger.Place) {
	r.Helper()
	db, err := ledger.Open(r.Context(), r.layout.Ledger(), ledger.Options{LockPath: r.layout.LedgerLock()})
	if err != nil {
		r.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if p, err = ledger.New(db, nil).Place(r.Context()); err != nil {
		r.Fatal(err)
	}
	return p
}

// checkpoint moves the whole log into the database file.
func checkpoint(t *testing.T, l team.Layout) {
	t.Helper()
	db, err := ledger.Open(t.Context(), l.Ledger(), ledger.Options{LockPath: l.LedgerLock()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if err := ledger.New(db, ledger.Direct(db)).Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
}
