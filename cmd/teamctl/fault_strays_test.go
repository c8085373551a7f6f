package main

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/internal/proc"
	runner "github.com/teamctl/teamctl/internal/run"
	"github.com/teamctl/teamctl/worktree"
)

// strayScript is a person's command that writes a line, starts processes that detach in every
// possible way, and exits once all of them are running. Its arguments are its name, its exit
// status and the directory for the pids.
const strayScript = `
name=$1 code=$2 dir=$3
mkdir -p "$dir"
note='echo $$ >"$1.new"; mv "$1.new" "$1"; '
rest='while :; do sleep 10; done'
setsid bash -c "$note$rest" - "$dir/setsid" &
( ( bash -c "$note$rest" - "$dir/fork" & ) & )
bash -c "exec <&- >&- 2>&-; $note$rest" - "$dir/closed" &
bash -c "trap '' TERM HUP; $note$rest" - "$dir/deaf" &
( setsid bash -c "trap '' TERM HUP; exec <&- >&- 2>&-; $note$rest" - "$dir/all" & )
for p in setsid fork closed deaf all; do until [ -e "$dir/$p" ]; do sleep 0.02; done; done
echo "said by $name" >&2
exit $code
`

// TestNothingIsLeftOfACommand checks that the runner of a person's command ends all processes
// that the command has started, however they detached, keeps its output and reports its exit
// status.
func TestNothingIsLeftOfACommand(t *testing.T) {
	r := newFaultRig(t)
	script := filepath.Join(r.dir, "stray.sh")
	if err := os.WriteFile(script, []byte(strayScript), 0o600); err != nil {
		t.Fatal(err)
	}
	pids := func(name string) string { return filepath.Join(r.dir, "pids", name) }
	command := func(name string, code int) string {
		return "bash " + script + " " + name + " " + strconv.Itoa(code) + " " + pids(name)
	}
	// told returns the output of a teamctl command, even if it fails.
	told := func(args ...string) string {
		out, err := r.try(append([]string{r.exe}, args...)...)
		var failed *runError
		if errors.As(err, &failed) {
			out += failed.stderr
		}
		return out
	}
	kept := func(paths ...string) string {
		var all strings.Builder
		for _, p := range paths {
			files, _ := filepath.Glob(p)
			for _, f := range files {
				data, _ := os.ReadFile(f)
				all.Write(data)
			}
		}
		return all.String()
	}
	r.teamctl("spawn", "a", "--backend", "pty", "--restart", "never", "--", "fakeagent", "hold")
	tree := filepath.Join(r.layout.Worktrees(), "a")
	if err := os.WriteFile(filepath.Join(tree, "new"), []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.command("git", "-C", tree, "add", "new")
	r.command("git", "-C", tree, "commit", "-q", "-m", "new")
	repo, _, err := worktree.OpenWorktree(t.Context(), tree)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(repo.Wait)
	setup := func(name string, code int) worktree.SetupIn {
		return worktree.SetupIn{Path: tree, Run: []string{command(name, code)}, Log: filepath.Join(r.dir, name+".log"), Book: runner.BookOf(r.layout)}
	}
	r.teamctl("spawn", "w", "--agent", "worker", "--worktree", "none", "--backend", "pty")
	task := func(args ...string) string {
		id := strings.TrimSpace(r.teamctl(append([]string{"task", "add"}, args...)...))
		r.until("task "+id+" to fail", func() bool { return strings.Contains(r.teamctl("task", "show", id), "failed") })
		return r.teamctl("task", "show", id)
	}

	for _, c := range []struct {
		name string
		run  func() string // returns the text that reports the output and the exit status
		want string        // how the exit status is reported
	}{
		{"gate", func() string {
			return told("merge", "a", "--into", "main", "--gate", command("gate", 3)) + kept(filepath.Join(r.layout.Dir, "merge", "logs", "*"))
		}, "exit status 3"},
		{"setup", func() string {
			_, err := repo.Setup(t.Context(), setup("setup", 3))
			return err.Error() + kept(filepath.Join(r.dir, "setup.log"))
		}, "exit status 3"},
		{"teardown", func() string {
			_, err := repo.Teardown(t.Context(), setup("teardown", 0))
			if err != nil {
				t.Error(err)
			}
			return kept(filepath.Join(r.dir, "teardown.log"))
		}, "exit status 0"},
		{"worker", func() string { return task("x", "--run", command("worker", 3)) }, "exit 3"},
		{"worker-verify", func() string { return task("y", "--run", "true", "--verify", command("worker-verify", 3)) }, "verify failed: exit 3"},
		{"verify", func() string {
			id := strings.TrimSpace(r.teamctl("task", "add", "z", "--verify", command("verify", 3)))
			r.teamctl("task", "claim", id)
			r.teamctl("task", "complete", id)
			log := filepath.Join(r.layout.Members(), "*", "verify.log")
			r.until("the verification", func() bool { return strings.Contains(r.teamctl("task", "history", id), "verify_failed") })
			return kept(log)
		}, "exit 3"},
		{"hook", func() string {
			config := filepath.Join(r.layout.Home.Dir, "config.yaml")
			if err := os.WriteFile(config, []byte("hooks:\n  TaskCreated: "+command("hook", 2)+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = os.Remove(config) }()
			return told("task", "add", "refused")
		}, "a hook refuses"},
		{"notification", func() string {
			r.teamctl("notify", "add", "command:"+command("notification", 3))
			defer r.teamctl("notify", "rm", "command:"+command("notification", 3))
			return told("notify", "test")
		}, "exit 3"},
	} {
		text := c.run()
		if !strings.Contains(text, "said by "+c.name) || !strings.Contains(text, c.want) {
			t.Errorf("%s: its output or %q is not reported:\n%s", c.name, c.want, text)
		}
		files, err := os.ReadDir(pids(c.name))
		if err != nil || len(files) != 5 {
			t.Errorf("%s: %v, %v", c.name, files, err)
			continue
		}
		for _, f := range files {
			data, err := os.ReadFile(filepath.Join(pids(c.name), f.Name()))
			if err != nil {
				t.Fatal(err)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := proc.Identify(pid); err == nil {
				t.Errorf("%s: process %q lives", c.name, f.Name())
			}
		}
	}
	if left, err := os.ReadDir(r.layout.Commands()); err != nil || len(left) != 0 {
		t.Errorf("records that are left: %v, %v", left, err)
	}
}
