package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/team"
)

// replace replaces a file with something else.
func (r *faultRig) replace(path string, by func(path string) error) {
	r.Helper()
	if err := os.RemoveAll(path); err != nil {
		r.Fatal(err)
	}
	if err := by(path); err != nil {
		r.Fatal(err)
	}
}

func aPipe(path string) error      { return unix.Mkfifo(path, 0o600) }
func aDirectory(path string) error { return os.Mkdir(path, 0o700) }
func halfAFile(path string) error  { return os.WriteFile(path, []byte(`{"generation": "`), 0o600) }

// TestDamagedBundles checks that no command blocks on whatever replaces a member's files, that
// the damage is reported with the member's name, and that delete --force ends the member and
// keeps its files.
func TestDamagedBundles(t *testing.T) {
	r := newFaultRig(t)
	b := func(name string) team.Bundle { return r.layout.Bundle(name) }
	damage := map[string]map[string]func(string) error{
		"launch":    {b("launch").Launch(): aPipe},
		"torn":      {b("torn").Proc(): halfAFile},
		"folder":    {b("folder").Launch(): aDirectory, b("folder").Exit(): aDirectory},
		"every":     {b("every").Launch(): aPipe, b("every").Proc(): aPipe, b("every").Pane(): aPipe, b("every").Group(): aPipe, b("every").RunLock(): aPipe},
		"terminal":  {b("terminal").Launch(): aPipe, b("terminal").Group(): halfAFile},
		"bare":      {b("bare").Launch(): aPipe, b("bare").Proc(): aPipe}, // only its lock identifies it
		"untouched": nil,
	}
	for name := range damage {
		args := []string{"spawn", name, "--worktree", "none", "--restart", "always"}
		if name == "terminal" {
			args = append(args, "--backend", "pty")
		}
		argv := []string{"--", "fakeagent", "hold"}
		if name == "bare" {
			argv = []string{"--", "env", "-i", "sleep", "100000"}
		}
		r.teamctl(append(args, argv...)...)
	}
	agents := map[string]int{}
	for name, files := range damage {
		p := r.proc(name).Agent
		agents[name] = p.PID
		defer func() {
			if t.Failed() {
				_ = proc.Signal(p, unix.SIGKILL)
			}
		}()
		for path, by := range files {
			r.replace(path, by)
		}
	}
	r.replace(filepath.Join(r.layout.Inboxes(), "untouched.json"), aPipe)
	lives := func(name string) bool {
		_, err := os.Stat("/proc/" + strconv.Itoa(agents[name]))
		return err == nil
	}

	// The supervisor that has adopted the members keeps running; the next one cannot adopt them.
	r.state("launch", team.Running)
	if out, _ := r.try(r.exe, "doctor"); !strings.Contains(out, "the files of launch are damaged") || !strings.Contains(out, "a named pipe") {
		t.Errorf("the doctor does not name the damage:\n%s", out)
	}
	r.kill(r.supervisor())
	r.replace(r.layout.Config(), aPipe) // only now: a running supervisor may write it at any time
	r.teamctl("ps")
	r.until("config.json to be written anew", func() bool {
		_, err := regular.ReadFile(r.layout.Config())
		return err == nil
	})
	text := r.teamctl("ps")
	out, _ := r.try(r.exe, "doctor")
	for name, files := range damage {
		if !lives(name) {
			t.Errorf("%s has ended", name)
		}
		if files == nil {
			continue
		}
		if !strings.Contains(text, name+": state unknown, it may live: ") {
			t.Errorf("ps does not say why %s is unknown:\n%s", name, text)
		}
		if why := r.teamctl("explain", name); !strings.Contains(why, "is unknown") || !strings.Contains(why, "damaged: ") {
			t.Errorf("explain %s:\n%s", name, why)
		}
		if !strings.Contains(out, "it is not known whether "+name+" lives: ") {
			t.Errorf("the doctor does not name %s:\n%s", name, out)
		}
	}
	for _, args := range [][]string{{"task", "add", "x"}, {"board"}, {"task", "ls"}, {"ls"}, {"logs", "every"}} {
		r.teamctl(args...)
	}
	_, err := r.try(r.exe, "send", "untouched", "x") // the message is stored, if not in the mailbox
	if code := exitCode(err); code != 0 && code != team.ExitStatus(team.Errorf(team.CodeDenied, "")) {
		t.Errorf("send: %v", err)
	}

	_, err = r.try(r.exe, "delete", "f")
	if exitCode(err) != team.ExitStatus(team.Errorf(team.CodeConflict, "")) || !strings.Contains(err.Error(), "launch: ") || !strings.Contains(err.Error(), "--force") {
		t.Errorf("delete: %v", err)
	}
	r.teamctl("kill", "torn")
	if lives("torn") {
		t.Error("kill has left the agent of torn")
	}
	said := r.teamctl("delete", "f", "--force")
	for name, files := range damage {
		if lives(name) {
			t.Errorf("the agent of %s lives on", name)
		}
		kept, _ := filepath.Glob(filepath.Join(r.dir, "t", "kept", "*", "bundle-"+name))
		if want := files != nil && name != "torn"; len(kept) != 0 != want && name != "torn" {
			t.Errorf("kept of %s: %q", name, kept)
		}
	}
	if _, err := os.Stat(r.layout.Dir); !os.IsNotExist(err) {
		t.Errorf("the team's directory is still there: %v\n%s", err, said)
	}
	r.teamctl("create", "f", "--repo", "repo")
}
